"""Artefacts appear whole or not at all, and only below the root."""

import hashlib
from pathlib import Path

import pytest

from app.storage import StoredFileDamaged, StoredFileMissing
from app.stores.folder import FolderStorage


@pytest.fixture
def store(tmp_path: Path) -> FolderStorage:
    return FolderStorage(tmp_path / "artefacts")


def test_put_gives_the_digest_and_read_gives_parts(store: FolderStorage) -> None:
    assert store.put("a/b.bin", b"0123456789") == hashlib.sha256(b"0123456789").hexdigest()
    assert store.read("a/b.bin") == b"0123456789"
    assert store.read("a/b.bin", offset=3, length=4) == b"3456"


def test_a_write_that_fails_leaves_nothing(store: FolderStorage) -> None:
    def fail() -> None:
        with store.create("a/b.bin") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert [path for path in store.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "", "."])
def test_keys_stay_below_the_root(store: FolderStorage, key: str) -> None:
    with pytest.raises(ValueError, match="below the root"):
        store.path(key)


def test_delete_tree_takes_one_prefix(store: FolderStorage) -> None:
    store.put("a/1", b"x")
    store.put("b/1", b"x")

    store.delete_tree("a")
    store.delete_tree("never was")

    assert not store.path("a/1").exists()
    assert store.read("b/1") == b"x"


def test_what_is_not_there_is_said_with_what_to_do(store: FolderStorage) -> None:
    with pytest.raises(StoredFileMissing, match="Restore it from a backup"):
        store.read("datasets/lost.bin", offset=3, length=4)
    store.put("datasets", b"in the folder's place")
    with pytest.raises(StoredFileMissing):
        store.read("datasets/lost.bin")


def test_what_cannot_be_read_or_is_not_what_was_written_is_said(store: FolderStorage) -> None:
    digest = store.put("a/b.bin", b"0123456789")
    part = hashlib.sha256(b"345").hexdigest()

    assert store.read_as_written("a/b.bin", digest) == b"0123456789"
    assert store.read_as_written("a/b.bin", part, offset=3, length=3) == b"345"
    store.path("a/b.bin").write_bytes(b"01234")
    with pytest.raises(StoredFileDamaged, match="damaged or cannot be read"):
        store.read_as_written("a/b.bin", digest)
    with pytest.raises(StoredFileDamaged):
        store.read_as_written("a/b.bin", part, offset=3, length=3)
    with pytest.raises(StoredFileDamaged):
        store.read("a")  # a folder
