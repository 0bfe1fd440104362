"""A stage: one training of new networks, which is a whole run or one of its two steps."""

import math
from dataclasses import dataclass

from clarinet.choices import BACKBONES
from clarinet.config import TrainConfig
from clarinet.domains import Domains

LARGEST_BATCH = 4096  # that a share of the labels makes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """One training of new networks: a whole run, or one of its two steps.

    Args:
        config: of this stage; its epochs are those of the stage.
        domains: what it trains on.
        epochs_before, steps_before: done by the run before this stage.
        steps_after: to do after it.
    """

    config: TrainConfig
    domains: Domains
    epochs_before: int = 0
    steps_before: int = 0
    steps_after: int = 0

    @property
    def epoch_steps(self) -> int:
        """Steps in an epoch: see `steps_in_epoch`."""
        domains = self.domains
        labels = max(len(domains.complementary_rows), len(domains.true_rows))
        return steps_in_epoch(self.config, labels, len(domains.target))

    @property
    def steps(self) -> int:
        """Steps of the stage."""
        return self.config.epochs * self.epoch_steps


def batch_size(config: TrainConfig, labels: int) -> int:
    """Labels, and images of the target, in a step: the config's, or its share of the labels if that is more.

    Args:
        config: of the stage.
        labels: of the kind that has more of them.
    """
    if config.architecture in BACKBONES:  # whose memory the batch was chosen by
        return config.batch_size
    return min(max(config.batch_size, math.ceil(config.step_share * labels)), LARGEST_BATCH)


def steps_in_epoch(config: TrainConfig, labels: int, target: int) -> int:
    """As configured, or one pass over the larger of so many labels and so many target images."""
    return config.steps_per_epoch or math.ceil(max(labels, target) / batch_size(config, labels))
