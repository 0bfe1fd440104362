"""What a loss that brings the domains together is: each kind has a module here, and a place in `kinds`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from clarinet.recipes.config import TrainConfig


@dataclass(frozen=True, slots=True)
class DomainBatch:
    """One part of a batch as an adaptation loss sees it: features (N, D), logits (N, K), weights (N,)."""

    features: Tensor
    logits: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the adaptation's whole weight at a step, in [0, 1]: floats, or () on the device.

    Args:
        loss: of the loss, or of what a reversal brings of it to the classifier.
        entropy: of what comes by an adversary's entropy weights, whose schedule may be ahead.
    """

    loss: float | Tensor
    entropy: float | Tensor


class AdaptationLoss(Protocol):
    """A kind of adaptation in one run."""

    @property
    def name(self) -> str:
        """Under which its loss is reported."""

    def __call__(self, source: Sequence[DomainBatch], target: DomainBatch, shares: Shares) -> Tensor:
        """The term of the objective: () with its weight.

        Args:
            source: one or two parts of the source batch.
            target: the target batch, of any length of its own.
            shares: of its whole weight; see `schedule.adaptation_share`.
        """


class AdaptationKind(Protocol):
    """What `kinds` has for each kind: makes the loss of a run, and the network that learns beside it."""

    def __call__(self, config: TrainConfig, network: nn.Module | None) -> AdaptationLoss:
        """The loss of a run; `network` is what `network` made."""

    def network(self, config: TrainConfig, features: int, num_classes: int) -> nn.Module | None:
        """A network of its own that learns beside the classifier, or None.

        Args:
            config: of the run.
            features: D of the classifier's features.
            num_classes: K.
        """
