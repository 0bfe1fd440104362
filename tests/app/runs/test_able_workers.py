"""Who is offered a run in several processes, and that it waits for whoever could train it."""

from datetime import datetime, timedelta

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.clock import utc_now
from app.runs import queue, trials, workers
from app.runs.faults import MAX_SETBACKS, Fault
from app.runs.models import Run, Trial, TrialState
from app.runs.workers import Machine, own_version, record_worker
from app.stores.folder import FolderStorage
from tests.factories import make_run

SMALL, LARGE, OTHER = "small:1", "large:1", "other:1"


def seen(
    session: Session,
    process: str,
    most_processes: int | None,
    *,
    weights: list[str] | None = None,
    now: datetime,
) -> None:
    """A worker of our version that beat at that moment."""
    machine = Machine(
        host=process.partition(":")[0],
        process=process,
        version=own_version(),
        memory_bytes=None,
        memory_free_bytes=None,
        started_at=now,
        weights=weights,
        most_processes=most_processes,
    )
    record_worker(session, process, queues="gpu", device="H100", machine=machine, now=now)


def in_processes(session: Session, storage: FolderStorage, count: int) -> Run:
    """A run whose only seed waits."""
    run = make_run(session, storage, queued_at=utc_now())
    run.processes = count
    session.flush()
    return run


def test_a_worker_with_too_few_gpus_leaves_a_run_to_others(session: Session, storage: FolderStorage) -> None:
    now = utc_now()
    wide, narrow = in_processes(session, storage, 4), in_processes(session, storage, 1)
    seen(session, SMALL, 1, now=now)
    seen(session, LARGE, 4, now=now)

    first = queue.claim_next(session, by=f"{SMALL}/2", now=now)
    second = queue.claim_next(session, by=f"{SMALL}/3", now=now)
    third = queue.claim_next(session, by=f"{LARGE}/2", now=now)

    assert (first and first.id, second, third and third.id) == (narrow.trials[0].id, None, wide.trials[0].id)


def test_a_worker_that_did_not_tell_its_gpus_is_offered_all(session: Session, storage: FolderStorage) -> None:
    now = utc_now()
    run = in_processes(session, storage, 4)
    seen(session, OTHER, None, now=now)

    claim = queue.claim_next(session, by=f"{OTHER}/2", now=now)

    assert claim is not None
    assert claim.id == run.trials[0].id


def set_back(session: Session, run: Run, by: str, *, times: int, now: datetime) -> Trial:
    """It could not be trained there, again and again."""
    trial_id = run.trials[0].id
    for number in range(times):
        at = now + number * timedelta(hours=1)
        claim = trials.claim_trial(session, trial_id, by=f"{by}/2", now=at)
        assert claim is not None, number
        trials.set_back(session, claim, reason="Too small.", fault=Fault.MACHINE, by=by, now=now)
    return session.get_one(Trial, trial_id, populate_existing=True)


def test_memory_that_does_not_suffice_fails_no_trial_while_another_worker_has_not_tried(
    session: Session, storage: FolderStorage
) -> None:
    now = utc_now()
    run = in_processes(session, storage, 1)
    seen(session, SMALL, 1, now=now)
    seen(session, LARGE, 1, now=now)  # and busy

    waits = set_back(session, run, SMALL, times=MAX_SETBACKS + 2, now=now)

    assert (waits.state, waits.setbacks, waits.avoided) == (TrialState.QUEUED, MAX_SETBACKS, [SMALL])
    again = set_back(session, run, LARGE, times=1, now=now + timedelta(days=1))
    assert again.state is TrialState.FAILED
    assert "on 2 workers" in (again.failure or "")


def test_workers_that_could_not_split_a_run_do_not_keep_it_from_failing(
    session: Session, storage: FolderStorage
) -> None:
    now = utc_now()
    run = in_processes(session, storage, 4)
    seen(session, SMALL, 1, now=now)
    seen(session, OTHER, 0, now=now)  # which hands trials to a cluster

    failed = set_back(session, run, LARGE, times=MAX_SETBACKS, now=now)

    assert failed.state is TrialState.FAILED


def test_jobs_that_a_cluster_started_for_one_trial_do_not_keep_it_from_failing(
    session: Session, storage: FolderStorage
) -> None:
    now = utc_now()
    run = in_processes(session, storage, 1)

    for number in range(MAX_SETBACKS):
        at = now + number * timedelta(hours=1)
        seen(session, "launcher:1", 0, now=at)
        seen(session, f"node{number}:1", 0, now=at)
        seen(session, f"beside{number}:1", 0, now=at)  # which trains another trial
        claim = trials.claim_trial(session, run.trials[0].id, by=f"node{number}:1/2", now=at)
        assert claim is not None, number
        by = f"node{number}:1"
        state = trials.set_back(session, claim, reason="No room.", fault=Fault.MACHINE, by=by, now=at)

    assert state is TrialState.FAILED


def test_what_passes_fails_no_trial_that_machines_set_back_often(
    session: Session, storage: FolderStorage
) -> None:
    now = utc_now()
    run = in_processes(session, storage, 1)
    seen(session, SMALL, 1, now=now)
    seen(session, LARGE, 1, now=now)
    waits = set_back(session, run, SMALL, times=MAX_SETBACKS, now=now)
    assert waits.state is TrialState.QUEUED  # another one has not tried
    at = now + timedelta(days=1)  # when nobody is there any more who has not
    claim = trials.claim_trial(session, waits.id, by=f"{LARGE}/2", now=at)
    assert claim is not None

    state = trials.set_back(session, claim, reason="Away.", fault=Fault.PASSING, by=LARGE, now=at)

    assert state is TrialState.QUEUED


def test_what_hands_trials_to_a_cluster_does_not_say_which_weights_are_there(session: Session) -> None:
    now = utc_now()
    seen(session, "launcher:1", 0, weights=[], now=now)
    seen(session, "node:1", 0, weights=["a.pth"], now=now)
    alone = workers.weights_of_workers(session, now=now)
    seen(session, OTHER, 1, weights=["b.pth"], now=now)
    beside = workers.weights_of_workers(session, now=now)
    elsewhere = workers.weights_of_workers(session, now=now + timedelta(hours=1))

    assert (alone, beside, elsewhere) == (None, None, None)


def test_the_page_says_that_no_worker_is_large_enough(
    client: TestClient, session: Session, storage: FolderStorage
) -> None:
    now = utc_now()
    run = in_processes(session, storage, 4)
    seen(session, SMALL, 2, now=now)
    session.commit()

    alone = client.get(f"/runs/{run.id}", headers={"accept": "text/html"}).text
    seen(session, LARGE, 4, now=now)
    session.commit()
    beside = client.get(f"/runs/{run.id}", headers={"accept": "text/html"}).text

    told = "The run trains in 4 processes, each on a GPU of its own (CLARINET_GPUS) or, without GPUs, a core."
    assert f"small: {told} This worker has 2." in alone
    assert told not in beside
