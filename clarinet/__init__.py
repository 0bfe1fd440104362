"""CLARINET: learn from "it is not a ..." labels on one domain, predict on another.

The names below load torch only when they are first used, so that configs and errors stay cheap to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clarinet.config import TrainConfig
from clarinet.errors import (
    CheckpointError,
    CheckpointMismatch,
    ClarinetError,
    ConfigError,
    DataError,
    Diverged,
    Interrupted,
    NonUniformLabels,
    OtherClasses,
)
from clarinet.memory import keep_freed_memory
from clarinet.methods import METHODS, config_for
from clarinet.schema import json_schema

if TYPE_CHECKING:
    from clarinet.cards import model_card
    from clarinet.checkpoints import load_card, load_model, save_model
    from clarinet.data import Labels, TrainData, load_npz
    from clarinet.evaluation import (
        accuracy_from_complementary,
        agreement,
        information,
        label_noise_from_predictions,
        predict,
    )
    from clarinet.export import export_model, export_onnx
    from clarinet.folders import load_folder
    from clarinet.label_files import load_labels
    from clarinet.labels import simulate_labels
    from clarinet.relabelling import pseudo_labels, with_pseudo_labels
    from clarinet.streams import ImageFiles, ImageStream, NpyImages
    from clarinet.training import EpochReport, TrainResult, train, train_in_steps
    from clarinet.transitions import estimate_transition
    from clarinet.turns import take_turns
    from clarinet.uniformity import check_uniformity

__all__ = [
    "METHODS",
    "CheckpointError",
    "CheckpointMismatch",
    "ClarinetError",
    "ConfigError",
    "DataError",
    "Diverged",
    "EpochReport",
    "ImageFiles",
    "ImageStream",
    "Interrupted",
    "Labels",
    "NonUniformLabels",
    "NpyImages",
    "OtherClasses",
    "TrainConfig",
    "TrainData",
    "TrainResult",
    "accuracy_from_complementary",
    "agreement",
    "check_uniformity",
    "config_for",
    "estimate_transition",
    "export_model",
    "export_onnx",
    "information",
    "json_schema",
    "keep_freed_memory",
    "label_noise_from_predictions",
    "load_card",
    "load_folder",
    "load_labels",
    "load_model",
    "load_npz",
    "model_card",
    "predict",
    "pseudo_labels",
    "save_model",
    "simulate_labels",
    "take_turns",
    "train",
    "train_in_steps",
    "with_pseudo_labels",
]

_LAZY = {
    "ImageFiles": "streams",
    "ImageStream": "streams",
    "NpyImages": "streams",
    "model_card": "cards",
    "load_card": "checkpoints",
    "load_model": "checkpoints",
    "save_model": "checkpoints",
    "Labels": "data",
    "TrainData": "data",
    "load_npz": "data",
    "accuracy_from_complementary": "evaluation",
    "agreement": "evaluation",
    "information": "evaluation",
    "label_noise_from_predictions": "evaluation",
    "predict": "evaluation",
    "pseudo_labels": "relabelling",
    "with_pseudo_labels": "relabelling",
    "export_model": "export",
    "export_onnx": "export",
    "load_folder": "folders",
    "load_labels": "label_files",
    "simulate_labels": "labels",
    "EpochReport": "training",
    "TrainResult": "training",
    "train": "training",
    "train_in_steps": "training",
    "take_turns": "turns",
    "estimate_transition": "transitions",
    "check_uniformity": "uniformity",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'clarinet' has no attribute {name!r}")
    return getattr(import_module(f"clarinet.{_LAZY[name]}"), name)
