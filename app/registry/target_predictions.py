"""What a model takes the images of its run's target for: a file beside its weights, checked by its digest."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.registry.errors import ModelWithoutPredictions
from app.registry.models import Model
from app.storage import Storage

FILE = "target_predictions.npz"
FACTS = "target_predictions"  # on the card


@dataclass(frozen=True, slots=True, eq=False)
class TargetPredictions:
    """One row per training image of the target's version that the run used."""

    example_ids: NDArray[np.int64]  # (N,)
    classes: NDArray[np.int64]  # (N,) the most probable one
    probabilities: NDArray[np.float32]  # (N,) its probability


def keep_target_predictions(storage: Storage, key: str, made: TargetPredictions) -> dict[str, Any]:
    """Write the file of a model whose files lie under `key`; gives what its card says of it."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        example_ids=made.example_ids.astype(np.int64),
        classes=made.classes.astype(np.int64),
        probabilities=made.probabilities.astype(np.float32),
    )
    data = buffer.getvalue()
    digest = storage.put(f"{key}/{FILE}", data)
    return {"sha256": digest, "size_bytes": len(data), "images": len(made.example_ids)}


def target_predictions(storage: Storage, model: Model) -> TargetPredictions:
    """Read them back.

    Raises:
        ModelWithoutPredictions: the model is older than that file.
        StoredFileMissing, StoredFileDamaged: the server has lost it.
    """
    data = storage.read_as_written(f"{model.key}/{FILE}", predictions_digest(model))
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return TargetPredictions(arrays["example_ids"], arrays["classes"], arrays["probabilities"])


def predictions_digest(model: Model) -> str:
    """SHA-256 of the file, which the card has.

    Raises:
        ModelWithoutPredictions: the model is older than that file.
    """
    facts = model.card.get(FACTS)
    if facts is None:
        raise ModelWithoutPredictions
    return str(facts["sha256"])
