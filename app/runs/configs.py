"""What the web process knows of a training configuration: the library's JSON schema, its presets and bounds.

The schema is written by `make schema`; app and library never import each other.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SCHEMA_PATH = Path(__file__).with_name("train_config.schema.json")
LEAST_FOR_CONVNEXT = 32  # pixels
PRETRAINED = (
    "",
    "torchvision",
)  # a file's path, which the library takes too, would let users read the worker's disk
WITHOUT_PRETRAINED = ("auto", "lenet", "dann", "dtn", "conv-large")
# Chosen beside the config and stored in columns of their own.
CHOSEN_APART = ("method", "setting", "preset", "seed")


class ConfigRefused(Exception):
    """A value does not fit the schema; `field` says which."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One hyper-parameter, as a form shows it."""

    name: str
    title: str
    help: str
    kind: str  # integer | number | boolean | string
    choices: tuple[Any, ...]
    minimum: float | None
    maximum: float | None

    def check(self, value: object) -> Any:
        """The value in its own type (an integer is a fine number).

        Raises:
            ConfigRefused: wrong type, outside its bounds, or none of the choices.
        """
        if not self._has_kind(value):
            wanted = {
                "integer": "a whole number",
                "number": "a number",
                "boolean": "true or false",
                "string": "a word",
            }
            raise ConfigRefused(self.name, f"{self.title} must be {wanted[self.kind]}, not {value!r}.")
        if self.choices and value not in self.choices:
            raise ConfigRefused(
                self.name, f"{self.title} must be one of {', '.join(map(str, self.choices))}, not {value!r}."
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Written so that NaN, which compares false with everything, is refused too.
            if self.minimum is not None and not value >= self.minimum:
                raise ConfigRefused(self.name, f"{self.title} must be at least {self.minimum:g}.")
            if self.maximum is not None and not value <= self.maximum:
                raise ConfigRefused(self.name, f"{self.title} must be at most {self.maximum:g}.")
        return float(value) if self.kind == "number" else value  # type: ignore[arg-type]  # checked above

    def parse(self, text: str) -> Any:
        """A form's text as a checked value; raises ConfigRefused like `check`."""
        text = text.strip()
        if self.kind == "boolean":
            return self.check({"true": True, "false": False}.get(text.lower(), text))
        if self.kind == "string":
            return self.check(text)
        try:
            return self.check(int(text) if self.kind == "integer" else float(text))
        except ValueError:
            return self.check(text)

    def _has_kind(self, value: object) -> bool:
        if isinstance(value, bool):
            return self.kind == "boolean"
        types: dict[str, tuple[type, ...]] = {
            "integer": (int,),
            "number": (int, float),
            "string": (str,),
            "boolean": (bool,),
        }
        return isinstance(value, types[self.kind])


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return schema


@cache
def _all_fields() -> dict[str, ConfigField]:
    return {
        name: ConfigField(
            name=name,
            title=entry["title"],
            help=entry["description"],
            kind=entry["type"],
            choices=tuple(entry.get("enum", ())),
            minimum=entry.get("minimum"),
            maximum=entry.get("maximum"),
        )
        for name, entry in _schema()["properties"].items()
    }


def fields() -> list[ConfigField]:
    """The hyper-parameters that a run may change, in the library's order."""
    return [field for name, field in _all_fields().items() if name not in CHOSEN_APART]


def presets() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Method -> preset -> every value; a method's first preset is its default."""
    found: Mapping[str, Mapping[str, Mapping[str, Any]]] = _schema()["x-presets"]
    return found


@dataclass(frozen=True, slots=True)
class MethodWords:
    """What a method is called, and one sentence that says what it does."""

    title: str
    description: str


def methods() -> Mapping[str, MethodWords]:
    """The words for each method, in the library's order."""
    return {
        name: MethodWords(entry["title"], entry["description"])
        for name, entry in _schema()["x-methods"].items()
    }


def first_preset(method: str) -> str:
    """The default preset of a method; "" for an unknown method, which `config_for` then refuses by name."""
    return next(iter(presets().get(method, {})), "")


def settings() -> tuple[str, ...]:
    """The settings a run may have."""
    return _all_fields()["setting"].choices


def config_for(method: str, setting: str, preset: str, overrides: Mapping[str, object]) -> dict[str, Any]:
    """Every TrainConfig field but the seed: the preset's values with single ones replaced.

    Raises:
        ConfigRefused: unknown method, setting, preset or field, or a value that the schema refuses.
    """
    table = presets()
    if method not in table:
        raise ConfigRefused("method", f"There is no method {method!r}; there are {', '.join(table)}.")
    if preset not in table[method]:
        known = ", ".join(table[method])
        raise ConfigRefused("preset", f"{method} has no preset {preset!r}; it has {known}.")
    if setting not in settings():
        raise ConfigRefused("setting", f"There is no setting {setting!r}; there are {', '.join(settings())}.")
    values = dict(table[method][preset])
    known_fields = {field.name: field for field in fields()}
    for name, value in overrides.items():
        if name not in known_fields:
            raise ConfigRefused(name, f"There is no hyper-parameter {name!r} to set here.")
        values[name] = known_fields[name].check(value)
    values |= {"method": method, "setting": setting, "preset": preset}
    del values["seed"]
    _check_together(values)
    return values


def _check_together(values: Mapping[str, Any]) -> None:
    """The rules of TrainConfig that a JSON schema cannot state; said here, they never reach a queue."""
    if values["augmentation_full"] < values["augmentation_start"]:
        raise ConfigRefused("augmentation_full", "Augmentation full must not come before augmentation start.")
    if values["trade_off"] > 0 and values["learning_rate"] == 0:
        raise ConfigRefused("learning_rate", "The learning rate must be above 0 while the trade-off is.")
    if values["pretrained"] not in PRETRAINED:
        raise ConfigRefused("pretrained", "Pretrained must be empty or torchvision.")
    if values["pretrained"] and values["architecture"] in WITHOUT_PRETRAINED:
        raise ConfigRefused("pretrained", f"There are no pretrained weights for {values['architecture']}.")
    if values["architecture"] == "convnext_tiny" and values["image_size"] < LEAST_FOR_CONVNEXT:
        raise ConfigRefused(
            "image_size", f"Image size must be at least {LEAST_FOR_CONVNEXT} for convnext_tiny."
        )
    if values["complementary_loss"] == "none" and values["setting"] == "cc":
        raise ConfigRefused("setting", "This method learns from true labels alone, so it needs PC.")
    if values["pseudo_label_share"] > 0 and values["complementary_loss"] == "none":
        raise ConfigRefused("pseudo_label_share", "The first of two steps needs a complementary loss.")
    if values["pseudo_label_share"] > 0 and values["epochs"] == 1:
        raise ConfigRefused("epochs", "Training in two steps needs at least 2 epochs.")
    pretraining_epochs = round(values["pretraining"] * values["epochs"])
    if pretraining_epochs >= values["epochs"]:
        raise ConfigRefused("pretraining", "Pretraining leaves no epoch to learn from labels.")
    adapts = values["trade_off"] > 0 or values["discrepancy_weight"] > 0
    if adapts and values["adversarial_start_epoch"] >= _adapting_epochs(values):
        raise ConfigRefused(
            "epochs", "The epochs end before adversarial start epoch: too few to adapt to the target."
        )


def _adapting_epochs(values: Mapping[str, Any]) -> int:
    """All epochs, or those of the second of two steps."""
    epochs: int = values["epochs"]
    if values["pseudo_label_share"] == 0:
        return epochs
    first: int = min(max(round(epochs * values["pseudo_label_share"]), 1), epochs - 1)
    return epochs - first
