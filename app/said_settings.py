"""What a variable says for a setting: a text, JSON, or nothing, which means the default."""

import json
from pathlib import Path
from typing import Any, Literal, get_origin
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, field_validator
from pydantic_settings import BaseSettings

_SHOWN = 40  # characters of a value that is told back
_JSON = {tuple: ("a JSON list of texts", '["one", "two"]'), dict: ("a JSON object", '{"one": "two"}')}
OURS = "value_error"  # type of a fault whose words are a validator's own, and name the setting


class SaidSettings(BaseSettings):
    """Settings whose refusals name the variable; `model_config` must leave decoding to them."""

    @field_validator("*", mode="wrap")
    @classmethod
    def name_what_is_wrong(
        cls, given: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        """The value of a field; an empty text is the default where the field takes none."""
        assert info.field_name is not None  # it validates fields
        field, name = cls.model_fields[info.field_name], f"CLARINET_{info.field_name.upper()}"
        kind = get_origin(field.annotation)
        is_empty = isinstance(given, str) and not given.strip()
        if is_empty and (kind in _JSON or field.annotation is Path):
            return field.get_default()
        try:
            return handler(_of_json(given, kind, name) if isinstance(given, str) and kind in _JSON else given)
        except ValidationError as error:
            # One of a few words has no empty one: development is no guess for a forgotten "production".
            if is_empty and kind is not Literal:
                return field.get_default()
            first = error.errors()[0]
            if first["type"] == OURS:
                raise
            raise ValueError(f"{name} is {str(given)[:_SHOWN]!r}: {_lowered(first['msg'])}") from error


def parts_of(given: str, name: str, *, with_port: bool = True) -> SplitResult:
    """An address in its parts; one that cannot be read is told by the variable, without what it holds."""
    try:
        parts = urlsplit(given)
        if with_port:
            parts.port  # noqa: B018  only who reads it is told
    except ValueError as error:
        raise ValueError(f"{name} is no address: its host or its port cannot be read") from error
    return parts


def _of_json(given: str, kind: Any, name: str) -> Any:
    """What a text of JSON says; raises ValueError of another, and of a list with an empty text in it."""
    what, example = _JSON[kind]
    told = f"{name} is {given[:_SHOWN]!r}, which is not {what}, as {example}; leave it empty for the default"
    try:
        found = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ValueError(told) from error
    texts = list(found.values()) if isinstance(found, dict) else found
    is_kind = isinstance(found, dict if kind is dict else list)
    if not is_kind or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(told)
    return found


def _lowered(words: str) -> str:
    return words[:1].lower() + words[1:]
