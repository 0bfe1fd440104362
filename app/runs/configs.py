"""The configuration that a run is asked for: the library's recipes, as forms and the API take them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_args

from clarinet.recipes import methods as recipes
from clarinet.recipes.choices import Looks, Setting
from clarinet.recipes.config import GROUP_OF, GROUPS, TrainConfig, flattened, title_of
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fields import kinds_of
from clarinet.recipes.fitting import architecture_for, misfit, sentence_of
from clarinet.recipes.presets import METHODS
from clarinet.recipes.upgrade import OWN

# A file's path, which the library takes too, would let users read the worker's disk.
PRETRAINED = ("", "torchvision")
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ConfigRefused(Exception):
    """The library refuses a value; `field` says which."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message

    @classmethod
    def because(cls, error: ConfigError) -> "ConfigRefused":
        """In the library's words, as a sentence."""
        field, words = error.field or "config", str(error)
        if words.startswith(field):
            words = title_of(field) + words.removeprefix(field)
        return cls(field, words[:1].upper() + words[1:] + ".")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One hyper-parameter, as a form shows it."""

    name: str
    group: str  # of hyper-parameters, in words
    title: str
    help: str
    kind: str  # integer | number | boolean | string
    choices: tuple[Any, ...]
    minimum: float | None
    maximum: float | None

    def parse(self, text: str) -> Any:
        """A form's text as a value of this kind; text that is none, which the library then refuses."""
        text = text.strip()
        if self.kind == "boolean":
            return {"true": True, "false": False}.get(text.lower(), text)
        if self.kind == "string":
            return text
        try:
            return int(text) if self.kind == "integer" else float(text)
        except ValueError:
            return text


@cache
def form_fields() -> tuple[ConfigField, ...]:
    """The hyper-parameters that a run may change, in the library's order."""
    return tuple(
        _field(item.name, title_of(group), kinds_of(kind)[item.name], item.metadata)
        for group, kind in GROUPS.items()
        for item in fields(kind)
    )


def _field(name: str, group: str, kind: Any, metadata: Mapping[str, Any]) -> ConfigField:
    choices = PRETRAINED if name == "pretrained" else get_args(kind)
    return ConfigField(
        name=name,
        group=group,
        title=title_of(name),
        help=metadata["help"],
        kind=_KINDS[type(choices[0]) if choices else kind],
        choices=tuple(choices),
        minimum=metadata.get("minimum"),
        maximum=metadata.get("maximum"),
    )


def refusal_of(name: str, value: object) -> str:
    """Why the library refuses a value of a hyper-parameter, whatever the others are; "" where it does not."""
    try:
        GROUPS[GROUP_OF[name]](**{name: value})
    except ConfigError as error:
        return ConfigRefused.because(error).message
    return ""


@cache
def preset_values(method: str, preset: str, looks: Looks) -> Mapping[str, Any]:
    """Every value of a known preset, or of what fits such images, by name."""
    return recipes.config_for(method, preset, looks=looks).flat()


def methods() -> Mapping[str, tuple[str, str]]:
    """Title and one sentence of each method, in the library's order."""
    return recipes.DESCRIPTIONS


def settings() -> tuple[str, ...]:
    """The settings a run may have."""
    return get_args(Setting)


def config_for(
    method: str, setting: str, preset: str | None, overrides: Mapping[str, object], *, looks: Looks
) -> dict[str, Any]:
    """A configuration without its seed, as a run keeps it: the preset's values with single ones replaced.

    Args:
        method, setting: of the run.
        preset: of the method, or what means a preset that fits the images: None, default or quick.
        overrides: single hyper-parameters.
        looks: of the images.

    Raises:
        ConfigRefused: an unknown method, setting, preset or hyper-parameter, or a refused value.
    """
    if unknown := sorted(set(overrides) & set(OWN)):
        raise ConfigRefused(unknown[0], f"{unknown[0]} is chosen beside the configuration, not in it.")
    if overrides.get("pretrained", "") not in PRETRAINED:
        raise ConfigRefused("pretrained", "Pretrained must be empty or torchvision.")
    if method not in METHODS:
        raise ConfigRefused("method", f"There is no method {method!r}; there are {', '.join(METHODS)}.")
    try:
        values = recipes.config_for(method, preset, looks=looks, setting=setting, **overrides).to_dict()
    except ConfigError as error:
        raise ConfigRefused.because(error) from error
    del values["seed"]
    return values


def readable(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration that any version has kept, under today's names and in their groups.

    What this version has no place for is under "earlier".
    """
    values = flattened(config)
    found = {name: values[name] for name in OWN if name in values}
    for group, kind in GROUPS.items():
        found[group] = {item.name: values[item.name] for item in fields(kind) if item.name in values}
    gone = {name: value for name, value in values.items() if name not in OWN and name not in GROUP_OF}
    return found | ({"earlier": gone} if gone else {})


def in_groups(config: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, Any]]]]:
    """Title of each group with its names and values, for pages."""
    titles = {group: title_of(group) for group in GROUPS} | {"earlier": "Of an earlier version"}
    shown = readable(config)
    return [(title, list(shown[group].items())) for group, title in titles.items() if shown.get(group)]


def epochs_of(config: Mapping[str, Any]) -> int:
    """The epochs of a configuration that any version has kept; 0 where it does not say."""
    return int(flattened(config).get("epochs", 0))


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a configuration trains on a pair of datasets, in words.

    Args:
        looks: of the images; None where nobody looked.
        sentence: such as "digits: LeNet at 28 pixels".
        misfit: what to say where the recipe is not for such images; else "".
    """

    looks: Looks | None
    sentence: str
    misfit: str


def recipe_of(config: Mapping[str, Any], looks: Looks | None, in_colour: tuple[bool, bool]) -> Recipe | None:
    """The recipe of a configuration that any version has kept; None where this one cannot read it.

    Args:
        config: with or without its seed.
        looks: of the images; None where nobody looked.
        in_colour: whether source and target are.
    """
    try:
        known = TrainConfig.from_dict({"seed": 0, **config})
    except ConfigError:
        return None
    source, target = in_colour
    network = architecture_for(known, source_in_colour=source, target_in_colour=target)
    told = misfit(known, looks) if looks else ""
    return Recipe(looks, sentence_of(known, network), told[:1].upper() + told[1:] + ("." if told else ""))
