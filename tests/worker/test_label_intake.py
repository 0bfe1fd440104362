"""Files of labels read by a process of their own: hostile ones, killed readers, workers that die."""

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from app import claims, jobs
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.claims import MAX_ATTEMPTS
from app.clock import utc_now
from app.db import Database
from app.jobs import Job
from app.journal.models import Action, Entry
from app.journal.writing import ADDRESS
from app.labels import service as labels
from app.labels.models import ImportedAnswer, ImportState, LabelImport
from app.members.service import erase_person
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_campaign, make_user
from tests.worker.refusing import SENTENCE, refused
from worker.apart import ImportFailed, read_apart
from worker.context import Context
from worker.label_intake import MODULE, import_labels

GOOD = b"position,class\n0,dog\n1,owl\n"


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage, published: list[Job]) -> Context:
    """What a worker works with."""
    return Context(settings=settings, database=database, storage=storage, publish=published.append)


@pytest.fixture
def bring(session: Session, storage: FolderStorage, admin: User) -> Callable[..., LabelImport]:
    """Files of labels of the test's admin, each for a campaign of six pictures."""

    def make(data: bytes, campaign: Campaign | None = None) -> LabelImport:
        campaign = campaign or make_campaign(session, examples=6)
        made = labels.create_import(
            session, storage, campaign, io.BytesIO(data), filename="l.csv", by=admin, now=NOW
        )
        session.commit()
        return made

    return make


def files_in(storage: FolderStorage) -> list[str]:
    """Every file that is stored."""
    return sorted(str(path.relative_to(storage.root)) for path in storage.root.rglob("*") if path.is_file())


def answers_stored(session: Session) -> int:
    """Of all imports."""
    return session.scalar(select(func.count()).select_from(ImportedAnswer)) or 0


def test_a_file_is_read_by_a_process_of_its_own(
    context: Context, session: Session, storage: FolderStorage, bring: Callable[..., LabelImport]
) -> None:
    made = bring(GOOD)

    import_labels(context, made.id)
    import_labels(context, made.id)  # a message that came twice

    session.refresh(made)
    assert (made.state, made.yes, made.attempts, made.upload) == (ImportState.READY, 2, 1, None)
    assert answers_stored(session) == 2
    assert files_in(storage) == []
    told = session.scalars(select(Entry).where(Entry.action == Action.LABELS_IMPORTED)).one()
    assert (told.by_id, told.details["file"], told.details["yes"]) == (made.created_by_id, "l.csv", 2)


NESTED = b'[{"data": {"position": 0, "x": [' + b"[{}]," * 2_500_000 + b"[]]}}]"
HOSTILE = {
    "a task of millions of objects": (NESTED, "needs more memory than an import may use"),
    "a hole of brackets": (b"[" * 10_000_000, "begins like JSON and is none"),
    "a number without an end": (b"[" + b"9" * 10_000_000 + b"]", "begins like JSON and is none"),
    "one cell": (b'position,class\n0,"' + b"x" * 10_000_000 + b'"\n', "is no CSV"),
    "a first line of commas": (b"," * 3_000_000, "The first line must name"),
}


def test_whoever_is_erased_before_it_ends_leaves_no_address(
    context: Context, session: Session, admin: User, bring: Callable[..., LabelImport]
) -> None:
    session.info[ADDRESS] = "192.0.2.7"
    made = bring(GOOD)
    make_user(session, role="admin")
    erase_person(session, admin.id, name=admin.name, by=None, now=NOW)
    session.commit()

    import_labels(context, made.id)

    line = session.scalars(select(Entry).where(Entry.action == Action.LABELS_IMPORTED)).one()
    assert (line.by_id, line.address) == (admin.id, "")


