"""Frozen labels: the file that runs of any age have, as the one table of labels."""

import io
from pathlib import Path

import numpy as np
import pytest

from app.runs.labels import freeze, key_of, thaw
from app.storage import StoredFileDamaged
from app.stores.folder import FolderStorage
from clarinet.files.label_files import load_labels
from clarinet.files.label_table import LabelRow, Labels

ROWS = [
    LabelRow(1, "true", 2, 1.0, example_id=91),
    LabelRow(4, "complementary", 0, 0.5, example_id=94),
    LabelRow(4, "complementary", 2, 0.25, example_id=94),
]
COLUMNS = {"example_ids": "<i8", "positions": "<i8", "kinds": "|u1", "classes": "<i8", "weights": "<f4"}


def test_a_snapshot_has_the_columns_that_it_always_had(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)

    digest = freeze(storage, Labels.of(ROWS, num_classes=3))

    with np.load(io.BytesIO(storage.read(key_of(digest)))) as arrays:
        assert {name: arrays[name].dtype.str for name in arrays.files} == COLUMNS
        assert arrays["kinds"].tolist() == [1, 0, 0]
    assert freeze(storage, Labels.of(ROWS, num_classes=4)) == digest


def test_one_that_was_damaged_is_said_until_the_same_labels_are_frozen_again(tmp_path: Path) -> None:
    storage, labels = FolderStorage(tmp_path), Labels.of(ROWS, num_classes=3)
    digest = freeze(storage, labels)
    storage.path(key_of(digest)).write_bytes(b"")

    with pytest.raises(StoredFileDamaged):
        thaw(storage, digest, num_classes=3)
    freeze(storage, labels)

    assert thaw(storage, digest, num_classes=3).weights.tolist() == [1, 0.5, 0.25]


@pytest.mark.parametrize("reader", ["thaw", "load_labels"])
def test_what_was_frozen_is_read_as_the_same_table(reader: str, tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    digest = freeze(storage, Labels.of(ROWS, num_classes=3))

    if reader == "thaw":
        labels = thaw(storage, digest, num_classes=3)
    else:
        labels = load_labels(storage.path(key_of(digest)), images=5, num_classes=3)

    assert labels.positions is not None
    assert labels.positions.tolist() == [1, 4, 4]
    assert labels.true.tolist() == [2, -1, -1]
    assert labels.complementary.tolist() == [-1, 0, 2]
    assert labels.weights.tolist() == [1, 0.5, 0.25]
    assert (labels.counts(0), labels.counts(1)) == ([1, 0, 1], [0, 0, 1])
