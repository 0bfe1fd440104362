"""Several trials of a run in one training process: each learns, reports and ends as it does alone."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
import torch
from sqlalchemy import select, text

from app.claims import Claim
from app.clock import utc_now
from app.registry.models import Model
from app.runs import queue, trials
from app.runs.faults import Fault
from app.runs.logs import log_key
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.workers import Machine, own_version, record_worker
from clarinet.recipes.config import TrainConfig
from clarinet.run.tensor_files import tensors_digest
from clarinet.run.training import train
from tests.factories import make_run
from tests.worker.conftest import PYTHON, SUPERVISE, folder_of, trainers_of, trial_of, wait_until
from worker.beats import Listener, Teller
from worker.context import Context
from worker.local.processes import environment_of
from worker.supervision import Ending, Supervision, Watched
from worker.supervisor import train_trial
from worker.trainer.exits import Exit
from worker.trainer.trial_data import load

EPOCHS = 5
Learnt = tuple[str | None, list[dict[str, float]]]
"""The digest of a model's tensors, and the losses of its epochs."""


def together(context: Context, at_once: int = 3) -> Context:
    """The context of a worker that trains so many at once."""
    return replace(context, settings=context.settings.model_copy(update={"trials_at_once": at_once}))


def make_trials(context: Context, *seeds: int, epochs: int = EPOCHS) -> list[Trial]:
    """Trials of one run that wait, by seed."""
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, seeds=seeds, config={"epochs": epochs}, queued_at=utc_now())
    return sorted(run.trials, key=lambda trial: trial.seed)


def learnt_alone(context: Context, trial: Trial) -> Learnt:
    """What the library makes of a trial by itself."""
    with context.reading() as session:
        run = session.get_one(Run, trial.run_id)
        config = TrainConfig.from_dict(run.config | {"seed": trial.seed})
        data = load(session, context.storage, run, config).data
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the processes of these tests have
    try:
        result = train(config, data)
    finally:
        torch.set_num_threads(threads)
    return tensors_digest(result.model.state_dict()), [report.losses for report in result.reports]


def learnt(context: Context, trial: Trial) -> Learnt:
    """What its process made of a trial that succeeded."""
    assert trial_of(context, trial.id).state is TrialState.SUCCEEDED, log_of(context, trial.id)
    with context.reading() as session:
        digest = session.scalars(select(Model.tensors_digest).where(Model.trial_id == trial.id)).one()
        told = select(Metric).where(Metric.trial_id == trial.id).order_by(Metric.epoch)
        return digest, [metric.losses for metric in session.scalars(told)]


def log_of(context: Context, trial_id: UUID) -> str:
    return folder_of(context).path(log_key(trial_id)).read_text()


def epochs_of(context: Context, trial: Trial) -> int:
    with context.reading() as session:
        return len(session.scalars(select(Metric.id).where(Metric.trial_id == trial.id)).all())


def claims_of(context: Context, *given: Trial) -> list[Claim]:
    with context.unit_of_work() as session:
        claims = [trials.claim_trial(session, trial.id, by="here:1/2", now=utc_now()) for trial in given]
    return [claim for claim in claims if claim]


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_seeds_train_in_one_process_as_alone_and_the_fault_of_one_is_its_own(context: Context) -> None:
    first, faulty, last = given = make_trials(context, 0, 1, 2)
    folder_of(context).path(trials.checkpoint_key(faulty.id)).mkdir(parents=True)  # where a file should be

    train_trial(together(context), first.id)

    for trial in (first, last):
        assert learnt(context, trial) == learnt_alone(context, trial)
        result = trial_of(context, trial.id).result
        assert result is not None
        assert result["together"] == 3
    waits = trial_of(context, faulty.id)
    assert (waits.state, waits.attempts, waits.setbacks) == (TrialState.QUEUED, 0, 1)
    assert "checkpoint" in (waits.setback or "")
    for trial in given:
        text = log_of(context, trial.id)
        assert [each for each in given if str(each.id) in text] == [trial]


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_a_worker_that_shuts_down_hands_all_back_and_they_go_on_together(context: Context) -> None:
    given = make_trials(context, 0, 1, epochs=30)
    stopping = threading.Event()
    leaving = replace(together(context), is_stopping=stopping.is_set)
    task = threading.Thread(target=train_trial, args=(leaving, given[0].id))

    task.start()
    wait_until(lambda: all(epochs_of(context, trial) >= 2 for trial in given), timeout_s=300)
    stopping.set()
    task.join(300)

    for trial in given:
        left = trial_of(context, trial.id)
        assert (left.state, left.attempts, left.claimed_until) == (TrialState.QUEUED, 0, None)
        assert folder_of(context).path(trials.checkpoint_key(trial.id)).exists()
    train_trial(together(context), given[0].id)
    for trial in given:
        assert learnt(context, trial) == learnt_alone(context, trial)
        assert '"resumed": true' in log_of(context, trial.id) or "resumed=True" in log_of(context, trial.id)


