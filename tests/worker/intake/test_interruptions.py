"""Imports that are killed, stopped, taken over, repeated or deleted meanwhile."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.models import User
from app.claims import MAX_ATTEMPTS
from app.clock import utc_now
from app.datasets import growing, importing, service
from app.datasets.models import Dataset, DatasetState, Example
from app.datasets.there import There
from app.datasets.uploads import Upload
from app.db import Base, connect
from app.jobs import Job
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.datasets.files import images, npz_of, picture, zip_of
from tests.app.datasets.refused import NAME
from tests.factories import NOW, make_dataset, make_user
from tests.worker.intake.conftest import PETS, Grow, Ready, examples_of, files_in, pets
from tests.worker.refusing import SENTENCE, refused
from worker import intake
from worker.context import Context
from worker.intake import Work, import_dataset

pytestmark = pytest.mark.long

SLOW = 24  # large pictures, which take seconds and fit in one shard


def slow_upload() -> bytes:
    """An upload that takes seconds to read: its pictures are large."""
    large = picture(size=(3000, 3000))
    return zip_of({f"{n}.png": large for n in range(SLOW)}, zipfile.ZIP_STORED)


def readers() -> list[int]:
    """Our children that read uploads."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return [
        int(child)
        for child in children
        if b"app.datasets.intake" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def when_reading(act: Callable[[int], None]) -> threading.Thread:
    """Do something to the reader once it is at work."""

    def wait() -> None:
        while not (found := readers()):
            time.sleep(0.02)
        time.sleep(1.0)
        act(found[0])

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


