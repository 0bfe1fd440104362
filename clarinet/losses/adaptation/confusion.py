"""The class confusion of the target's predictions, which MCC minimises."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.losses.adaptation.adversary import entropy_weights
from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.recipes.config import TrainConfig

TEMPERATURE = (
    2.5  # of the predictions, by which the paper calms a network that is too sure; its choice for all
)


def class_confusion(logits: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """How much a batch's predictions mix the classes: the mean share of other classes in each class's row.

        C = Y^T W Y,  Y = softmax(logits / T),  W = diag of B w_i / sum_j w_j,  w_i = 1 + exp(-H(Y_i)),
        loss = 1/K sum_k sum_{l != k} C_kl / sum_m C_km

    The weights are constants for the gradient, as in the authors' code; the paper does not say.

    Args:
        logits: (B, K) of target images, B >= 1.
        temperature: T > 0.

    Returns:
        () in [0, 1 - 1/K]: 0 where every image is surely of one class.

    Source: Jin et al., Minimum Class Confusion for Versatile Domain Adaptation (2020), eqs. (2) to (6).
    """
    log_probabilities = F.log_softmax(logits / temperature, dim=1)  # (B, K)
    probabilities = log_probabilities.exp()
    certainty = entropy_weights(log_probabilities.detach())  # (B,)
    weights = len(logits) * certainty / certainty.sum()
    confusion = (weights[:, None] * probabilities).T @ probabilities  # (K, K)
    shares = confusion / confusion.sum(1, keepdim=True)
    return (shares.sum() - shares.trace()) / logits.shape[1]


class ClassConfusion:
    """The class confusion of the target; the source has no part in it."""

    name = "confusion"

    def __init__(self, config: TrainConfig, network: nn.Module | None) -> None:  # noqa: ARG002 - the protocol's
        self._weight = config.adaptation.adaptation_weight

    @staticmethod
    def network(config: TrainConfig, features: int, num_classes: int) -> None:
        """None: it learns nothing of its own."""

    def __call__(self, source: Sequence[DomainBatch], target: DomainBatch, shares: Shares) -> Tensor:  # noqa: ARG002
        """See AdaptationLoss."""
        return shares.loss * self._weight * class_confusion(target.logits)
