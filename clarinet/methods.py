"""The methods, each a small set of values over the defaults of `TrainConfig`. Never imports torch."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from clarinet.config import TrainConfig
from clarinet.errors import ConfigError

Presets = Mapping[str, Mapping[str, Any]]

_PAPER: dict[str, Any] = {}  # the defaults of TrainConfig are the paper's values

_PLUS: dict[str, Any] = {
    "epochs": 40,
    "steps_per_epoch": 100,
    "checkpoint_every": 2,
    "input_normalisation": "instance",
    "batch_norm": True,
    "precision": "bfloat16",
    "optimizer": "adamw",
    "learning_rate": 2e-3,
    "weight_decay": 1e-3,
    "warmup": 0.05,
    "final_learning_rate": 0.02,
    "averaging": 0.995,
    "complementary_loss": "bounded",
    "trade_off": 0.0,
    "augmentation": 0.85,
    "moment_match": True,
    "background_blending": True,
    "source_self_training_start": 0.3,
    "target_self_training_start": 0.4,
}

_QUICK: dict[str, Any] = _PLUS | {
    "epochs": 30,
    "steps_per_epoch": 40,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "averaging": 0.98,
    "augmentation_start": 0.1,
    "augmentation_full": 0.3,
    "class_floor": 0.5,
}

METHODS: Mapping[str, Presets] = MappingProxyType(
    {
        "clarinet": MappingProxyType({"paper": _PAPER}),
        "clarinet-plus": MappingProxyType({"default": _PLUS, "quick": _QUICK}),
    }
)
"""Method to preset to what differs from TrainConfig's defaults; a method's first preset is its default."""


def config_for(method: str, preset: str | None = None, **overrides: Any) -> TrainConfig:
    """The configuration of a method's preset (its first one when None), with single values replaced.

    Raises:
        ConfigError: unknown method, preset or hyper-parameter, or a refused value.
    """
    if method not in METHODS:
        raise ConfigError(f"unknown method {method!r}; known ones are {', '.join(METHODS)}")
    presets = METHODS[method]
    name = preset if preset is not None else next(iter(presets))
    if name not in presets:
        raise ConfigError(f"method {method} has no preset {name!r}; it has {', '.join(presets)}")
    return TrainConfig.from_dict({**presets[name], **overrides, "method": method, "preset": name})
