"""Configurations of earlier versions, in checkpoints, records, cards and databases, as today's.

The one place that knows how hyper-parameters used to be called. Never imports torch.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from clarinet.recipes.errors import ConfigError

OWN = ("method", "preset", "setting", "seed")  # values that are in no group

RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "pseudo_label_share": "first_step_share",
        "batch_norm": "norm_per_domain",
        "averaging": "average_decay",
        "trade_off": "adaptation_weight",
        "discrepancy_weight": "adaptation_weight",
        "adversarial_start_epoch": "adaptation_start_epoch",
        "augmentation_kind": "distortion_kind",
        "augmentation": "distorted_share",
        "augmentation_start": "distortion_start",
        "augmentation_full": "distortion_full",
        "stroke": "changed_stroke",
        "pretraining": "pretraining_share",
    }
)
"""Earlier name to today's."""

CONSTANT: Mapping[str, Any] = MappingProxyType(
    {
        "momentum": 0.9,
        "rotation": 10.0,
        "scale": 0.15,
        "shift": 2.0,
        "crop": 0.3,
        "flip": 0.5,
        "colour_jitter": 0.4,
        "contrast_temperature": 0.5,
        "view_distortion": 1.5,
        "confidence": 0.9,
        "source_self_training_weight": 0.5,
        "target_self_training_weight": 1.0,
        "self_training_ramp": 0.075,
    }
)
"""What was a hyper-parameter and is a constant of this value now."""


def is_flat(values: Mapping[str, Any]) -> bool:
    """Whether values lie side by side, as earlier versions wrote them, not in groups."""
    return not any(isinstance(value, Mapping) for value in values.values())


def upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that lie side by side under today's names; some may be missing, as in changes of a preset.

    Raises:
        ConfigError: a value that this version has no place for; the version that wrote it can train it.
    """
    found: dict[str, Any] = {}
    weights = {name: values[name] for name in ("trade_off", "discrepancy_weight") if name in values}
    for name, value in values.items():
        if name in CONSTANT:
            if value != CONSTANT[name]:
                raise ConfigError(
                    f"{name} was {value!r}, but is always {CONSTANT[name]!r} in this version; the version "
                    "of clarinet that wrote it can go on with it"
                )
        elif name not in weights:
            found[RENAMED.get(name, name)] = value
    return found | _adaptation(weights)


def upgraded_spec(values: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a network, as model files have it, under today's names."""
    return {RENAMED.get(name, name): value for name, value in values.items()}


def _adaptation(weights: Mapping[str, float]) -> dict[str, Any]:
    """The kind and weight of the adaptation, which two weights used to say."""
    strengths = {
        "adversary": weights.get("trade_off", 0),
        "discrepancy": weights.get("discrepancy_weight", 0),
    }
    kinds = [kind for kind, weight in strengths.items() if weight]
    if len(kinds) > 1:
        raise ConfigError("trade_off and discrepancy_weight are both above 0; this version has one of them")
    if kinds:
        return {"adaptation_kind": kinds[0], "adaptation_weight": strengths[kinds[0]]}
    return {"adaptation_kind": "none"} if weights else {}