@pytest.mark.slow  # five trainings in three processes
@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_a_killed_process_gives_all_back_and_one_goes_on_alone_to_the_same_weights(context: Context) -> None:
    given = make_trials(context, 0, 1, epochs=30)
    environment = environment_of(together(context).settings)
    with subprocess.Popen([PYTHON, "-c", SUPERVISE, str(given[0].id)], env=environment) as watching:
        wait_until(lambda: all(epochs_of(context, trial) >= 2 for trial in given), timeout_s=300)
        [trainer] = trainers_of(given[0].id)
        assert trainers_of(given[1].id) == [trainer]
        os.kill(trainer, signal.SIGKILL)
        watching.wait(300)

    for trial in given:
        back = trial_of(context, trial.id)
        assert (back.state, back.attempts, back.claimed_until) == (TrialState.QUEUED, 1, None)
    train_trial(together(context), given[0].id)
    ended = trial_of(context, given[0].id)
    assert ended.result is not None
    assert (ended.attempts, ended.result["together"]) == (2, 1)
    assert learnt(context, given[0]) == learnt_alone(context, given[0])
    assert trial_of(context, given[1].id).attempts == 1  # it pays once, and never by another one's doing


CROWDED = """
import sys
import torch
from worker.trainer import training
from worker.trainer.given import Given
from worker.trainer.together import train_claimed

plain, refused = training.train_in_steps, []

def full(config, *given, **named):
    steps = plain(config, *given, **named)
    yield next(steps)
    if config.seed == 1 and not refused:
        refused.append(True)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    return (yield from steps)

training.train_in_steps = full
sys.exit(train_claimed(Given.all_of(sys.argv[1:]), should_stop=lambda: False))
"""


@pytest.mark.slow  # four trainings
@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_who_finds_no_room_beside_others_trains_after_them_alone(context: Context, tmp_path: Path) -> None:
    given = make_trials(context, 0, 1)
    claims = claims_of(context, *given)
    with ExitStack() as stack:
        listeners = [stack.enter_context(Listener()) for _ in claims]
        logs = [stack.enter_context((tmp_path / str(claim.id)).open("wb")) for claim in claims]
        words = [
            word
            for claim, listener, log in zip(claims, listeners, logs, strict=True)
            for word in (str(claim.id), str(claim.number), str(listener.write_end), str(log.fileno()))
        ]
        subprocess.run(
            [PYTHON, "-c", CROWDED, *words],
            env=environment_of(context.settings),
            pass_fds=[*(each.write_end for each in listeners), *(log.fileno() for log in logs)],
            check=True,
        )
        assert all(each.heard() for each in listeners)
        assert [each.left for each in listeners] == [Exit.ENDED, Exit.ENDED]

    beside = [(trial_of(context, trial.id).result or {})["together"] for trial in given]
    assert beside == [2, 1]
    assert learnt(context, given[1]) == learnt_alone(context, given[1])


