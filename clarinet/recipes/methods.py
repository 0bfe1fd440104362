"""The methods: their words, and the configuration that a recipe makes. Never imports torch."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from clarinet.recipes.choices import Method
from clarinet.recipes.config import TrainConfig, grouped
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.presets import METHODS

DESCRIPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "clarinet": (
            "CLARINET",
            "The paper's method: the unbiased complementary risk with its correction, and an adversary that "
            "sees features joined with sharpened predictions.",
        ),
        "clarinet-plus": (
            "CLARINET plus",
            "Our strongest method: features learned from images alone, classes on which the answers about "
            "similar images agree, a bounded likelihood of the answers, images distorted as the target "
            "looks, and self-training; no adversary.",
        ),
        "gac": (
            "GAC",
            "Gradient ascent correction: the complementary risk with its correction on the source alone; "
            "nothing is done to adapt to the target.",
        ),
        "gac+dan": (
            "GAC + DAN",
            "Two steps: GAC labels the whole source, then new networks learn those labels while DAN matches "
            "the domains' features by their multi-kernel discrepancy.",
        ),
        "gac+dann": (
            "GAC + DANN",
            "Two steps: GAC labels the whole source, then new networks learn those labels against an "
            "adversary that sees the features alone.",
        ),
        "gac+cdan_e": (
            "GAC + CDAN+E",
            "Two steps: GAC labels the whole source, then new networks learn those labels against an "
            "adversary that sees features joined with predictions, weighted by their certainty.",
        ),
        "dan": (
            "DAN on true labels",
            "Ordinary adaptation: true labels alone (PC), and the domains' features matched by their "
            "multi-kernel discrepancy; complementary labels are not used.",
        ),
        "dann": (
            "DANN on true labels",
            "Ordinary adaptation: true labels alone (PC), against an adversary that sees the features; "
            "complementary labels are not used.",
        ),
        "cdan_e": (
            "CDAN+E on true labels",
            "Ordinary adaptation: true labels alone (PC), against an adversary that sees features joined "
            "with predictions, weighted by their certainty; complementary labels are not used.",
        ),
        "clarinet-ce": (
            "CLARINET with L_CE",
            "The ablation 'C w/ L_CE': cross-entropy towards the complementary labels, so that it learns "
            "what images are not and ends far below chance.",
        ),
        "clarinet-unconditioned": (
            "CLARINET without c",
            "The ablation 'C w/o c': the adversary sees the features alone, and no image weighs more for its "
            "prediction.",
        ),
        "clarinet-unsharpened": (
            "CLARINET without T",
            "The ablation 'C w/o T': the adversary sees the predictions as they are, not sharpened (l = 1).",
        ),
    }
)
"""Method to its title and one sentence, for forms and tables."""


def config_for(method: str, preset: str | None = None, **overrides: Any) -> TrainConfig:
    """The configuration of a method's preset, with single values replaced.

    Args:
        method: a name in METHODS.
        preset: one of the method's presets; None takes its first.
        overrides: fields of TrainConfig by name.

    Raises:
        ConfigError: unknown method, preset or hyper-parameter, or a refused value.
    """
    if method not in METHODS:
        raise ConfigError(f"unknown method {method!r}; known ones are {', '.join(METHODS)}")
    presets = METHODS[method]
    name = preset if preset is not None else next(iter(presets))
    if name not in presets:
        raise ConfigError(f"method {method} has no preset {name!r}; it has {', '.join(presets)}")
    own = {"setting": "cc", "seed": 0, **presets[name], **overrides, "method": method, "preset": name}
    return TrainConfig(**grouped(own))


def two_steps(config: TrainConfig) -> tuple[TrainConfig, TrainConfig]:
    """The configs of both steps of a run whose first_step_share is above 0.

    The first is GAC with the step sizes of its preset of the same name, the second ordinary adaptation on
    true labels alone. Together they have the run's epochs, and both its seed: the second starts from the
    same weights as the first did.
    """
    first_epochs = config.length.first_epochs
    gac = config_for("gac", config.preset if config.preset in METHODS["gac"] else None)
    first = replace(
        config,
        method="gac",
        length=replace(config.length, epochs=first_epochs, first_step_share=0.0),
        optimisation=gac.optimisation,
        adaptation=gac.adaptation,
    )
    second = replace(
        config,
        method=cast("Method", config.method.removeprefix("gac+")),
        setting="pc",
        length=replace(config.length, epochs=config.length.epochs - first_epochs, first_step_share=0.0),
        losses=replace(config.losses, complementary_loss="none"),
    )
    return first, second
