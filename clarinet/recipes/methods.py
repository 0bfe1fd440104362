"""The methods: their words, and the configuration that a recipe makes. Never imports torch."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from clarinet.recipes.choices import Looks, Method
from clarinet.recipes.config import TrainConfig, grouped
from clarinet.recipes.fitting import preset_for
from clarinet.recipes.identity import IDENTITIES
from clarinet.recipes.presets import METHODS

DESCRIPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {name: (own.title, own.sentence) for name, own in IDENTITIES.items()}
)
"""Method to its title and one sentence, for forms and tables."""


def config_for(
    method: str, preset: str | None = None, *, looks: Looks | None = None, **overrides: Any
) -> TrainConfig:
    """The configuration of a method's preset, with single values replaced.

    Args:
        method: a name in METHODS.
        preset: one of the method's presets, or a name that `preset_for` knows; None takes the method's first,
            or with `looks` the first that is for such images.
        looks: what the images look like, as `looks_of` or `TrainData.looks` tell.
        overrides: fields of TrainConfig by name.

    Raises:
        ConfigError: unknown method, preset or hyper-parameter, a refused value, or a preset that means what
            fits the images, without their looks.
    """
    name = preset_for(method, preset, looks)
    own = {"setting": "cc", "seed": 0, **METHODS[method][name], **overrides, "method": method, "preset": name}
    return TrainConfig(**grouped(own))


def two_steps(config: TrainConfig) -> tuple[TrainConfig, TrainConfig]:
    """The configs of both steps of a run whose first_step_share is above 0.

    The first is GAC with step sizes and passes of its preset of the same name, the second ordinary adaptation
    on true labels alone. Together they have the run's epochs, and both its seed: the second starts from the
    same weights as the first did.
    """
    first_epochs = config.length.first_epochs
    gac = config_for("gac", config.preset if config.preset in METHODS["gac"] else None)
    first = replace(
        config,
        method="gac",
        preset=gac.preset,
        length=replace(
            config.length, epochs=first_epochs, first_step_share=0.0, drop_last=gac.length.drop_last
        ),
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