class TestClaiming:
    def test_one_run_alone_is_taken_together_and_only_by_workers_that_want_it(self, context: Context) -> None:
        given = make_trials(context, 0, 1, 2, 3)
        other = make_trials(context, 0)
        with context.unit_of_work() as session:
            first = trials.claim_trial(session, given[0].id, by="here:1/2", now=utc_now())
            assert first is not None
            assert queue.claim_beside(session, first, at_most=0, by="here:1/2", now=utc_now()) == []
            beside = queue.claim_beside(session, first, at_most=2, by="here:1/2", now=utc_now())

        assert [claim.id for claim in beside] == [given[1].id, given[2].id]
        assert [trial_of(context, trial.id).claim_number for trial in [*given, *other]] == [1, 1, 1, 0, 0]

    def test_another_worker_that_idles_finds_its_share(self, context: Context) -> None:
        given = make_trials(context, 0, 1, 2, 3, 4)
        with context.unit_of_work() as session:
            for name in ("here:1", "there:1"):
                machine = Machine(
                    host="",
                    process=name,
                    version=own_version(),
                    memory_bytes=None,
                    memory_free_bytes=None,
                    started_at=utc_now(),
                )
                record_worker(session, name, queues="gpu", device="CPU", machine=machine, now=utc_now())
            first = trials.claim_trial(session, given[0].id, by="here:1/2", now=utc_now())
            assert first is not None
            here = queue.claim_beside(session, first, at_most=9, by="here:1/2", now=utc_now())
            second = trials.claim_trial(session, given[3].id, by="there:1/2", now=utc_now())
            assert second is not None
            there = queue.claim_beside(session, second, at_most=9, by="there:1/2", now=utc_now())

        assert [claim.id for claim in here] == [given[1].id, given[2].id]
        assert [claim.id for claim in there] == [given[4].id]

    @pytest.mark.parametrize("own_database_url", ["postgresql"], indirect=True)
    def test_whoever_holds_one_waits_for_no_other(self, context: Context) -> None:
        given = make_trials(context, 0, 1, 2)
        with context.unit_of_work() as there, context.unit_of_work() as here:
            here.execute(text("SET LOCAL lock_timeout = 2000"))  # ms
            first = trials.claim_trial(here, given[0].id, by="here:1/2", now=utc_now())
            assert first is not None
            assert trials.claim_trial(there, given[1].id, by="there:1/2", now=utc_now())
            beside = queue.claim_beside(here, first, at_most=9, by="here:1/2", now=utc_now())

        assert [claim.id for claim in beside] == [given[2].id]

    def test_whose_process_was_lost_once_trains_alone(self, context: Context) -> None:
        given = make_trials(context, 0, 1, 2)
        with context.unit_of_work() as session:
            session.get_one(Trial, given[1].id).attempts = 1
            session.flush()
            first = trials.claim_trial(session, given[0].id, by="here:1/2", now=utc_now())
            assert first is not None
            beside = queue.claim_beside(session, first, at_most=9, by="here:1/2", now=utc_now())
            again = trials.claim_trial(session, given[1].id, by="there:1/2", now=utc_now())
            assert again is not None
            alone = queue.claim_beside(session, again, at_most=9, by="there:1/2", now=utc_now())

        assert ([claim.id for claim in beside], alone) == ([given[2].id], [])


@contextmanager
def watched(context: Context, given: list[Trial], folder: Path, *limits_s: float) -> Iterator[Supervision]:
    """Supervision of a process that only sleeps, as if it trained these."""
    with ExitStack() as stack:
        found = [
            Watched(claim, folder / "log", stack.enter_context(Listener()), time.monotonic() + limit)
            for claim, limit in zip(claims_of(context, *given), limits_s, strict=True)
        ]
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        try:
            yield Supervision(context, process, "here:1", found)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beats come so often that a test can wait for them."""
    monkeypatch.setattr("worker.supervision.LOOK_S", 0.02)
    monkeypatch.setattr("worker.supervision.BEAT_S", 0.02)


@pytest.mark.usefixtures("soon")
class TestWatching:
    def test_one_that_trained_too_long_fails_and_the_other_goes_on_later(
        self, context: Context, tmp_path: Path
    ) -> None:
        given = make_trials(context, 0, 1)
        with watched(context, given, tmp_path, 60, 0.1) as supervision:
            ending = supervision.watch()
            supervision.settle_all(ending)

        assert ending is Ending.OVERDUE
        waits, failed = (trial_of(context, trial.id) for trial in given)
        assert (waits.state, waits.attempts) == (TrialState.QUEUED, 0)
        assert (failed.state, failed.fault) == (TrialState.FAILED, Fault.RUN)

    def test_ends_are_written_while_the_others_train_and_who_is_lost_is_let_go(
        self, context: Context, tmp_path: Path
    ) -> None:
        broken, lost, trains = given = make_trials(context, 0, 1, 2)
        with watched(context, given, tmp_path, 60, 60, 60) as supervision:
            teller = Teller(supervision.under_way[0].listener.write_end)
            teller.say("The disk is full.")
            teller.leave(Exit.MACHINE)
            with context.unit_of_work() as session:
                session.get_one(Trial, lost.id).claim_number += 1  # as if another worker had it
            watch = threading.Thread(target=supervision.watch)
            watch.start()
            wait_until(lambda: [each.claim.id for each in supervision.under_way] == [trains.id])
            held = trial_of(context, trains.id)
            assert supervision.process.poll() is None
            with context.unit_of_work() as session:
                session.get_one(Run, trains.run_id).cancel_requested_at = utc_now()
            watch.join(300)

        assert context.suspicion
        waits = trial_of(context, broken.id)
        assert (waits.state, waits.setback) == (TrialState.QUEUED, "The disk is full.")
        assert trial_of(context, lost.id).state is TrialState.RUNNING
        assert held.claimed_until is not None

    def test_an_error_that_ends_the_process_is_held_against_none_of_several(
        self, context: Context, tmp_path: Path
    ) -> None:
        given = make_trials(context, 0, 1)
        with watched(context, given, tmp_path, 60, 60) as supervision:
            supervision.process.kill()
            supervision.process.wait()
            supervision.process.returncode = 1
            supervision.settle_all(Ending.EXITED)

        for trial in given:
            back = trial_of(context, trial.id)
            assert (back.state, back.attempts) == (TrialState.QUEUED, 1)
