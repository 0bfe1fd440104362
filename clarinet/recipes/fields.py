"""A field of a configuration: its sentence and bounds, and the check of its values. Never imports torch."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeVar, get_args

from clarinet.recipes.errors import ConfigError

T = TypeVar("T")


def option(default: T, sentence: str, *, minimum: float | None = None, maximum: float | None = None) -> T:
    """A field with its sentence for forms and documentation, and its inclusive bounds."""
    bounds = {"minimum": minimum, "maximum": maximum}
    told = {name: bound for name, bound in bounds.items() if bound is not None}
    return field(default=default, metadata={"help": sentence} | told)


def checked(name: str, value: Any, kind: Any, metadata: Mapping[str, Any]) -> Any:
    """The value in its field's type (an int is a fine float), or a ConfigError with field and value."""
    choices = get_args(kind)
    if choices:
        if isinstance(value, bool) or value not in choices:
            raise ConfigError(f"{name} is {value!r}, but must be one of {', '.join(map(str, choices))}")
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise ConfigError(f"{name} is larger than any number here") from None
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ConfigError(f"{name} is {value!r}, but must be of type {kind.__name__}")
    low, high = metadata.get("minimum"), metadata.get("maximum")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise ConfigError(f"{name} is {value!r}, but must lie between {low} and {high}")
    return value
