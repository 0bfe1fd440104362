"""CLARINET: learn from "it is not a ..." labels on one domain, predict on another.

Each name below is loaded when it is first used: many a process needs one of them, and few need torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clarinet.data.drawn_labels import simulate_labels
    from clarinet.data.folders import load_folder
    from clarinet.data.npz import load_npz
    from clarinet.data.streams import ImageFiles, ImageStream, NpyImages
    from clarinet.data.training_data import TrainData
    from clarinet.data.transitions import estimate_transition
    from clarinet.data.uniformity import check_uniformity
    from clarinet.export.cards import model_card
    from clarinet.export.models import load_card, load_model, save_model
    from clarinet.export.onnx import export_model, export_onnx
    from clarinet.files.label_files import load_labels
    from clarinet.files.label_table import Labels
    from clarinet.files.looks import looks_of
    from clarinet.recipes.config import TrainConfig
    from clarinet.recipes.doing import Doing
    from clarinet.recipes.errors import (
        CheckpointError,
        CheckpointMismatch,
        ClarinetError,
        ColumnsLeftOut,
        ConfigError,
        DataError,
        Diverged,
        FilesLeftOut,
        Interrupted,
        NonUniformLabels,
        NotFitted,
        OtherClasses,
    )
    from clarinet.recipes.methods import config_for
    from clarinet.recipes.presets import METHODS
    from clarinet.run.estimator import Clarinet
    from clarinet.run.evaluation import (
        accuracy_from_complementary,
        agreement,
        information,
        label_noise_from_predictions,
        predict,
    )
    from clarinet.run.memory import keep_freed_memory
    from clarinet.run.relabelling import pseudo_labels, with_pseudo_labels
    from clarinet.run.training import EpochReport, TrainResult, train, train_in_steps
    from clarinet.run.turns import take_turns

__all__ = [
    "METHODS",
    "CheckpointError",
    "CheckpointMismatch",
    "Clarinet",
    "ClarinetError",
    "ColumnsLeftOut",
    "ConfigError",
    "DataError",
    "Diverged",
    "Doing",
    "EpochReport",
    "FilesLeftOut",
    "ImageFiles",
    "ImageStream",
    "Interrupted",
    "Labels",
    "NonUniformLabels",
    "NotFitted",
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
    "keep_freed_memory",
    "label_noise_from_predictions",
    "load_card",
    "load_folder",
    "load_labels",
    "load_model",
    "load_npz",
    "looks_of",
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
    "TrainConfig": "recipes.config",
    "Doing": "recipes.doing",
    "CheckpointError": "recipes.errors",
    "CheckpointMismatch": "recipes.errors",
    "ClarinetError": "recipes.errors",
    "ColumnsLeftOut": "recipes.errors",
    "ConfigError": "recipes.errors",
    "DataError": "recipes.errors",
    "Diverged": "recipes.errors",
    "FilesLeftOut": "recipes.errors",
    "Interrupted": "recipes.errors",
    "NonUniformLabels": "recipes.errors",
    "NotFitted": "recipes.errors",
    "OtherClasses": "recipes.errors",
    "config_for": "recipes.methods",
    "METHODS": "recipes.presets",
    "keep_freed_memory": "run.memory",
    "ImageFiles": "data.streams",
    "ImageStream": "data.streams",
    "NpyImages": "data.streams",
    "model_card": "export.cards",
    "load_card": "export.models",
    "load_model": "export.models",
    "save_model": "export.models",
    "Labels": "files.label_table",
    "looks_of": "files.looks",
    "TrainData": "data.training_data",
    "load_npz": "data.npz",
    "accuracy_from_complementary": "run.evaluation",
    "agreement": "run.evaluation",
    "information": "run.evaluation",
    "label_noise_from_predictions": "run.evaluation",
    "predict": "run.evaluation",
    "pseudo_labels": "run.relabelling",
    "with_pseudo_labels": "run.relabelling",
    "export_model": "export.onnx",
    "export_onnx": "export.onnx",
    "load_folder": "data.folders",
    "load_labels": "files.label_files",
    "simulate_labels": "data.drawn_labels",
    "EpochReport": "run.training",
    "TrainResult": "run.training",
    "train": "run.training",
    "train_in_steps": "run.training",
    "take_turns": "run.turns",
    "Clarinet": "run.estimator",
    "estimate_transition": "data.transitions",
    "check_uniformity": "data.uniformity",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'clarinet' has no attribute {name!r}")
    return getattr(import_module(f"clarinet.{_LAZY[name]}"), name)
