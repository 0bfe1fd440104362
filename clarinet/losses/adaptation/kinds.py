"""The kinds of adaptation, by the names that a configuration gives them."""

from collections.abc import Mapping
from types import MappingProxyType

from torch import nn

from clarinet.losses.adaptation.adversary import Adversary
from clarinet.losses.adaptation.confusion import ClassConfusion
from clarinet.losses.adaptation.discrepancy import Discrepancy
from clarinet.losses.adaptation.protocol import AdaptationKind, AdaptationLoss
from clarinet.recipes.config import TrainConfig

KINDS: Mapping[str, AdaptationKind] = MappingProxyType(
    {"adversary": Adversary, "discrepancy": Discrepancy, "confusion": ClassConfusion}
)


def adaptation_network(config: TrainConfig, features: int, num_classes: int) -> nn.Module | None:
    """The network that learns beside the classifier, with new weights; None where there is none.

    Args:
        config: of the run.
        features: D of the classifier's features.
        num_classes: K.
    """
    kind = config.adaptation.adaptation_kind
    return None if kind == "none" else KINDS[kind].network(config, features, num_classes)


def adaptation_loss(config: TrainConfig, network: nn.Module | None) -> AdaptationLoss | None:
    """The loss that brings the domains together in a run; None for methods that do not adapt.

    Args:
        config: of the run.
        network: from `adaptation_network`.
    """
    kind = config.adaptation.adaptation_kind
    return None if kind == "none" else KINDS[kind](config, network)
