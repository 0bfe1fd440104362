"""Upkeep: what waits is nudged, once in a while."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select

from app import jobs
from app.campaigns import drawings, openings
from app.clock import utc_now
from app.datasets.models import DatasetState
from app.disk.models import DiskKind, DiskUse
from app.jobs import Job
from app.notices import happenings
from app.notices import service as notices
from app.notices.models import Event, Subscription
from app.request_keys import LIFE, IdempotencyKey
from app.runs import queue, trials
from app.runs.models import Worker
from app.runs.workers import record_worker
from tests.factories import make_campaign, make_dataset, make_run, make_user
from tests.worker.conftest import both_databases, folder_of, wait_until
from worker import upkeep
from worker.context import Context
from worker.heartbeat import Heartbeat
from worker.upkeep import Upkeep, run_upkeep


@both_databases
def test_waiting_imports_openings_checks_and_trials_are_nudged_and_not_flooded(
    context: Context, jobs_sent: list[Job]
) -> None:
    long_ago = utc_now() - timedelta(hours=1)
    with context.unit_of_work() as session:
        dataset = make_dataset(session, context.storage, train=2)
        dataset.state = DatasetState.IMPORTING
        campaign = make_campaign(session, state="draft")
        campaign.opening_requested_at = long_ago
        opened = make_campaign(session)
        run = make_run(session, context.storage, train=2, queued_at=long_ago)
    expected = [
        Job(jobs.IMPORT_DATASET, (str(dataset.id),)),
        Job(jobs.OPEN_CAMPAIGN, (str(campaign.id),)),
        Job(jobs.CHECK_DRAWS, (str(opened.id),)),
        Job(jobs.TRAIN_TRIAL, (str(run.trials[0].id),)),
    ]

    upkeep = Upkeep(context)
    upkeep.once()
    upkeep.once()

    assert jobs_sent == expected


@both_databases
def test_workers_that_look_at_the_same_moment_take_a_trial_each(context: Context) -> None:
    with context.unit_of_work() as session:
        for _ in range(2):
            make_run(session, context.storage, seeds=(0, 1, 2), train=2)
    together = threading.Barrier(8)

    def take(number: int) -> UUID | None:
        together.wait()
        with context.unit_of_work() as session:
            claim = queue.claim_next(session, by=f"worker {number}", now=utc_now())
        return claim.id if claim else None

    with ThreadPoolExecutor(8) as threads:
        taken = [trial_id for trial_id in threads.map(take, range(8)) if trial_id]

    assert len(taken) == len(set(taken)) == 6


def test_silent_workers_are_forgotten_and_live_ones_kept(context: Context) -> None:
    now = utc_now()
    with context.unit_of_work() as session:
        record_worker(session, "gone", queues="gpu", device="CPU", now=now - timedelta(days=1))
        record_worker(session, "here", queues="gpu", device="CPU", now=now)

    Upkeep(context).once()

    with context.reading() as session:
        found = {row.name: row.queues for row in session.scalars(select(Worker))}
    assert found.pop("here") == "gpu"
    assert list(found.values()) == ["upkeep"]  # which says that it is there, too


@both_databases
def test_keys_of_requests_are_forgotten_after_a_day_whoever_sent_them(context: Context) -> None:
    now = utc_now()
    with context.unit_of_work() as session:
        sender = make_user(session).id
        for key, age in (("old", LIFE + timedelta(minutes=1)), ("young", LIFE - timedelta(minutes=1))):
            session.add(IdempotencyKey(user_id=sender, key=key, request="", created_at=now - age))

    Upkeep(context).once()

    with context.reading() as session:
        assert session.scalars(select(IdempotencyKey.key)).all() == ["young"]


def test_what_is_over_is_tidied_and_the_disk_is_added_up_once_an_hour(context: Context) -> None:
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, train=2, state="succeeded")
        run.trials[0].finished_at = utc_now()
        prefix = trials.trial_prefix(run.trials[0].id)
    for name in (trials.LOG, trials.CHECKPOINT):
        context.storage.put(f"{prefix}/{name}", b"12345")

    upkeep = Upkeep(context)
    upkeep.once()
    context.storage.put(f"{prefix}/{trials.CHECKPOINT}", b"12345")
    upkeep.once()

    with context.reading() as session:
        found = {use.kind: use.size_bytes for use in session.scalars(select(DiskUse))}
    assert (found[DiskKind.LOGS], found[DiskKind.CHECKPOINTS]) == (5, 0)
    assert folder_of(context).path(f"{prefix}/{trials.CHECKPOINT}").exists()


def test_it_works_until_it_is_told_to_end(context: Context, jobs_sent: list[Job]) -> None:
    with context.unit_of_work() as session:
        make_run(session, context.storage, train=2, queued_at=utc_now() - timedelta(hours=1))
    ended = threading.Event()
    thread = threading.Thread(target=run_upkeep, args=(context, ended))

    thread.start()
    wait_until(lambda: bool(jobs_sent))
    ended.set()
    thread.join(300)

    assert not thread.is_alive()


def test_a_heartbeat_writes_what_the_worker_is(context: Context) -> None:
    heartbeat = Heartbeat(context, "gpu-1@host", ["gpu"])

    def row() -> Worker | None:
        with context.reading() as session:
            return session.get(Worker, "gpu-1@host")

    heartbeat.start()
    wait_until(lambda: row() is not None)
    heartbeat.stop()

    seen = row()
    assert seen is not None
    assert (seen.queues, seen.device[:3]) == ("gpu", "CPU")
    assert seen.process == f"{seen.host}:{os.getpid()}"
    assert seen.memory_bytes is not None
    assert seen.memory_free_bytes is not None
    assert 0 < seen.memory_free_bytes < seen.memory_bytes


def test_what_goes_wrong_in_one_step_keeps_no_other_from_its_turn(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a run that cannot be told of, a broken drawing, and a file that cannot be looked at."""
    with context.unit_of_work() as session:
        admin = make_user(session, role="admin")
        session.add(
            Subscription(
                url=None, events=[Event.RUN_ENDED, Event.TEST], created_by=admin, created_at=utc_now()
            )
        )
        old = utc_now() - 2 * LIFE
        session.flush()
        session.add(IdempotencyKey(user_id=admin.id, key="k", request="", created_at=old))
    done: list[str] = []

    def broken(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("broken")

    def nothing_waits(*_arguments: object) -> list[UUID]:
        done.append("notices")
        return []

    monkeypatch.setitem(happenings.LOOKS, Event.RUN_ENDED, broken)
    monkeypatch.setattr(upkeep, "tidy", broken)
    monkeypatch.setattr(openings, "waiting_openings", broken)
    monkeypatch.setattr(drawings, "give_up_drawings", lambda *_: done.append("drawings"))
    monkeypatch.setattr(notices, "waiting_notices", nothing_waits)

    Upkeep(context).once()

    with context.reading() as session:
        assert session.scalars(select(IdempotencyKey)).all() == []
        assert session.scalars(select(DiskUse)).all() != []
    assert done == ["drawings", "notices"]
