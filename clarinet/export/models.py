"""Trained models on disk: the weights, what network they are for, and the card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clarinet.export.cards import model_card
from clarinet.networks.classifier import Classifier, ModelSpec
from clarinet.networks.own import OWN
from clarinet.recipes.errors import CheckpointError, ConfigError, ExportError
from clarinet.recipes.upgrade import upgraded_spec
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import read_tensors, write_tensors


def save_model(path: str | Path, result: TrainResult, *, card: Mapping[str, Any] | None = None) -> None:
    """Write a trained classifier with its card; `load_model` and `load_card` read them.

    Args:
        path: file to write, replaced in one step.
        result: the finished run.
        card: from `model_card`; None makes one that says nothing about data and labels.

    Raises:
        CheckpointNotWritten: the disk refuses it.
        ExportError: its backbone is a module of somebody's own.
    """
    path = Path(path)
    require_known_network(result.model)
    header = {"spec": result.model.spec.to_dict(), "card": dict(card or model_card(result))}
    write_tensors(path, result.model.state_dict(), header, kind="model")


def require_known_network(model: Classifier) -> None:
    """Raises ExportError of a model that no file could rebuild."""
    if model.spec.architecture == OWN:
        raise ExportError(
            "the model has a backbone of one's own, which a file of weights cannot rebuild; pickle the "
            "estimator, or write the network alone with export_onnx"
        )


def load_model(path: str | Path) -> Classifier:
    """Rebuild a classifier from `save_model`, on the CPU and in eval mode.

    Args:
        path: the safetensors file.

    Raises:
        CheckpointError: the file cannot be read, is damaged, or does not fit its own description.
    """
    tensors, header = read_tensors(path, kind="model")
    try:
        model = Classifier(ModelSpec(**upgraded_spec(header["spec"])))
        model.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError, ConfigError) as error:
        raise CheckpointError(f"{path} does not fit its own description: {error}") from error
    return model.eval()


def load_card(path: str | Path) -> dict[str, Any]:
    """The card that `save_model` wrote: plain JSON values by name, see `cards.model_card`.

    Args:
        path: the safetensors file.

    Raises:
        CheckpointError: the file cannot be read, or has none.
    """
    card = read_tensors(path, kind="model")[1].get("card")
    if not isinstance(card, dict):
        raise CheckpointError(f"{path} has no model card")
    return card
