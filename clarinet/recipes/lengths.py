"""How long a step and an epoch are. Never imports torch."""

import math

from clarinet.recipes.choices import is_backbone
from clarinet.recipes.config import TrainConfig

LARGEST_BATCH = 4096  # that a share of the labels makes


def batch_size(config: TrainConfig, labels: int) -> int:
    """Labels, and images of the target, in a step: the config's, or its share of the labels if that is more.

    Args:
        config: of the stage.
        labels: of the kind that has more of them.
    """
    if is_backbone(config.network.architecture):  # whose memory the batch was chosen by
        return config.length.batch_size
    return min(max(config.length.batch_size, math.ceil(config.length.step_share * labels)), LARGEST_BATCH)


def steps_in_epoch(config: TrainConfig, labels: int, target: int) -> int:
    """As configured, or one pass over the larger of so many labels and so many target images.

    A round on kept features is one step.
    """
    if config.network.has_rounds:
        return 1
    if config.length.steps_per_epoch:
        return config.length.steps_per_epoch
    batches = max(labels, target) / batch_size(config, labels)
    return max(math.floor(batches), 1) if config.length.drop_last else math.ceil(batches)
