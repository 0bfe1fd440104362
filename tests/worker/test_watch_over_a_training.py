"""Over a process that trains: what this host or the database does is not held against it."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import torch

from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.db import connect
from app.runs import trials
from app.runs.faults import Fault
from app.runs.models import Trial, TrialState
from app.storage import StorageRefused
from clarinet.recipes.errors import ExportError
from tests.worker.conftest import trial_of
from tests.worker.test_supervisor import make_trial
from worker.beats import Listener, Teller
from worker.context import Context
from worker.fitness import trouble_of
from worker.supervision import Ending, Supervision, Watched
from worker.trainer.faults import trouble_in


def claimed(context: Context) -> tuple[Trial, Claim]:
    """A trial, and the claim to it."""
    trial = make_trial(context)
    with context.unit_of_work() as session:
        claim = trials.claim_trial(session, trial.id, by="here:1/2", now=utc_now())
    assert claim is not None
    return trial, claim


@contextmanager
def watched(context: Context, claim: Claim, seconds: float, folder: Path) -> Iterator[Supervision]:
    """Supervision of a process that ends after so long."""
    with Listener() as listener:
        process = subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
        try:
            watched = Watched(claim, folder / "log", listener, time.monotonic() + 60)
            yield Supervision(context, process, "here:1", [watched])
        finally:
            process.kill()
            process.wait()


def test_a_host_that_slept_longer_than_a_training_may_stall_keeps_it(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.supervision.LOOK_S", 0.8)  # as if it slept at each look
    hasty = replace(context, settings=context.settings.model_copy(update={"stall_timeout_s": 0.5}))
    _, claim = claimed(context)
    with watched(hasty, claim, 2, tmp_path) as supervision:
        teller = Teller(supervision.under_way[0].listener.write_end)

        def train() -> None:
            while supervision.process.returncode is None:
                teller.say("x")
                time.sleep(0.05)

        Thread(target=train, daemon=True).start()
        assert supervision.watch() is Ending.EXITED


def test_a_long_outage_of_the_database_costs_no_attempt_and_takes_nothing_from_others(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.supervision.PATIENCE_S", 0.2)
    monkeypatch.setattr("worker.supervision.BEAT_S", 0.1)
    trial, claim = claimed(context)
    nowhere = connect(f"sqlite:///{tmp_path / 'not mounted' / 'own.db'}")
    with watched(replace(context, database=nowhere), claim, 60, tmp_path) as supervision:
        ending = supervision.watch()
        assert ending is Ending.AWAY
        assert supervision.process.returncode is not None
        replace(supervision, context=context).settle(supervision.under_way[0], ending)
    waits = trial_of(context, trial.id)
    assert (waits.state, waits.attempts, waits.fault) == (TrialState.QUEUED, 0, Fault.PASSING)

    with context.unit_of_work() as session:
        later = trials.claim_trial(session, trial.id, by="there:1/2", now=utc_now().replace(year=2999))
    assert later is not None
    with watched(context, claim, 0, tmp_path) as supervision, pytest.raises(ClaimLost):
        supervision.settle(supervision.under_way[0], Ending.AWAY)
    assert trial_of(context, trial.id).claimed_by == "there:1/2"
    nowhere.dispose()


def test_what_memory_does_not_suffice_for_is_the_machines_fault() -> None:
    for error in (
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."),
    ):
        assert (trouble_in(error) or "").startswith("Memory did not suffice: ")
    assert trouble_in(RuntimeError("shapes do not match")) is None


def test_a_part_of_the_program_that_cannot_be_loaded_for_an_export_is_the_machines_fault() -> None:
    torn, wrong = ExportError("the network cannot be written"), ExportError("the network cannot be written")
    torn.__cause__ = ImportError("failed to map segment from shared object")
    wrong.__cause__ = RuntimeError("no such operator")

    assert trouble_in(torn) == "The network cannot be written."
    assert trouble_in(wrong) is None


def test_a_worker_that_its_bucket_refuses_takes_nothing(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_trial(context)

    def refused(*_: object) -> None:
        raise StorageRefused("s3://b refuses us: 403")

    assert trouble_of(context.settings, context.database, context.storage) is None
    monkeypatch.setattr(type(context.storage), "about", refused)
    told = trouble_of(context.settings, context.database, context.storage)
    assert told == "s3://b refuses us: 403. Mend CLARINET_S3_* of this machine, or its clock."


@pytest.mark.parametrize(("is_stopping", "attempts"), [(True, 0), (False, 1)])
def test_a_signal_to_all_processes_of_a_worker_costs_no_attempt(
    context: Context, tmp_path: Path, *, is_stopping: bool, attempts: int
) -> None:
    trial, claim = claimed(context)
    asked = replace(context, is_stopping=lambda: is_stopping)
    with watched(asked, claim, 60, tmp_path) as supervision:
        supervision.process.terminate()
        supervision.process.wait()
        assert supervision.watch() is Ending.EXITED  # it was seen before the flag
        supervision.settle_all(Ending.EXITED)

    back = trial_of(context, trial.id)
    assert (back.state, back.attempts) == (TrialState.QUEUED, attempts)
