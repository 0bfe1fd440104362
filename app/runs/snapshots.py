"""The frozen labels of a run as a content-addressed file: example, kind, class and weight."""

import hashlib
import io
from typing import Any

import numpy as np

from app.storage import Storage
from clarinet.files.label_table import Labels

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


def thaw(storage: Storage, digest: str, *, num_classes: int) -> Labels:
    """Read a snapshot back.

    Raises:
        ValueError: the file is not what was frozen.
    """
    data = storage.read(key_of(digest))
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"snapshot {digest} does not match its own digest")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return Labels(**{name: arrays[name] for name in _ARRAYS}, num_classes=num_classes)