class TestInterruptions:
    @pytest.mark.long
    def test_a_killed_reader_is_followed_by_another_attempt(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(slow_upload())
        killer = when_reading(lambda reader: os.kill(reader, signal.SIGKILL))

        import_dataset(context, dataset.id)

        killer.join()
        session.refresh(dataset)
        assert (dataset.state, dataset.attempts) == (DatasetState.IMPORTING, 1)
        assert files_in(storage) == [f"uploads/{dataset.id}/data"]
        assert importing.waiting_imports(session, Dataset, utc_now()) == [dataset.id]
        import_dataset(context, dataset.id)
        session.refresh(dataset)
        assert (dataset.state, dataset.train_count) == (DatasetState.READY, SLOW)
        assert files_in(storage) == [f"datasets/{dataset.id}/2/shard-00000.bin"]

    def test_a_stopping_worker_hands_back_without_a_lost_attempt(
        self, context: Context, session: Session, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(slow_upload())
        stopping = threading.Event()
        stopper = when_reading(lambda _reader: stopping.set())

        import_dataset(replace(context, is_stopping=stopping.is_set), dataset.id)

        stopper.join()
        session.refresh(dataset)
        assert (dataset.state, dataset.attempts) == (DatasetState.IMPORTING, 0)
        assert (dataset.claimed_until, readers()) == (None, [])

    @pytest.mark.long
    def test_whoever_lost_the_claim_stops_and_leaves_nothing(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(slow_upload())

        def another_takes_it() -> bool:
            # Asked at every beat of the import, so it runs between two of its transactions.
            session.execute(update(Dataset).values(claim_number=Dataset.claim_number + 1))
            session.commit()
            return False

        import_dataset(replace(context, is_stopping=another_takes_it), dataset.id)

        assert readers() == []
        session.refresh(dataset)
        assert dataset.state is DatasetState.IMPORTING
        assert files_in(storage) == [f"uploads/{dataset.id}/data"]

    def test_what_a_dead_worker_left_is_swept_before_the_next_attempt(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(npz_of(x_train=images(6, 4, 4)))
        long_ago = utc_now() - timedelta(minutes=5)
        assert claims.claim(session, Dataset, dataset.id, by="dead", now=long_ago)
        half = make_dataset(session, storage, train=3, test=0)
        session.execute(update(Example).where(Example.dataset_id == half.id).values(dataset_id=dataset.id))
        session.commit()
        storage.put(f"datasets/{dataset.id}/1/shard-00000.bin", b"half")
        storage.delete_tree(f"datasets/{half.id}")

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert (dataset.state, dataset.attempts, dataset.claim_number) == (DatasetState.READY, 2, 2)
        assert len(examples_of(session, dataset)) == 6
        assert files_in(storage) == [f"datasets/{dataset.id}/2/shard-00000.bin"]

    def test_a_held_import_is_left_alone(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(npz_of(x_train=images(6, 4, 4)))
        assert claims.claim(session, Dataset, dataset.id, by="somebody else", now=utc_now())
        session.commit()

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert (dataset.claimed_by, dataset.claim_number) == ("somebody else", 1)
        assert files_in(storage) == [f"uploads/{dataset.id}/data"]

    def test_a_repeated_message_changes_nothing(
        self, context: Context, session: Session, storage: FolderStorage, upload: Callable[..., Dataset]
    ) -> None:
        dataset = upload(npz_of(x_train=images(6, 4, 4)))
        import_dataset(context, dataset.id)
        before = examples_of(session, dataset)

        import_dataset(context, dataset.id)

        assert examples_of(session, dataset) == before
        assert len(files_in(storage)) == 1

    def test_three_dead_workers_fail_the_import_and_its_files_go(
        self,
        context: Context,
        session: Session,
        storage: FolderStorage,
        upload: Callable[..., Dataset],
        published: list[Job],
    ) -> None:
        dataset = upload(npz_of(x_train=images(6, 4, 4)))
        storage.put(f"datasets/{dataset.id}/3/shard-00000.bin", b"half")
        session.execute(
            update(Dataset).values(
                attempts=claims.MAX_ATTEMPTS,
                claimed_until=utc_now() - timedelta(minutes=5),
                claimed_by="dead",
            )
        )
        session.commit()
        published.clear()

        with context.unit_of_work() as upkeep:
            assert importing.waiting_imports(upkeep, Dataset, utc_now()) == []
            assert importing.give_up_imports(upkeep, Dataset, utc_now()) == [dataset.id]

        assert published == [Job(jobs.IMPORT_DATASET, (str(dataset.id),))]
        import_dataset(context, dataset.id)
        session.refresh(dataset)
        assert dataset.state is DatasetState.FAILED
        assert "3 times" in (dataset.failure or "")
        assert files_in(storage) == []

    def test_a_dataset_that_is_deleted_meanwhile_stops_its_import(
        self,
        context: Context,
        session: Session,
        storage: FolderStorage,
        admin: User,
        upload: Callable[..., Dataset],
    ) -> None:
        dataset = upload(slow_upload())
        dataset_id = dataset.id

        def delete() -> bool:
            if found := session.get(Dataset, dataset_id, populate_existing=True):
                service.delete_dataset(session, storage, found, by=admin)
                session.commit()
            return False

        import_dataset(replace(context, is_stopping=delete), dataset_id)

        assert readers() == []
        assert session.scalar(select(func.count()).select_from(Example)) == 0
        assert files_in(storage) == []


WORKER = """
import sys
from uuid import UUID
from app.settings import Settings
from worker.context import Context
from worker.intake import import_dataset
settings = Settings(data_dir=sys.argv[1], environment="test", _env_file=None)
import_dataset(Context.of(settings), UUID(sys.argv[2]))
"""


@pytest.mark.long
def test_a_killed_worker_takes_its_reader_along_and_another_ends_the_import(tmp_path: Path) -> None:
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    database, storage = connect(settings.sqlalchemy_url), FolderStorage(settings.artefact_dir)
    Base.metadata.create_all(database.engine)
    with database.write.begin() as session:
        admin = make_user(session, role="admin")
        sent = Upload(io.BytesIO(slow_upload()), NAME)
        dataset_id = service.create_dataset(session, storage, sent, name="Killed", by=admin, now=NOW).id
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(dataset_id)])
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    while not (reader := children.read_text(encoding="ascii").split()):
        time.sleep(0.02)
    time.sleep(1.0)

    worker.kill()
    worker.wait()

    deadline = time.monotonic() + 300
    while Path(f"/proc/{reader[0]}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{reader[0]}").exists()
    with database.write.begin() as session:
        dataset = session.get_one(Dataset, dataset_id)
        assert (dataset.state, dataset.attempts) == (DatasetState.IMPORTING, 1)
        dataset.claimed_until = utc_now() - timedelta(minutes=5)  # as if the lease had run out
    context = Context(settings=settings, database=database, storage=storage, publish=lambda _job: None)
    import_dataset(context, dataset_id)
    with database.read() as session:
        dataset = session.get_one(Dataset, dataset_id)
        assert (dataset.state, dataset.attempts, dataset.train_count) == (DatasetState.READY, 2, SLOW)
    assert files_in(storage) == [f"datasets/{dataset_id}/2/shard-00000.bin"]
    database.dispose()


def test_a_store_that_refuses_fails_an_import_after_three_attempts_in_words(
    context: Context, session: Session, upload: Callable[..., Dataset]
) -> None:
    dataset = upload(zip_of({"cat/1.png": picture()}))
    import_dataset(refused(context), dataset.id)
    session.refresh(dataset)
    assert (dataset.state, dataset.attempts) == (DatasetState.IMPORTING, 1)

    for _ in range(MAX_ATTEMPTS - 1):
        import_dataset(refused(context), dataset.id)

    session.refresh(dataset)
    assert (dataset.state, dataset.failure) == (DatasetState.FAILED, SENTENCE)


def test_an_attempt_that_wakes_late_deletes_nothing_of_its_successor(
    context: Context, session: Session, ready: Ready, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = ready(pets(PETS))
    addition = grow(dataset, pets({"train/dog/4.png": 4}), work=False)
    there, publish = intake._there, growing.publish
    woke: list[int] = []

    def asleep(own: Context, work: Work, folder: FolderStorage) -> There:
        """The first attempt sleeps before its look, until the second has copied its shards."""
        if work.claim.number > 1:
            return there(own, work, folder)
        addition.claimed_until = utc_now() - timedelta(seconds=1)
        session.commit()

        def late(*details: Any, **further: Any) -> int:
            with monkeypatch.context() as patch:
                patch.setattr(intake, "read_records", lambda *_, **__: iter(()))  # its own are gone
                with suppress(claims.ClaimLost):
                    there(own, work, folder)
            woke.append(work.claim.number)
            return publish(*details, **further)

        with monkeypatch.context() as patch:
            patch.setattr(growing, "publish", late)
            intake.add_images(context, addition.id)
        raise claims.ClaimLost

    monkeypatch.setattr(intake, "_there", asleep)
    intake.add_images(context, addition.id)

    session.expire_all()
    assert (woke, addition.number, addition.failure) == ([1], 2, None)
    assert len(service.stored_images(session, context.storage, dataset.id).load()) == 4
