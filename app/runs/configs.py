"""The configuration that a run is asked for: the library's recipes, as forms and the API take them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, get_args

from clarinet.recipes import methods as recipes
from clarinet.recipes.choices import HUB, Looks, Setting
from clarinet.recipes.config import GROUP_OF, GROUPS, TrainConfig, flattened, title_of
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fields import kinds_of
from clarinet.recipes.fitting import architecture_for, misfit, sentence_of
from clarinet.recipes.presets import METHODS
from clarinet.recipes.upgrade import OWN, REWORDED

# Besides these a run takes files of one folder alone: a path, which the library takes too, would let users
# read the worker's disk.
WITHOUT_A_FILE = ("", HUB)
UNTRAINED = "photographs-untrained"  # the preset for photographs that needs no trained weights
NO_FIELDS = {"pretrained_digest"}  # which follows from the file
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMES = re.compile(rf"\b({'|'.join(name for name in GROUP_OF if '_' in name)})\b")


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
        opening = title_of(field) if words.startswith(field) else ""
        words = opening + in_words(words.removeprefix(field) if opening else words)
        return cls(field, words[:1].upper() + words[1:] + ".")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One hyper-parameter, as a form shows it."""

    name: str
    title: str
    help: str
    kind: str  # integer | number | boolean | string
    choices: tuple[Any, ...]
    suggestions: tuple[str, ...]  # for a text that may be something else
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


# Which networks there are, only what loads torch knows, and the web process does not.
UNSUGGESTED = "Whether there is one of a name that is not suggested here shows when the training begins."


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Hyper-parameters that belong together, and what they say, in one sentence."""

    title: str
    sentence: str
    fields: tuple[ConfigField, ...]


@lru_cache(maxsize=16)
def form_groups(weights: tuple[str, ...] = ()) -> tuple[FieldGroup, ...]:
    """The hyper-parameters that a run may change, in the library's groups and order.

    Args:
        weights: files of trained weights that may be chosen.
    """
    return tuple(
        FieldGroup(
            title_of(name),
            kind.__doc__ or "",
            tuple(
                _field(item.name, kinds_of(kind)[item.name], item.metadata, weights)
                for item in fields(kind)
                if item.name not in NO_FIELDS
            ),
        )
        for name, kind in GROUPS.items()
    )


def form_fields() -> tuple[ConfigField, ...]:
    """The same without their groups, and without files of trained weights."""
    return tuple(field for group in form_groups() for field in group.fields)


def _field(name: str, kind: Any, metadata: Mapping[str, Any], weights: tuple[str, ...]) -> ConfigField:
    choices = (*weights, *WITHOUT_A_FILE) if name == "pretrained" else get_args(kind)
    names = metadata.get("names")
    return ConfigField(
        name=name,
        title=title_of(name),
        help=in_words(metadata["help"]) + (f" {UNSUGGESTED}" if names else ""),
        kind=_KINDS[type(choices[0]) if choices else kind],
        choices=tuple(choices),
        suggestions=() if names is None else names.known,
        minimum=metadata.get("minimum"),
        maximum=metadata.get("maximum"),
    )


def in_words(sentence: str) -> str:
    """A sentence of the library with the titles of hyper-parameters for their names, and yes and no."""
    titled = _NAMES.sub(lambda name: f"“{title_of(name[0])}”", sentence)
    return re.sub(r"\bTrue\b", "yes", re.sub(r"\bFalse\b", "no", titled))


def shown(value: object) -> str:
    """A value as people write it: "yes", "0.00005", "none" for what is empty."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else written(value)


def written(value: object) -> str:
    """A value as an input takes it: "true", "0.00005", "sgd"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return str(value)


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
    method: str,
    setting: str,
    preset: str | None,
    overrides: Mapping[str, object],
    *,
    looks: Looks,
    weights: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """A configuration without its seed, as a run keeps it: the preset's values with single ones replaced.

    Args:
        method, setting: of the run.
        preset: of the method, or what means a preset that fits the images: None, default or quick.
        overrides: single hyper-parameters.
        looks: of the images.
        weights: files of trained weights that may be named, to their SHA-256; None while it is not known.

    Raises:
        ConfigRefused: an unknown method, setting, preset or hyper-parameter, or a refused value.
    """
    if unknown := sorted(set(overrides) & set(OWN)):
        raise ConfigRefused(unknown[0], f"{unknown[0]} is chosen beside the configuration, not in it.")
    overrides = _with_digest(overrides, weights)
    if method not in METHODS:
        raise ConfigRefused("method", f"There is no method {method!r}; there are {', '.join(METHODS)}.")
    try:
        values = recipes.config_for(method, preset, looks=looks, setting=setting, **overrides).to_dict()
    except ConfigError as error:
        raise ConfigRefused.because(error) from error
    del values["seed"]
    return values


def is_known(config: Mapping[str, Any]) -> bool:
    """Whether this version knows by name all that a run is to be; a later one may name what it lacks.

    A value that is refused is no such name: its run is taken, and fails with the reason.
    """
    flat = flattened(config)
    return set(flat) <= {*OWN, *GROUP_OF} and flat.get("method") in METHODS


def _with_digest(overrides: Mapping[str, object], weights: Mapping[str, str | None]) -> Mapping[str, object]:
    """With the digest of the file of trained weights, so that a run trains on no other file."""
    origin = overrides.get("pretrained", "")
    if not isinstance(origin, str):
        raise ConfigRefused("pretrained", "Pretrained must be text.")
    if REWORDED["pretrained"].get(origin, origin) in WITHOUT_A_FILE:
        return overrides
    if origin not in weights:
        raise ConfigRefused(
            "pretrained",
            "Pretrained must be empty, hub, or the name of a file in the server's folder of trained weights, "
            f"which has no {origin!r}.",
        )
    digest, wanted = weights[origin], overrides.get("pretrained_digest", "")
    if digest is None:
        raise ConfigRefused(
            "pretrained",
            f"The file {origin} is being written, or the server may not read it. Try again, or tell whoever "
            "runs the server.",
        )
    if wanted not in {"", digest}:
        raise ConfigRefused(
            "pretrained_digest", f"The file {origin} has another SHA-256 than was asked for: {digest}."
        )
    return {**overrides, "pretrained_digest": digest}


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


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One value of a kept configuration, as a page shows it; `name` is what programs call it."""

    name: str
    title: str
    value: str


def in_groups(config: Mapping[str, Any]) -> list[tuple[str, list[ConfigRow]]]:
    """Title of each group with its values in words, for pages."""
    titles = {group: title_of(group) for group in GROUPS} | {"earlier": "Of an earlier version"}
    kept = readable(config)
    return [
        (title, [ConfigRow(name, title_of(name), shown(value)) for name, value in kept[group].items()])
        for group, title in titles.items()
        if kept.get(group)
    ]


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
        downloads: whether its trained weights are fetched when it starts.
    """

    looks: Looks | None
    sentence: str
    misfit: str
    downloads: bool


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
    misfit_told = told[:1].upper() + told[1:] + ("." if told else "")
    return Recipe(looks, sentence_of(known, network), misfit_told, known.network.pretrained == HUB)