@pytest.mark.long(but=["a hole of brackets"])
@pytest.mark.parametrize(("data", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_hostile_hurts_only_its_reader(storage: FolderStorage, data: bytes, words: str) -> None:
    storage.put("sent", data)
    request = {
        "root": str(storage.root),
        "data": "sent",
        "name": "l.csv",
        "class_names": ["a"],
        "rows": "rows",
    }

    with pytest.raises(ImportFailed, match=words) as failed:
        read_apart(MODULE, request, name="l.csv", beat=lambda _message: None)

    assert len(str(failed.value)) < 300
    assert files_in(storage) == ["sent"]


def test_what_is_refused_is_told_and_nothing_is_kept(
    context: Context, session: Session, storage: FolderStorage, bring: Callable[..., LabelImport]
) -> None:
    made = bring(b"[" + b"1," * 500 + b"1]")

    import_labels(context, made.id)

    session.refresh(made)
    assert (made.state, made.failure) == (
        ImportState.FAILED,
        "More than 100 tasks cannot be taken in. The first: Task 1 is not what Label Studio exports (its "
        "JSON, not JSON-MIN). Nothing was stored.",
    )
    assert len(made.faults) == 100
    assert (answers_stored(session), files_in(storage)) == (0, [])


def when_reading(act: Callable[[int], object]) -> threading.Thread:
    """Do something to the reader once it is at work."""

    def wait() -> None:
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while not (found := children.read_text(encoding="ascii").split()):
            time.sleep(0.01)
        act(int(found[0]))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_killed_reader_is_followed_by_another_attempt(
    context: Context, session: Session, storage: FolderStorage, bring: Callable[..., LabelImport]
) -> None:
    made = bring(GOOD)
    killer = when_reading(lambda reader: os.kill(reader, signal.SIGKILL))

    import_labels(context, made.id)

    killer.join()
    session.refresh(made)
    assert (made.state, made.attempts, made.claimed_until) == (ImportState.IMPORTING, 1, None)
    assert files_in(storage) == [f"uploads/labels/{made.id}/data"]
    assert labels.waiting_imports(session, utc_now()) == [made.id]
    import_labels(context, made.id)
    session.refresh(made)
    assert (made.state, made.attempts, made.yes) == (ImportState.READY, 2, 2)


def reads(*rows: tuple[int, str, str]) -> Callable[..., dict[str, object]]:
    """A reader that has read: position, class number and value."""

    def read(_module: str, request: dict[str, str], **_about: object) -> dict[str, object]:
        storage = FolderStorage(Path(request["root"]))
        lines = [
            json.dumps([n, "", int(p), None, int(c), v, "", None]) for n, (p, c, v) in enumerate(rows, 2)
        ]
        storage.put(request["rows"], "\n".join(lines).encode() + b"\n")
        return {"noun": "line", "faults": []}

    return read


def test_a_stopping_worker_hands_back_without_a_lost_attempt(
    context: Context, session: Session, bring: Callable[..., LabelImport]
) -> None:
    made = bring(GOOD)

    import_labels(replace(context, is_stopping=lambda: True), made.id, read=reads((0, "1", "yes")))

    session.refresh(made)
    assert (made.state, made.attempts, made.claimed_until) == (ImportState.IMPORTING, 0, None)
    assert answers_stored(session) == 0


def test_what_breaks_here_is_told_and_not_tried_again(
    context: Context, session: Session, storage: FolderStorage, bring: Callable[..., LabelImport]
) -> None:
    made = bring(GOOD)

    import_labels(context, made.id, read=reads((0, "1", "perhaps")))  # no value that we know

    session.refresh(made)
    assert (made.state, made.attempts, made.failure) == (
        ImportState.FAILED,
        1,
        '"l.csv" could not be taken in because of a fault on our side, of which the log says more. '
        "Nothing was stored.",
    )
    assert (answers_stored(session), files_in(storage)) == (0, [])


@pytest.mark.parametrize("trouble", [OSError(28, "disk is full"), PoolTimeout(), MemoryError()])
def test_what_a_machine_lacks_is_left_to_another_attempt(
    *, context: Context, session: Session, bring: Callable[..., LabelImport], trouble: Exception
) -> None:
    made = bring(GOOD)

    def read(*_asked: object, **_about: object) -> dict[str, object]:
        raise trouble

    with pytest.raises(type(trouble)):
        import_labels(context, made.id, read=read)

    session.refresh(made)
    assert (made.state, made.failure) == (ImportState.IMPORTING, None)


@pytest.mark.parametrize("by", ["another worker", "an admin"])
def test_whoever_lost_the_import_stops_and_stores_nothing(
    *,
    context: Context,
    session: Session,
    storage: FolderStorage,
    admin: User,
    bring: Callable[..., LabelImport],
    by: str,
) -> None:
    made = bring(GOOD)
    import_id, campaign = made.id, session.get_one(Campaign, made.campaign_id)

    def is_taken() -> bool:
        # Asked before rows are stored.
        is_there = session.get(LabelImport, import_id, populate_existing=True) is not None
        if by == "an admin" and is_there:
            labels.delete_import(session, storage, campaign, import_id, by=admin)
        session.execute(update(LabelImport).values(claim_number=LabelImport.claim_number + 1))
        session.commit()
        return False

    import_labels(replace(context, is_stopping=is_taken), import_id, read=reads((0, "1", "yes")))

    assert answers_stored(session) == 0
    left = session.get(LabelImport, import_id, populate_existing=True)
    assert (left is None) == (by == "an admin")
    assert [Path(path).name for path in files_in(storage)] == ([] if left is None else ["data", "rows-1"])


def test_what_a_dead_worker_left_counts_for_nothing_and_is_replaced(
    context: Context, session: Session, bring: Callable[..., LabelImport]
) -> None:
    campaign = make_campaign(session, examples=6)
    made = bring(GOOD, campaign)
    assert claims.claim(session, LabelImport, made.id, by="dead", now=utc_now() - timedelta(minutes=5))
    assert half_stored(context, session, made) == 1
    assert list(labels.labels(session, campaign, imported=True)) == []

    import_labels(context, made.id)

    session.refresh(made)
    assert (made.state, made.attempts) == (ImportState.READY, 2)
    assert answers_stored(session) == 2


def half_stored(context: Context, session: Session, made: LabelImport) -> int:
    """Store a row of an import that has not ended; gives how many are stored."""
    key = f"{labels.upload_prefix(made.id)}/rows-1"
    context.storage.put(key, json.dumps([2, "", 3, None, 0, "yes", "", None]).encode() + b"\n")
    (rows,) = labels.read_rows(context.storage, key, chunk=10)
    ids = labels.Pictures(session.get_one(Campaign, made.campaign_id)).ids(session, rows)
    labels.insert_answers(session, made.id, rows, ids, before=labels.Before())
    session.commit()
    return answers_stored(session)


def test_three_dead_workers_fail_the_import(
    context: Context,
    session: Session,
    storage: FolderStorage,
    bring: Callable[..., LabelImport],
    published: list[Job],
) -> None:
    made = bring(GOOD)
    long_ago = utc_now() - timedelta(minutes=5)
    session.execute(update(LabelImport).values(attempts=claims.MAX_ATTEMPTS, claimed_until=long_ago))
    session.commit()
    published.clear()

    with context.unit_of_work() as upkeep:
        assert labels.waiting_imports(upkeep, utc_now()) == []
        assert labels.give_up_imports(upkeep, utc_now()) == [made.id]

    assert published == [Job(jobs.IMPORT_LABELS, (str(made.id),))]
    import_labels(context, made.id)
    session.refresh(made)
    assert (made.state, files_in(storage)) == (ImportState.FAILED, [])
    assert "3 times" in (made.failure or "")


def test_a_store_that_refuses_fails_an_import_after_three_attempts_in_words(
    context: Context, session: Session, bring: Callable[..., LabelImport]
) -> None:
    made = bring(GOOD)
    import_labels(refused(context), made.id)
    session.refresh(made)
    assert (made.state, made.attempts) == (ImportState.IMPORTING, 1)

    for _ in range(MAX_ATTEMPTS - 1):
        import_labels(refused(context), made.id)

    session.refresh(made)
    assert (made.state, made.failure) == (ImportState.FAILED, SENTENCE)
