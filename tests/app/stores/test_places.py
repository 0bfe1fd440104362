"""What every place of artefacts promises, by a folder and by a bucket."""

import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from app.clock import utc_now
from app.storage import Storage, StoredFileDamaged, StoredFileMissing
from app.stores.folder import FolderStorage
from app.stores.objects import PART
from tests.buckets import bucket_of, bucket_settings, new_bucket


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return FolderStorage(tmp_path / "artefacts")
    port = request.getfixturevalue("s3")
    return bucket_of(bucket_settings(tmp_path, port, new_bucket(port)))


def keys(place: Storage) -> list[str]:
    return sorted(about.key for about in place.listed())


def test_what_is_put_is_read_as_a_whole_and_in_parts(place: Storage) -> None:
    digest = place.put("a/b.bin", b"0123456789")

    assert digest == hashlib.sha256(b"0123456789").hexdigest()
    assert place.read("a/b.bin", offset=3, length=4) == b"3456"
    assert (place.read("a/b.bin"), place.read("a/b.bin", offset=7)) == (b"0123456789", b"789")
    assert (place.tail("a/b.bin", 3), place.tail("a/b.bin", 99), place.tail("no", 3)) == (
        b"789",
        b"0123456789",
        b"",
    )
    assert place.size_and_digest("a/b.bin") == (10, digest)
    assert place.read_as_written("a/b.bin", digest) == b"0123456789"
    with place.open("a/b.bin") as file:
        assert file.read() == b"0123456789"
    with pytest.raises(StoredFileDamaged):
        place.read_as_written("a/b.bin", digest, offset=1, length=3)
    place.check()


def test_large_and_empty_ones_come_back_as_they_went(place: Storage) -> None:
    large = os.urandom(2 * PART + 12_345)
    place.put("large", large)
    place.put("empty", b"")

    assert place.read("large") == large
    assert place.read("large", offset=PART - 3, length=6) == large[PART - 3 : PART + 3]
    assert (place.read("empty"), place.tail("empty", 5)) == (b"", b"")


def test_a_write_that_fails_leaves_nothing(place: Storage) -> None:
    def fail() -> None:
        with place.create("a/b.bin") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert keys(place) == []


def test_what_is_not_there_is_said(place: Storage) -> None:
    for read in (place.read, place.file, place.open, place.size_and_digest):
        with pytest.raises(StoredFileMissing):
            read("datasets/lost.bin")
    with pytest.raises(StoredFileMissing):
        place.read("datasets/lost.bin", offset=3, length=4)

    assert place.about("datasets/lost.bin") is None
    assert not place.delete("datasets/lost.bin")
    assert place.names("datasets") == set()


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "", "."])
def test_keys_stay_below_the_root(place: Storage, key: str) -> None:
    with pytest.raises(ValueError, match="below the root"):
        place.put(key, b"x")


def test_they_are_listed_moved_and_deleted(place: Storage) -> None:
    for key in ("trials/1/log", "trials/1/checkpoint", "trials/2/log", "trials/10/a/b", "other"):
        place.put(key, b"12345")

    about = place.about("trials/1/log")
    assert about is not None
    assert (about.key, about.size) == ("trials/1/log", 5)
    assert abs(about.changed_at - utc_now()) < timedelta(minutes=5)
    assert place.names("trials") == {"1", "2", "10"}
    assert place.names("trials/1") == {"log", "checkpoint"}
    assert place.paths("trials", 2) == {"1", "1/log", "1/checkpoint", "2", "2/log", "10", "10/a"}
    assert place.paths("trials", 3) == place.paths("trials", 2) | {"10/a/b"}
    assert sorted(each.key for each in place.listed("trials/1")) == ["trials/1/checkpoint", "trials/1/log"]

    place.put("other", b"other bytes")
    changed = place.about("other")
    place.move("trials/2/log", "trials/3/log")
    place.delete_tree("trials/1")
    place.delete_tree("never was")
    place.drop_empty("trials/2")

    assert changed is not None
    assert changed.version != about.version
    assert place.delete("other")
    assert keys(place) == ["trials/10/a/b", "trials/3/log"]
    assert place.names("trials") - {"1"} == {"10", "3"}
    assert place.read("trials/3/log") == b"12345"


def test_what_works_by_paths_gets_a_folder_and_what_it_writes_is_kept(place: Storage) -> None:
    place.put("uploads/1/data", b"a zip")
    place.put("models/1/old", b"of before")

    with place.local("uploads/1/data") as folder:
        assert folder.path("uploads/1/data").read_bytes() == b"a zip"
        folder.put("models/2/weights", b"weights")
        folder.put("models/2/deep/card", b"card")
        folder.put("log", b"line")
        place.keep(folder, "models/2")
        place.keep(folder, "log")
        with folder.path("log").open("ab") as log:
            log.write(b", another")
        place.keep(folder, "log")
    with pytest.raises(StoredFileMissing), place.local("nothing") as folder:
        folder.read("nothing")

    assert place.read("models/2/deep/card") == b"card"
    assert place.tail("log", 99) == b"line, another"
    assert keys(place) == ["log", "models/1/old", "models/2/deep/card", "models/2/weights", "uploads/1/data"]
