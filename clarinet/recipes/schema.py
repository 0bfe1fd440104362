"""The JSON schema of a configuration, with every preset: for forms and validators that load no torch."""

from dataclasses import fields
from typing import Any, get_args, get_type_hints

from clarinet.recipes.config import TrainConfig
from clarinet.recipes.methods import DESCRIPTIONS, METHODS, config_for


def json_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of every field; every preset under "x-presets"[method][preset] and each
    method's title and description under "x-methods"[method].
    """
    hints = get_type_hints(TrainConfig)
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    properties: dict[str, Any] = {}
    for item in fields(TrainConfig):
        choices = get_args(hints[item.name])
        kind = type(choices[0]) if choices else hints[item.name]
        entry: dict[str, Any] = {
            "title": item.name.replace("_", " ").capitalize(),
            "description": item.metadata["help"],
            "type": names[kind],
            "default": item.default,
        }
        entry |= {bound: item.metadata[bound] for bound in ("minimum", "maximum") if bound in item.metadata}
        if choices:
            entry["enum"] = list(choices)
        properties[item.name] = entry
    presets = {
        method: {preset: config_for(method, preset).to_dict() for preset in table}
        for method, table in METHODS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "TrainConfig",
        "description": "Hyper-parameters of one training run.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "x-methods": {
            method: {"title": title, "description": sentence}
            for method, (title, sentence) in DESCRIPTIONS.items()
        },
        "x-presets": presets,
    }
