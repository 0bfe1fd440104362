"""What uses the disk is added up; what was kept long enough goes, and nothing else."""

import os
from datetime import timedelta
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.clock import utc_now
from app.datasets.models import Dataset
from app.db import Database
from app.disk.measuring import measure
from app.disk.retention import SNAPSHOT_REST, Policy, tidy
from app.registry import predictions
from app.registry.service import key_of
from app.runs.labels import key_of as snapshot_key
from app.runs.models import DeletedRun, Run, TrialState
from app.runs.trials import trial_prefix
from app.settings import Settings
from app.storage import Storage
from app.stores.folder import FolderStorage
from tests.app.registry.conftest import publish
from tests.factories import NOW, make_dataset, make_run
from tests.onnx_models import make_model
from worker import adding_up
from worker.context import Context

HTML = {"accept": "text/html"}
DAY = timedelta(days=1)
POLICY = Policy(logs=30 * DAY, checkpoints=7 * DAY)
FILES = ("log.txt", "checkpoint.safetensors")
pytestmark = pytest.mark.dialects


def leave(storage: FolderStorage, run: Run) -> None:
    """Let each trial have left a log and a checkpoint."""
    for trial in run.trials:
        for name in FILES:
            storage.put(f"{trial_prefix(trial.id)}/{name}", b"12345")


def left(storage: FolderStorage, run: Run) -> list[tuple[bool, ...]]:
    """Which of them are there, by trial."""
    return [
        tuple(storage.path(f"{trial_prefix(trial.id)}/{name}").exists() for name in FILES)
        for trial in run.trials
    ]


@pytest.mark.parametrize(
    ("age", "kept"),
    [
        (0 * DAY, [(True, False), (True, True), (True, True), (True, True)]),
        (7 * DAY, [(True, False), (True, False), (True, False), (True, True)]),
        (30 * DAY, [(False, False), (False, False), (False, False), (True, True)]),
    ],
)
def test_checkpoints_and_logs_of_what_is_over_go_by_age(
    session: Session, database: Database, storage: FolderStorage, age: timedelta, kept: list[tuple[bool, ...]]
) -> None:
    run = make_run(session, storage, train=2, seeds=range(4))
    states = (TrialState.SUCCEEDED, TrialState.FAILED, TrialState.CANCELLED, TrialState.RUNNING)
    for trial, state in zip(run.trials, states, strict=True):
        trial.state, trial.finished_at = state, None if state is TrialState.RUNNING else NOW
    leave(storage, run)
    session.commit()

    tidy(database, storage, POLICY, now=NOW + age)

    assert left(storage, run) == kept


def test_files_of_predictions_that_no_row_knows_go_and_those_of_others_stay(
    session: Session, database: Database, storage: FolderStorage, admin: User
) -> None:
    """Whoever wrote them died after they were deleted."""
    model = make_model(session, storage)
    dataset = make_dataset(session, storage)
    kept = predictions.predict_dataset(session, storage, model, dataset.id, by=admin, now=NOW)
    session.commit()
    files = [f"{predictions.prefix_of(model.key, id_)}/1/predictions.csv" for id_ in (kept.id, uuid4())]
    for file in files:
        storage.put(file, b"file")

    gone = tidy(database, storage, POLICY, now=NOW)

    assert gone == 1
    assert [storage.path(file).exists() for file in files] == [True, False]


def test_published_models_and_their_predictions_are_found_by_one_look(
    session: Session, database: Database, storage: FolderStorage, admin: User
) -> None:
    asked: list[str] = []

    class LikeABucket(FolderStorage):
        def names(self, prefix: str) -> set[str]:
            asked.append(prefix)
            return super().names(prefix)

        def paths(self, prefix: str, depth: int) -> set[str]:
            return Storage.paths(self, prefix, depth)  # of one listing

    models = [make_model(session, storage) for _ in range(3)]
    dataset = make_dataset(session, storage)
    rows = [
        predictions.predict_dataset(session, storage, model, dataset.id, by=admin, now=NOW)
        for model in models
    ]
    session.commit()
    for model, row in zip(models, rows, strict=True):
        for id_ in (row.id, uuid4()):
            storage.put(f"{predictions.prefix_of(model.key, id_)}/1/predictions.csv", b"file")

    gone = tidy(database, LikeABucket(storage.root), POLICY, now=NOW)

    assert (gone, asked) == (len(models), [])


def test_each_snapshot_goes_in_a_transaction_of_its_own(
    session: Session, database: Database, storage: FolderStorage
) -> None:
    begun, of_deletions = 0, set[int]()

    def begin(_session: Session, _transaction: object, _connection: object) -> None:
        nonlocal begun
        begun += 1

    class Deleting(FolderStorage):
        def delete(self, key: str) -> bool:
            of_deletions.add(begun)
            return super().delete(key)

    runs = [make_run(session, storage, train=2, state="failed") for _ in range(3)]
    for number, run in enumerate(runs):
        digest = f"{number}" * 64
        storage.put(snapshot_key(digest), b"1")
        old = storage.path(snapshot_key(digest)).stat().st_mtime - 2 * SNAPSHOT_REST.total_seconds()
        os.utime(storage.path(snapshot_key(digest)), (old, old))
        session.add(DeletedRun(number=run.number + 100, deleted_at=NOW, snapshot_digest=digest))
    session.commit()
    event.listen(database.write, "after_begin", begin)
    try:
        gone = tidy(database, Deleting(storage.root), POLICY, now=utc_now() + SNAPSHOT_REST)
    finally:
        event.remove(database.write, "after_begin", begin)

    assert (gone, len(of_deletions)) == (3, 3)


