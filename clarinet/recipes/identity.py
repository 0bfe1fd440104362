"""What makes a method that method, whatever its other values are. Never imports torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from clarinet.recipes.choices import AdaptationKind, Method
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.groups import Length
from clarinet.recipes.learning import Adaptation, Losses


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a method's name promises.

    Args:
        adapts_by: the kind of its adaptation.
        two_steps: whether GAC labels the source for it first.
        learns: "noes" from complementary labels, "truth" from true labels alone, "likeness" towards what
            images are not (the ablation with L_CE).
        conditioned: what its discriminator sees; None where it has none.
    """

    adapts_by: AdaptationKind = "none"
    two_steps: bool = False
    learns: str = "noes"
    conditioned: bool | None = None


_ADVERSARY = Identity(adapts_by="adversary", conditioned=True)

IDENTITIES: Mapping[Method, Identity] = MappingProxyType(
    {
        "clarinet": _ADVERSARY,
        "clarinet-plus": Identity(),
        "gac": Identity(),
        "gac+dan": Identity(adapts_by="discrepancy", two_steps=True),
        "gac+dann": Identity(adapts_by="adversary", two_steps=True, conditioned=False),
        "gac+cdan_e": Identity(adapts_by="adversary", two_steps=True, conditioned=True),
        "dan": Identity(adapts_by="discrepancy", learns="truth"),
        "dann": Identity(adapts_by="adversary", learns="truth", conditioned=False),
        "cdan_e": Identity(adapts_by="adversary", learns="truth", conditioned=True),
        "clarinet-ce": Identity(adapts_by="adversary", learns="likeness", conditioned=True),
        "clarinet-unconditioned": Identity(adapts_by="adversary", conditioned=False),
        "clarinet-unsharpened": _ADVERSARY,
    }
)


LEARNS = {"none": "truth", "cross-entropy": "likeness"}  # every other loss learns from noes
LOSS_OF = {"noes": "one that learns what images are", "truth": "none", "likeness": "cross-entropy"}


def check_identity(method: Method, length: Length, losses: Losses, adaptation: Adaptation) -> None:
    """Refuse values that make another method of it.

    Raises:
        ConfigError: which value, and what the method has.
    """
    own = IDENTITIES[method]
    kind = adaptation.adaptation_kind
    if kind != own.adapts_by:
        raise _other(method, "adaptation_kind", kind, own.adapts_by)
    if (length.first_step_share > 0) != own.two_steps:
        wanted = "above 0" if own.two_steps else "0"
        raise _other(method, "first_step_share", length.first_step_share, wanted)
    loss = losses.complementary_loss
    if LEARNS.get(loss, "noes") != own.learns:
        raise _other(method, "complementary_loss", loss, LOSS_OF[own.learns])
    if own.conditioned is not None and adaptation.conditioning != own.conditioned:
        raise _other(method, "conditioning", adaptation.conditioning, own.conditioned)


def _other(method: str, name: str, value: object, own: object) -> ConfigError:
    return ConfigError(
        f"{name} is {value}, but {method} has {own}; config_for(METHOD) makes the configuration of a method, "
        "and its name promises this value",
        name,
    )
