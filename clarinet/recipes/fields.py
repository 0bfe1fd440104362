"""A field of a configuration: its sentence and bounds, and the check of its values. Never imports torch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, get_args, get_type_hints

from clarinet.recipes.errors import ConfigError

T = TypeVar("T")
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def option(
    default: T,
    sentence: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    names: "OpenNames | None" = None,
    earlier: Mapping[str, str] | None = None,
) -> T:
    """A field with its sentence for forms and documentation, and what its values may be.

    Args:
        default, sentence: of the field.
        minimum, maximum: inclusive bounds of a number.
        names: of a text that is a name, if it must be one of these.
        earlier: what a text was called in earlier versions, to what it is called now.
    """
    return field(default=default, metadata=_told(sentence, minimum, maximum, names, earlier))


def required(sentence: str, *, minimum: float | None = None, maximum: float | None = None) -> Any:
    """A field without a default, with its sentence and bounds."""
    return field(metadata=_told(sentence, minimum, maximum))


@dataclass(frozen=True, slots=True)
class OpenNames:
    """Names that a text may be: those that are known here, and any of a pattern."""

    known: tuple[str, ...]
    pattern: re.Pattern[str]
    words: str  # for the pattern

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.known or bool(self.pattern.fullmatch(name)))


def _told(
    sentence: str,
    minimum: float | None,
    maximum: float | None,
    names: OpenNames | None = None,
    earlier: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    more = {"minimum": minimum, "maximum": maximum, "names": names, "earlier": earlier}
    return {"help": sentence} | {name: value for name, value in more.items() if value is not None}


def kinds_of(group: type[Any]) -> Mapping[str, Any]:
    """The type of each field of a class."""
    return get_type_hints(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Fields that belong together, each checked when the group is made.

    Raises:
        ConfigError: a value has the wrong type, is out of bounds or is none of its choices.
    """

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(group: Any) -> None:
    """Bring each option of a frozen dataclass into its type; raises ConfigError where that cannot be."""
    kinds = kinds_of(type(group))
    for item in fields(group):
        if "help" in item.metadata:
            value = checked(item.name, getattr(group, item.name), kinds[item.name], item.metadata)
            object.__setattr__(group, item.name, value)


def checked(name: str, value: Any, kind: Any, metadata: Mapping[str, Any]) -> Any:
    """The value in its field's type (an int is a fine float), or a ConfigError with field and value."""
    names: OpenNames | None = metadata.get("names")
    if names is not None and value not in names:
        told = f"{', '.join(names.known)}, or {names.words}"
        raise ConfigError(f"{name} is {value!r}, but must be one of {told}", name)
    choices = get_args(kind)
    if choices:
        if isinstance(value, bool) or value not in choices:
            raise ConfigError(f"{name} is {value!r}, but must be one of {', '.join(map(str, choices))}", name)
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ConfigError(f"{name} is larger than any number here", name) from None
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ConfigError(f"{name} is {value!r}, but must be {KINDS[kind]}", name)
    if isinstance(value, str):
        return metadata.get("earlier", {}).get(value, value)
    low, high = metadata.get("minimum"), metadata.get("maximum")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise ConfigError(f"{name} is {value!r}, but must lie between {low} and {high}", name)
    return value
