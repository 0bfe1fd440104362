"""A bucket under faults: nothing acknowledged is lost, nothing half-written is read, outages are told."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.claims import LEASE
from app.datasets.models import Example
from app.db import connect
from app.main import create_app
from app.migrate import upgrade
from app.storage import StorageAway, StorageRefused, StoredFileDamaged, StoredFileMissing
from app.stores.ahead import PARTS_BEFORE_WHOLE
from app.stores.bucket import AWAY_S, BucketStorage
from app.stores.cache import Cache
from app.stores.chosen import StorageNotInstalled, storage_of
from app.stores.folder import FolderStorage
from app.stores.objects import PART
from tests.buckets import FaultyS3, bucket_of, bucket_settings, headers_of, new_bucket
from tests.factories import make_dataset, make_token, make_user
from worker.backup import copying
from worker.context import Context
from worker.mirror import Mirror

pytestmark = pytest.mark.long  # they wait for a store that is away
LARGE = os.urandom(3 * PART + 77)


def written(size: int) -> Callable[[BinaryIO], None]:
    """Writes so many bytes into a file."""

    def write(file: BinaryIO) -> None:
        file.write(b"x" * size)

    return write


@pytest.mark.parametrize("what", ["500", "slow", "lost", "cut"])
def test_what_was_acknowledged_is_there_whatever_every_third_request_meets(
    through: BucketStorage, faulty: FaultyS3, what: str
) -> None:
    faulty.fault = lambda _method, _path, number: what if number % 3 == 0 else ""

    small = {f"small/{number}": os.urandom(1000) for number in range(4)}
    digests = {key: through.put(key, data) for key, data in small.items()}
    through.put("large", LARGE)
    through.move("small/0", "moved")

    assert {key for key in small if through.about(key)} == set(small) - {"small/0"}
    for key, digest in digests.items():
        now = "moved" if key == "small/0" else key
        assert through.read_as_written(now, digest) == small[key]
    assert through.size_and_digest("large") == (len(LARGE), hashlib.sha256(LARGE).hexdigest())
    assert sorted(about.key for about in through.listed()) == sorted(
        ["large", "moved", *(set(small) - {"small/0"})]
    )
    assert any(happened == what for _, _, happened in faulty.asked)


def test_a_large_file_that_breaks_off_is_never_there(s3: int, faulty: FaultyS3, tmp_path: Path) -> None:
    settings = bucket_settings(tmp_path, faulty.port, new_bucket(s3))
    storage = bucket_of(settings, patience_s=0.5)
    storage.put("before", b"x")
    # The second part and all behind it fail.
    faulty.fault = lambda _method, path, _number: "500" if "partNumber=2" in path else ""

    with pytest.raises(StorageAway):
        storage._asked(lambda: storage._store.put("large", LARGE, use_multipart=True, chunk_size=PART))

    assert any("uploadId" in path and "partNumber=1" in path for _, path, _ in faulty.asked)
    faulty.fault = lambda _method, _path, _number: ""
    time.sleep(AWAY_S)
    assert storage.about("large") is None
    assert [about.key for about in storage.listed()] == ["before"]


def test_other_bytes_than_were_written_are_damage(s3: int, tmp_path: Path) -> None:
    settings = bucket_settings(tmp_path, s3, new_bucket(s3))
    storage, elsewhere = (
        bucket_of(settings),
        bucket_of(settings.model_copy(update={"data_dir": tmp_path / "b"})),
    )
    digest = storage.put("a", b"0123456789")
    assert elsewhere.read("a") == b"0123456789"
    # Half of it, with the digest of the whole.
    storage._store.put("a", b"01234", attributes={"sha256": digest})

    with pytest.raises(StoredFileDamaged):
        storage.read("a")

    # What is damaged on one machine alone is fetched again.
    storage.put("a", b"0123456789")
    path = elsewhere.file("a")
    path.write_bytes(b"012345678X")
    assert elsewhere.read_as_written("a", digest) == b"0123456789"


def test_a_store_that_is_away_is_told_and_not_waited_for_by_everybody(
    s3: int, faulty: FaultyS3, tmp_path: Path
) -> None:
    storage = bucket_of(bucket_settings(tmp_path, faulty.port, new_bucket(s3)), patience_s=1)
    storage.put("a", b"1")
    faulty.fault = lambda _method, _path, _number: "500"

    with pytest.raises(StorageAway, match="does not answer"):
        storage.read("a")
    asked = len(faulty.asked)
    with pytest.raises(StorageAway, match="a moment ago"):
        storage.put("b", b"2")
    assert len(faulty.asked) == asked
    storage.delete_tree("a")  # as in a folder, this is no error

    faulty.fault = lambda _method, _path, _number: ""
    time.sleep(AWAY_S)
    assert storage.read("a") == b"1"


def test_a_bucket_that_is_not_there_is_said(s3: int, tmp_path: Path) -> None:
    storage = bucket_of(bucket_settings(tmp_path, s3, "there-is-none"))

    with pytest.raises(StorageAway, match="no such bucket"):
        storage.check()
    with pytest.raises(StoredFileMissing):  # the answer to a HEAD has no body that could say more
        storage.read("a")
    asked: list[Callable[[], object]] = [
        lambda: storage.put("a", b"1"),
        lambda: list(storage.listed("a")),
        lambda: storage.names("a"),
        lambda: storage.paths("a", 2),
    ]
    for ask in asked:
        with pytest.raises(StorageRefused, match="there is no such bucket: s3://there-is-none"):
            ask()
    with (
        storage.local() as folder,
        Mirror(storage, folder, "log", every_s=0.01),  # its end is no error, as while a bucket is away
    ):
        folder.put("log", b"1")


def test_a_bucket_that_refuses_us_is_told_at_once(s3: int, faulty: FaultyS3, tmp_path: Path) -> None:
    storage = bucket_of(bucket_settings(tmp_path, faulty.port, new_bucket(s3)), patience_s=60)
    faulty.fault = lambda _method, _path, _number: "403"

    with pytest.raises(StorageRefused, match="refuses us"):
        storage.about("a")


def test_after_some_parts_the_whole_is_fetched_once(s3: int, faulty: FaultyS3, tmp_path: Path) -> None:
    storage = bucket_of(bucket_settings(tmp_path, faulty.port, new_bucket(s3)))
    storage.put("shard", LARGE)
    before = len(faulty.asked)

    for number in range(PARTS_BEFORE_WHOLE):
        assert storage.read("shard", offset=number, length=9) == LARGE[number : number + 9]
    wait_until(lambda: storage._cache.find("shard") is not None)
    asked = len(faulty.asked)
    for number in range(100):
        assert storage.read("shard", offset=number, length=9) == LARGE[number : number + 9]

    assert asked - before == PARTS_BEFORE_WHOLE + 1 + 4  # one look and four parts
    assert len(faulty.asked) == asked


def test_several_at_once_fetch_one_copy(s3: int, faulty: FaultyS3, tmp_path: Path) -> None:
    storage = bucket_of(bucket_settings(tmp_path, faulty.port, new_bucket(s3)))
    storage.put("shard", LARGE)
    before, got = len(faulty.asked), []

    threads = [threading.Thread(target=lambda: got.append(storage.read("shard"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == [LARGE] * 6
    assert len(faulty.asked) - before == 5


class TestCache:
    def test_the_least_lately_used_makes_room(self, tmp_path: Path) -> None:
        cache = Cache(tmp_path, max_bytes=250)
        for moment, key in enumerate(("a", "b", "c"), start=round(time.time()) - 1000):
            path = cache.fetched(key, written(100))
            os.utime(path, (moment, moment))
        assert cache.find("b")  # used now; "a" went for "c"

        cache.fetched("d", written(100))

        assert [cache.find(key) is not None for key in "abcd"] == [False, True, False, True]

    def test_what_nobody_has_used_for_a_week_goes(self, tmp_path: Path) -> None:
        cache = Cache(tmp_path, max_bytes=250)
        os.utime(cache.fetched("old", written(10)), (1000, 1000))

        cache.fetched("new", written(10))

        assert [cache.find(key) is not None for key in ("old", "new")] == [False, True]

    def test_one_that_is_larger_than_all_room_is_kept_while_it_is_the_last(self, tmp_path: Path) -> None:
        cache = Cache(tmp_path, max_bytes=10)
        large = cache.fetched("large", written(100))
        assert large.exists()
        cache.fetched("small", written(1))
        assert not large.exists()

    def test_what_fails_leaves_nothing_and_places_go_with_their_process(self, tmp_path: Path) -> None:
        cache = Cache(tmp_path, max_bytes=10)

        def fail(_file: object) -> None:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            cache.fetched("a", fail)
        left = tmp_path / "places" / "of-the-dead"
        (left / "files").mkdir(parents=True)
        (left / ".lock").touch()
        with cache.place() as first:
            (first / "file").write_bytes(b"x")
            with cache.place():
                assert (first / "file").exists()
                assert not left.exists()

        assert not list((tmp_path / "new").iterdir())
        assert not list((tmp_path / "places").iterdir())


@pytest.mark.parametrize("how", ["AES256", "aws:kms"])
def test_the_store_is_asked_to_encrypt_whatever_way_an_object_comes(
    s3: int, tmp_path: Path, how: str
) -> None:
    bucket = new_bucket(s3)
    key = {"s3_kms_key_id": "arn:aws:kms:us-east-1:1:key/ours"} if how == "aws:kms" else {}
    storage = bucket_of(bucket_settings(tmp_path, s3, bucket, s3_encryption=how, **key))
    storage.put("small", b"x")
    storage.put("large", LARGE[: PART + 1])
    storage.put("before", b"y")
    storage.move("before", "moved")

    for name in ("small", "large", "moved"):
        told = headers_of(s3, bucket, name)
        assert told["x-amz-server-side-encryption"] == how
        assert told.get("x-amz-server-side-encryption-aws-kms-key-id") == key.get("s3_kms_key_id")
    assert len(headers_of(s3, bucket, "moved")["x-amz-meta-sha256"]) == 64


def test_the_web_process_tells_an_outage_and_works_again(
    s3: int, faulty: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.health.WITHIN_S", 20)  # on a machine that does much else
    settings = bucket_settings(tmp_path, faulty.port, new_bucket(s3))
    database = connect(settings.sqlalchemy_url)
    upgrade(database.engine)
    app = create_app(settings, database=database, publish=lambda _: None)
    with database.write() as session:
        token = make_token(session, make_user(session, role="admin"))
        dataset = make_dataset(session, app.state.storage)
        session.commit()
        example = session.scalars(select(Example).where(Example.dataset_id == dataset.id).limit(1)).one()
        image = f"/api/v1/datasets/{dataset.id}/examples/{example.id}/image"
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        well, ready = client.get(image), client.get("/readyz").json()
        disk = client.get("/api/v1/disk").json()
        faulty.fault = lambda _method, _path, _number: "500"
        app.state.readiness._stored_at = 0.0
        away, unready = client.get(image), client.get("/readyz")
        faulty.fault = lambda _method, _path, _number: ""
        time.sleep(AWAY_S)
        again = client.get(image)
    database.dispose()

    assert (well.status_code, ready["status"], ready["storage"]) == (200, "ok", "ok")
    assert disk["free_bytes"] is None
    assert (away.status_code, away.json()["outage"]) == (503, "store-away")
    assert int(away.headers["retry-after"]) > 0
    assert unready.status_code == 503
    assert f"s3://{settings.s3_bucket}/some/where" in unready.json()["storage"]
    assert again.content == well.content


def test_what_one_host_leaves_another_goes_on_with(s3: int, faulty: FaultyS3, tmp_path: Path) -> None:
    settings = bucket_settings(tmp_path / "one", faulty.port, new_bucket(s3))
    one = bucket_of(settings, patience_s=0.5)
    another = bucket_of(settings.model_copy(update={"data_dir": tmp_path / "another"}))
    with one.local() as folder, Mirror(one, folder, "checkpoint", every_s=0.05):
        folder.put("checkpoint", b"epoch 1")
        wait_until(lambda: another.tail("checkpoint", 9) == b"epoch 1")
        faulty.fault = lambda method, _path, _number: "500" if method == "PUT" else ""
        folder.put("checkpoint", b"epoch 2")
        wait_until(lambda: any(what == "500" for _, _, what in faulty.asked))
        faulty.fault = lambda _method, _path, _number: ""
        wait_until(lambda: another.tail("checkpoint", 9) == b"epoch 2")
        folder.put("checkpoint", b"epoch 3")
    with another.local("checkpoint") as folder, Mirror(another, folder, "checkpoint", every_s=0.05) as mirror:
        assert mirror.path.read_bytes() == b"epoch 3"
        mirror.drop()

    assert one.about("checkpoint") is None
    assert another.about("checkpoint") is None


def test_a_backup_of_a_bucket_comes_back_into_a_folder_and_a_bucket(s3: int, tmp_path: Path) -> None:
    bucket = bucket_of(bucket_settings(tmp_path / "host", s3, new_bucket(s3)))
    databases = [connect(f"sqlite:///{tmp_path / name}.db") for name in ("first", "second", "third")]
    first, second, third = databases
    upgrade(first.engine)
    for key, data in (("datasets/1/shard", LARGE), ("models/1/card", b"{}"), ("snapshots/a", b"")):
        bucket.put(key, data)
    made = copying.backup(first, bucket, tmp_path / "backups")
    again = copying.backup(first, bucket, tmp_path / "backups")
    folder = FolderStorage(tmp_path / "folder")
    back = bucket_of(bucket_settings(tmp_path / "back", s3, new_bucket(s3)))
    copying.restore(second, folder, made.path)
    copying.restore(third, back, made.path)

    assert (made.files, made.copied, again.copied) == (3, 3, 0)
    assert folder.read("datasets/1/shard") == back.read("datasets/1/shard") == LARGE
    assert {about.key for about in back.listed()} == {about.key for about in folder.listed()}
    with pytest.raises(copying.BackupRefused, match="files in s3://"):
        copying.restore(second, back, made.path)
    for database in databases:
        database.dispose()


def test_a_bucket_without_the_extra_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "app.stores.bucket", None)

    with pytest.raises(StorageNotInstalled, match=r"pip install 'clarinet\[s3\]'"):
        storage_of(bucket_settings(tmp_path, 1, "ours"))


def wait_until(holds: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


FORKED = """
import os, sys
from pathlib import Path
from tests.buckets import bucket_of, bucket_settings
from app.storage import StorageAway
settings = bucket_settings(Path(sys.argv[1]), 9, "none-listens-there")
def asked():
    try:
        bucket_of(settings, patience_s=0.1).about("a")
    except Exception as error:
        return type(error).__name__
print(asked(), flush=True)
if os.fork() == 0:
    print(asked(), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_process_forked_from_one_that_used_a_bucket_is_told_and_does_not_hang(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["StorageAway", "RuntimeError"]


def test_a_worker_waits_seconds_under_a_lease_and_beats_where_it_waits_longer(tmp_path: Path) -> None:
    context = Context.of(bucket_settings(tmp_path, 9, "none-listens-there"))
    beats: list[float] = []

    began = time.monotonic()
    with pytest.raises(StorageAway):
        context.storage.about("a")
    assert time.monotonic() - began < LEASE.total_seconds() / 2
    with pytest.raises(StorageAway):
        context.patient.patiently(3, beat=lambda: beats.append(time.monotonic())).about("a")
    assert len(beats) > 2
    context.database.dispose()
