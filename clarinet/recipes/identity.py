"""What makes a method that method, whatever its other values are. Never imports torch."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

from clarinet.recipes.choices import AdaptationKind, Method, Preset
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.groups import Length
from clarinet.recipes.learning import Adaptation, Losses
from clarinet.recipes.presets import METHODS


@dataclass(frozen=True, slots=True)
class Identity:
    """What a method's name promises.

    Args:
        title: what people call it.
        sentence: what it does.
        adapts_by: the kind of its adaptation.
        two_steps: whether GAC labels the source for it first.
        learns: "noes" from complementary labels, "truth" from true labels alone, "likeness" towards what
            images are not (the ablation with L_CE).
        conditioned: whether its discriminator sees predictions, too; None where it has none.
        sharpened: whether these are sharpened (l < 1); None where it sees none.
    """

    title: str
    sentence: str
    _: KW_ONLY
    adapts_by: AdaptationKind = "none"
    two_steps: bool = False
    learns: str = "noes"
    conditioned: bool | None = None
    sharpened: bool | None = None


IDENTITIES: Mapping[str, Identity] = MappingProxyType(
    {
        "clarinet": Identity(
            "CLARINET",
            "The paper's method: the unbiased complementary risk with its correction, and an "
            "adversary that sees features joined with sharpened predictions.",
            adapts_by="adversary",
            conditioned=True,
            sharpened=True,
        ),
        "clarinet-plus": Identity(
            "CLARINET plus",
            "Our strongest method: features learned from images alone, classes on which the answers "
            "about similar images agree, a bounded likelihood of the answers, images distorted as the"
            " target looks, and self-training; no adversary.",
        ),
        "gac": Identity(
            "GAC",
            "Gradient ascent correction: the complementary risk with its correction on the source "
            "alone; nothing is done to adapt to the target.",
        ),
        "gac+dan": Identity(
            "GAC + DAN",
            "Two steps: GAC labels the whole source, then new networks learn those labels while DAN "
            "matches the domains' features by their multi-kernel discrepancy.",
            adapts_by="discrepancy",
            two_steps=True,
        ),
        "gac+dann": Identity(
            "GAC + DANN",
            "Two steps: GAC labels the whole source, then new networks learn those labels against an "
            "adversary that sees the features alone.",
            adapts_by="adversary",
            two_steps=True,
            conditioned=False,
        ),
        "gac+cdan_e": Identity(
            "GAC + CDAN+E",
            "Two steps: GAC labels the whole source, then new networks learn those labels against an "
            "adversary that sees features joined with predictions, weighted by their certainty.",
            adapts_by="adversary",
            two_steps=True,
            conditioned=True,
            sharpened=False,
        ),
        "gac+mcc": Identity(
            "GAC + MCC",
            "Two steps: GAC labels the whole source, then new networks learn those labels and minimise the "
            "confusion between classes in the target's predictions (Jin and others, 2020; not in the paper).",
            adapts_by="confusion",
            two_steps=True,
        ),
        "dan": Identity(
            "DAN on true labels",
            "Ordinary adaptation: true labels alone (PC), and the domains' features matched by their "
            "multi-kernel discrepancy; complementary labels are not used.",
            adapts_by="discrepancy",
            learns="truth",
        ),
        "dann": Identity(
            "DANN on true labels",
            "Ordinary adaptation: true labels alone (PC), against an adversary that sees the "
            "features; complementary labels are not used.",
            adapts_by="adversary",
            learns="truth",
            conditioned=False,
        ),
        "cdan_e": Identity(
            "CDAN+E on true labels",
            "Ordinary adaptation: true labels alone (PC), against an adversary that sees features "
            "joined with predictions, weighted by their certainty; complementary labels are not used.",
            adapts_by="adversary",
            learns="truth",
            conditioned=True,
            sharpened=False,
        ),
        "mcc": Identity(
            "MCC on true labels",
            "Ordinary adaptation: true labels alone (PC), and the least confusion between classes in the "
            "target's predictions (Jin and others, 2020); complementary labels are not used.",
            adapts_by="confusion",
            learns="truth",
        ),
        "clarinet-ce": Identity(
            "CLARINET with L_CE",
            "The ablation 'C w/ L_CE': cross-entropy towards the complementary labels, so that it "
            "learns what images are not and ends far below chance.",
            adapts_by="adversary",
            learns="likeness",
            conditioned=True,
            sharpened=True,
        ),
        "clarinet-unconditioned": Identity(
            "CLARINET without c",
            "The ablation 'C w/o c': the adversary sees the features alone, and no image weighs more "
            "for its prediction.",
            adapts_by="adversary",
            conditioned=False,
        ),
        "clarinet-unsharpened": Identity(
            "CLARINET without T",
            "The ablation 'C w/o T': the adversary sees the predictions as they are, not sharpened (l = 1).",
            adapts_by="adversary",
            conditioned=True,
            sharpened=False,
        ),
    }
)
"""Method to what its name promises, in the order of forms and tables."""

LEARNS = {"none": "truth", "cross-entropy": "likeness"}  # every other loss learns from noes
LOSS_OF = {"noes": "one that learns what images are", "truth": "none", "likeness": "cross-entropy"}


def check_name(
    method: Method, preset: Preset, values: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Refuse a preset that the method does not have, and another method's recipe under this name.

    Args:
        method, preset: what it is called.
        values: every hyper-parameter by name.
        defaults: those of the groups.

    Raises:
        ConfigError: how it is called rightly.
    """
    if preset not in METHODS[method]:
        known = ", ".join(METHODS[method])
        raise ConfigError(f"method {method} has no preset {preset!r}; it has {known}", "preset")
    for other, presets in METHODS.items():
        for name, changes in presets.items():
            recipe = {**defaults, **{key: value for key, value in changes.items() if key in defaults}}
            if other != method and recipe == values:
                raise ConfigError(
                    f"these are the values of {other} ({name}), not of {method}; choose that method and "
                    "preset, or other values",
                    "method",
                )


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
    if own.sharpened is not None and (adaptation.sharpening < 1) != own.sharpened:
        raise _other(method, "sharpening", adaptation.sharpening, "below 1" if own.sharpened else 1)


def _other(method: str, name: str, value: object, own: object) -> ConfigError:
    return ConfigError(
        f"{name} is {value}, but {method} has {own}, and its name promises this value; choose another method "
        "for another one",
        name,
    )
