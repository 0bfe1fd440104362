"""The frozen labels of a run as a content-addressed file: example, kind, class and weight."""

import hashlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.storage import Storage

COMPLEMENTARY, TRUE = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of a campaign in order of position. An example has one true label or complementary ones.

    Args:
        example_ids: (N,) int64.
        positions: (N,) int64, of the example in its dataset.
        kinds: (N,) uint8, COMPLEMENTARY or TRUE.
        classes: (N,) int64, the class it is not (complementary) or is (true); position in the campaign.
        weights: (N,) float32, trust in the label.
    """

    example_ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    classes: NDArray[np.int64]
    weights: NDArray[np.float32]

    def counts(self, kind: int, num_classes: int) -> list[int]:
        """How many labels of a kind there are by class."""
        counts: list[int] = np.bincount(self.classes[self.kinds == kind], minlength=num_classes).tolist()
        return counts


_ARRAYS = ("example_ids", "positions", "kinds", "classes", "weights")


def key_of(digest: str) -> str:
    """Where a snapshot lies in storage."""
    return f"snapshots/{digest}.npz"


def freeze(storage: Storage, labels: Labels) -> str:
    """Store labels under the SHA-256 of their file; gives the digest. Equal labels give one file."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: getattr(labels, name) for name in _ARRAYS}
    np.savez_compressed(buffer, **arrays)
    data = buffer.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    if not storage.path(key_of(digest)).exists():
        storage.put(key_of(digest), data)
    return digest


def thaw(storage: Storage, digest: str) -> Labels:
    """Read a snapshot back.

    Raises:
        ValueError: the file is not what was frozen.
    """
    data = storage.read(key_of(digest))
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"snapshot {digest} does not match its own digest")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return Labels(**{name: arrays[name] for name in _ARRAYS})
