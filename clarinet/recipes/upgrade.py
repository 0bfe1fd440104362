"""Configurations of earlier versions, in checkpoints, records, cards and databases, as today's.

The one place that knows how hyper-parameters used to be called. Never imports torch.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
        "entropy_gradient": "adversarial_gradient",
    }
)
"""Earlier name to today's."""

GRADIENTS: Mapping[str, str] = MappingProxyType({"none": "features", "reversed": "weights"})
"""Earlier value of entropy_gradient, when T(f) inside g was always a constant, to that of today."""

UNTOLD = (
    "adversarial_gradient",
    "source_terms",
    "discriminator_weights",
    "drop_last",
    "entropy_epsilon",
    "entropy_schedule_lead",
    "second_decay",
)
"""What a configuration with entropy_gradient has no value of, though it had its way."""

REWORDED: Mapping[str, Mapping[str, str]] = MappingProxyType({"pretrained": {"torchvision": "hub"}})
"""Name to its values that were called differently, and what they are called today."""

STRENGTHS: Mapping[str, str] = MappingProxyType(
    {"trade_off": "adversary", "discrepancy_weight": "discrepancy"}
)
"""Earlier weight, 0 where the loss was not taken, to the kind of adaptation whose weight it was."""

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

PRESETS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("clarinet-plus", "default"): "digits",
        ("clarinet-plus", "quick"): "digits-quick",
        ("mcc", "default"): "digits",
        ("gac+mcc", "default"): "digits",
    }
)
"""Method and preset of earlier versions, which were for digits alone, to what the preset is called now."""


def upgraded_preset(method: str, preset: str) -> str:
    """What the preset that any version kept is called today."""
    return PRESETS.get((method, preset), preset)


def upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that lie side by side under today's names; some may be missing, as in changes of a preset.

    What this version has no place for keeps its earlier name, so that it can be shown; a configuration made
    of it is refused.
    """
    weights = {name: values[name] for name in STRENGTHS if name in values}
    found = {
        RENAMED.get(name, name): _reworded(name, value)
        for name, value in values.items()
        if name not in weights
        and name != "entropy_gradient"
        and not (name in CONSTANT and value == CONSTANT[name])
    }
    if "preset" in found:
        found["preset"] = upgraded_preset(found.get("method", ""), found["preset"])
    found |= _adaptation(weights)
    return found | _adversary(found, values["entropy_gradient"]) if is_earlier(values) else found


def is_earlier(values: Mapping[str, Any]) -> bool:
    """Whether values that lie side by side are of the time before the fields in UNTOLD."""
    return "entropy_gradient" in values


def upgraded_spec(values: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a network, as model files have it, under today's names."""
    return {RENAMED.get(name, name): value for name, value in values.items()}


def _reworded(name: str, value: Any) -> Any:
    changed = REWORDED.get(name)
    return changed.get(value, value) if changed and isinstance(value, str) else value


def _adaptation(weights: Mapping[str, float]) -> dict[str, Any]:
    """The kind and weight of the adaptation, which two weights used to say; as they were if both did."""
    in_force = [name for name, weight in weights.items() if weight]
    if not in_force:
        return {"adaptation_kind": "none"} if weights else {}
    if len(in_force) > 1:
        return dict(weights)
    (name,) = in_force
    return {"adaptation_kind": STRENGTHS[name], "adaptation_weight": weights[name]}


def _adversary(found: Mapping[str, Any], entropy_gradient: object) -> dict[str, Any]:
    """What the adversary of that time did, where it decides anything: elsewhere the defaults do as well.

    T(f) inside g carried no gradient, and two source terms were averaged.
    """
    if found.get("adaptation_kind", "adversary") != "adversary":
        return {}
    own: dict[str, Any] = {}
    if found.get("conditioning", True):
        own["adversarial_gradient"] = GRADIENTS.get(str(entropy_gradient), entropy_gradient)
    # The second of two steps has true labels alone, as has what learns from no complementary ones.
    one_step = found.get("first_step_share", 0) == 0
    if one_step and found.get("setting") == "pc" and found.get("complementary_loss") != "none":
        own["source_terms"] = "mean"
    return own