def test_what_a_lost_claim_wrote_goes_and_what_no_row_knows_stays(
    session: Session, database: Database, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=2, state="succeeded")
    model = publish(session, storage, run.trials[0])
    lost, foreign = key_of(run.trials[0].id, 9), key_of(uuid4(), 1)
    elsewhere = f"{trial_prefix(uuid4())}/log.txt"
    for key in (f"{lost}/model.onnx", f"{foreign}/model.onnx", elsewhere):
        storage.put(key, b"1")
    session.commit()

    tidy(database, storage, POLICY, now=NOW + 100 * DAY)

    there = [storage.path(key).exists() for key in (model.key, lost, foreign, elsewhere)]
    assert there == [True, False, True, True]


def test_frozen_labels_go_a_day_after_the_last_run_that_uses_them(
    client: TestClient, session: Session, database: Database, storage: FolderStorage
) -> None:
    first = make_run(session, storage, train=2, state="failed")
    second = make_run(session, storage, train=2, state="failed")
    second.snapshot_digest = first.snapshot_digest
    session.commit()
    path = storage.path(snapshot_key(first.snapshot_digest))
    old = path.stat().st_mtime - 2 * SNAPSHOT_REST.total_seconds()
    os.utime(path, (old, old))
    there = []

    for run, later in ((first, 2 * DAY), (second, DAY / 2), (None, 2 * DAY)):
        if run is not None:
            assert client.delete(f"/api/v1/runs/{run.id}").status_code == 204
        tidy(database, storage, POLICY, now=utc_now() + later)
        there.append(path.exists())

    assert there == [True, True, False]


def test_sums_are_kept_and_shown_with_when_they_were_made(
    client: TestClient, session: Session, database: Database, storage: FolderStorage
) -> None:
    run = make_run(session, storage, train=2, state="succeeded")
    model = publish(session, storage, run.trials[0])
    leave(storage, run)
    session.commit()
    before = client.get("/disk", headers=HTML).text

    for _ in range(2):  # again: the same sums, once
        measure(database, storage, now=NOW)
    told = client.get("/api/v1/disk").json()
    page = client.get("/disk", headers=HTML).text

    items = {item["kind"]: item for item in told["items"]}
    assert "Nothing has been added up yet" in before
    assert len(items) == len(told["items"]) == 8
    assert (items["logs"]["size_bytes"], items["checkpoints"]["size_bytes"]) == (5, 5)
    assert items["models"] == {"kind": "models", "size_bytes": model.size_bytes, "files": 1}
    assert items["datasets"]["files"] == 2
    assert items["database"]["size_bytes"] > 0
    assert told["measured_at"].startswith("2026-11-21T12:00:00")
    assert (told["keep_logs_days"], told["free_bytes"] > 0) == (30, True)
    assert f"/models/{model.id}" in page
    assert "30 days after the trial is over" in page


def test_what_came_after_the_count_is_in_the_sums_of_the_page(
    client: TestClient, session: Session, database: Database, storage: FolderStorage
) -> None:
    measure(database, storage, now=NOW)
    run = make_run(session, storage, train=2, state="succeeded")
    model = publish(session, storage, run.trials[0])
    model.size_bytes = 44_800_000
    session.commit()

    late = client.get("/disk", headers=HTML).text
    session.expire_all()
    for dataset in session.scalars(select(Dataset)):
        dataset.size_bytes = 1
    session.commit()
    measure(database, storage, now=NOW)
    counted = client.get("/disk", headers=HTML).text

    assert "; at least so much now, 0 kB when it was counted" in late
    assert late.count("when it was counted") == 2
    assert counted.count("when it was counted") == 1  # the weights of this test are no file


def test_annotators_see_nothing_of_it(annotator_client: TestClient) -> None:
    assert annotator_client.get("/api/v1/disk").status_code == 403


def test_an_admin_has_it_counted_again_and_the_page_waits_for_it(
    client: TestClient, session: Session, database: Database, storage: FolderStorage, settings: Settings
) -> None:
    measure(database, storage, now=NOW)
    run = make_run(session, storage, train=2, state="succeeded")
    leave(storage, run)
    session.commit()
    context = Context(settings, database, storage, publish=lambda _: None)

    before = client.get("/disk", headers=HTML).text
    asked = client.post("/disk")
    waiting = client.get(asked.headers["location"], headers=HTML).text
    adding_up.measure_disk(context)
    done = client.get(asked.headers["location"], headers=HTML | {"HX-Request": "true"}).text

    assert "Count again" in before
    assert asked.status_code == 303
    assert "A worker is asked to count again." in waiting
    assert "every 2s" in waiting
    assert "every 2s" not in done
    assert "Count again" in done
    assert "just now" in done
    assert "<html" not in done


def test_only_an_admin_has_it_counted(annotator_client: TestClient) -> None:
    assert annotator_client.post("/disk").status_code == 403
