"""Supervisor and trainer as real processes, killed, stopped and doubled."""

import hashlib
import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import select, update

from app import jobs
from app.accounts.models import User
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.jobs import Job
from app.registry import service as registry
from app.registry.models import Model
from app.runs import service as runs
from app.runs import steering, trials
from app.runs.labels import key_of
from app.runs.models import Metric, Run, Trial, TrialState
from tests.factories import make_run
from tests.worker.conftest import (
    PYTHON,
    SUPERVISE,
    both_databases,
    folder_of,
    slow_on_postgresql,
    trainers_of,
    trial_of,
    wait_until,
)
from worker.context import Context
from worker.local.processes import environment_of
from worker.supervisor import train_trial
from worker.upkeep import Upkeep

Started = list[subprocess.Popen[bytes]]
LONG = {"epochs": 100_000, "steps_per_epoch": 2}
"""Never ends by itself, and reports many times a second."""


def make_trial(context: Context, config: Mapping[str, object] | None = None, **details: object) -> Trial:
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, config=config, queued_at=utc_now(), **details)  # type: ignore[arg-type]
    return run.trials[0]


def epochs_of(context: Context, trial_id: UUID) -> list[int]:
    with context.reading() as session:
        return list(
            session.scalars(select(Metric.epoch).where(Metric.trial_id == trial_id).order_by(Metric.epoch))
        )


@pytest.fixture
def started() -> Iterator[Started]:
    processes: Started = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def supervise(context: Context, trial: Trial, started: Started) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([PYTHON, "-c", SUPERVISE, str(trial.id)], env=environment_of(context.settings))
    started.append(process)
    return process


def is_training(context: Context, trial_id: UUID) -> bool:
    return bool(epochs_of(context, trial_id))


class TestTrainTrial:
    @pytest.mark.long
    @slow_on_postgresql
    def test_a_trial_is_trained_reported_and_published(self, context: Context) -> None:
        trial = make_trial(context)

        train_trial(context, trial.id)

        ended = trial_of(context, trial.id)
        assert (ended.state, ended.failure) == (TrialState.SUCCEEDED, None)
        assert ended.claimed_until is None
        assert epochs_of(context, trial.id) == [1, 2]
        assert ended.target_accuracy is not None
        assert ended.result is not None
        assert ended.result["scored_on"] == 40
        assert ended.result["device"].startswith("CPU (")
        assert ended.result["memory_bytes"] > 10**8  # torch alone is more
        assert ended.result["scored"] == {"split": "test", "images": 40, "of": 40}
        assert sum(map(sum, ended.result["confusion"])) == 40
        with context.reading() as session:
            model = session.scalars(select(Model).where(Model.trial_id == trial.id)).one()
            metrics = session.scalars(select(Metric).where(Metric.trial_id == trial.id)).all()
        assert folder_of(context).path(f"{model.key}/{registry.WEIGHTS}").stat().st_size == model.size_bytes
        assert model.card["classes"] == ["cat", "dog"]
        estimate = model.card["source_estimate"]
        assert (estimate["estimate"], estimate["needed"]) == (None, 200)
        assert 0 < estimate["held_out"] < 200
        assert estimate["missing"] > 200
        assert [metric.source_estimate for metric in metrics] == [estimate] * 2
        assert all(metric.learning_rate is not None and metric.learning_rate > 0 for metric in metrics)
        assert all(0 <= (metric.pseudo_label_share or 0) <= 1 for metric in metrics)

    @pytest.mark.long
    def test_refused_data_fails_the_trial_in_words(self, context: Context) -> None:
        trial = make_trial(context, {"held_out_share": 0.5}, train=2)

        train_trial(context, trial.id)

        ended = trial_of(context, trial.id)
        assert ended.state is TrialState.FAILED
        assert ended.failure is not None
        assert ended.failure.endswith(".")
        assert "Traceback" not in ended.failure

    @pytest.mark.long
    def test_an_error_nobody_foresaw_fails_with_its_last_lines(self, context: Context) -> None:
        trial = make_trial(context)
        digest = hashlib.sha256(b"no npz").hexdigest()
        context.storage.put(key_of(digest), b"no npz")
        with context.unit_of_work() as session:
            session.get_one(Run, trial.run_id).snapshot_digest = digest

        train_trial(context, trial.id)

        ended = trial_of(context, trial.id)
        assert ended.state is TrialState.FAILED
        assert ended.failure is not None
        assert "ValueError: " in ended.failure.splitlines()[0]
        assert folder_of(context).path(f"trials/{trial.id}/log.txt").exists()

    def test_a_second_delivery_does_nothing(self, context: Context) -> None:
        trial = make_trial(context)
        with context.unit_of_work() as session:
            assert trials.claim_trial(session, trial.id, by="the first", now=utc_now())

        train_trial(context, trial.id)

        assert trial_of(context, trial.id).claimed_by == "the first"
        assert not folder_of(context).path(f"trials/{trial.id}").exists()

    def test_a_trial_that_trains_too_long_fails(self, context: Context) -> None:
        trial = make_trial(context, LONG)
        short = context.settings.model_copy(update={"run_timeout_s": 1})

        train_trial(Context(short, context.database, context.storage, context.publish), trial.id)

        ended = trial_of(context, trial.id)
        assert ended.state is TrialState.FAILED
        assert "longer than the limit" in (ended.failure or "")
        assert trainers_of(trial.id) == []

    @pytest.mark.long
    @pytest.mark.usefixtures("trainers_without_onnx")
    def test_one_that_trained_too_long_has_all_its_time_again_when_it_is_tried_again(
        self, context: Context
    ) -> None:
        trial = make_trial(context, state="failed")
        with context.unit_of_work() as session:
            told = {"epoch": 1, "epochs": 2, "step": 3, "losses": {}, "recorded_at": utc_now()}
            too_long = context.settings.run_timeout_s + 1.0
            session.add(Metric(trial_id=trial.id, seconds=too_long, **told))
            session.flush()
            admin = session.get_one(User, session.get_one(Run, trial.run_id).created_by_id)
            run = runs.get_run(session, trial.run_id, by=admin)
            steering.retry_failed(session, run, by=admin, now=utc_now())

        train_trial(context, trial.id)

        assert trial_of(context, trial.id).state is TrialState.SUCCEEDED

    @pytest.mark.long
    def test_a_worker_that_shuts_down_hands_the_trial_back_uncounted(
        self, context: Context, jobs_sent: list[Job]
    ) -> None:
        trial = make_trial(context, LONG)
        stopping = threading.Event()
        leaving = Context(
            context.settings, context.database, context.storage, context.publish, stopping.is_set
        )
        task = threading.Thread(target=train_trial, args=(leaving, trial.id))

        task.start()
        wait_until(lambda: is_training(context, trial.id))
        stopping.set()
        task.join(300)

        left = trial_of(context, trial.id)
        assert (left.state, left.attempts, left.claimed_until) == (TrialState.QUEUED, 0, None)
        assert folder_of(context).path(f"trials/{trial.id}/checkpoint.safetensors").exists()
        assert jobs_sent == []  # the worker that leaves would only take it again
        train_trial(leaving, trial.id)
        assert trial_of(context, trial.id).claim_number == 1
        Upkeep(context).once()
        assert jobs_sent == [Job(jobs.TRAIN_TRIAL, (str(trial.id),))]


class TestCancel:
    @pytest.mark.long
    def test_pausing_hands_it_back_with_a_checkpoint_and_cancelling_ends_process_and_row(
        self, context: Context, started: Started
    ) -> None:
        trial = make_trial(context, LONG)

        def ask(act: Callable[..., None]) -> None:
            with context.unit_of_work() as session:
                admin = session.get_one(User, session.get_one(Run, trial.run_id).created_by_id)
                act(session, runs.get_run(session, trial.run_id, by=admin), by=admin, now=utc_now())

        supervisor = supervise(context, trial, started)
        wait_until(lambda: is_training(context, trial.id))
        ask(steering.pause_run)
        supervisor.wait(300)
        paused = trial_of(context, trial.id)
        assert (paused.state, paused.attempts) == (TrialState.QUEUED, 0)
        assert folder_of(context).path(f"trials/{trial.id}/checkpoint.safetensors").exists()
        reached = len(epochs_of(context, trial.id))

        ask(steering.resume_run)
        supervisor = supervise(context, trial, started)
        wait_until(lambda: len(epochs_of(context, trial.id)) > reached)
        ask(runs.cancel_run)
        supervisor.wait(300)

        assert trial_of(context, trial.id).state is TrialState.CANCELLED
        assert trainers_of(trial.id) == []


class TestDeath:
    @pytest.mark.long
    @pytest.mark.usefixtures("trainers_without_onnx")
    def test_a_killed_trainer_is_handed_on_and_the_run_ends(self, context: Context, started: Started) -> None:
        trial = make_trial(context, {"epochs": 40, "steps_per_epoch": 4})
        supervisor = supervise(context, trial, started)
        wait_until(lambda: len(epochs_of(context, trial.id)) >= 3)

        os.kill(trainers_of(trial.id)[0], signal.SIGKILL)
        supervisor.wait(300)
        handed_on = trial_of(context, trial.id)
        assert (handed_on.state, handed_on.attempts) == (TrialState.QUEUED, 1)
        train_trial(context, trial.id)

        ended = trial_of(context, trial.id)
        assert (ended.state, ended.attempts) == (TrialState.SUCCEEDED, 2)
        assert epochs_of(context, trial.id) == list(range(1, 41))

    @pytest.mark.long
    @pytest.mark.usefixtures("trainers_without_onnx")
    @slow_on_postgresql
    def test_a_trainer_dies_with_its_supervisor_and_upkeep_hands_the_trial_on(
        self, context: Context, started: Started, jobs_sent: list[Job]
    ) -> None:
        trial = make_trial(context, {"epochs": 40, "steps_per_epoch": 4})
        supervisor = supervise(context, trial, started)
        wait_until(lambda: len(epochs_of(context, trial.id)) >= 3)

        supervisor.kill()
        supervisor.wait()
        wait_until(lambda: trainers_of(trial.id) == [])
        Upkeep(context).once()
        assert jobs_sent == []  # the lease still runs
        Upkeep(context, clock=lambda: utc_now() + timedelta(seconds=31)).once()

        assert jobs_sent == [Job(jobs.TRAIN_TRIAL, (str(trial.id),))]
        with context.unit_of_work() as session:  # as if the lease had run out
            session.execute(update(Trial).values(claimed_until=utc_now() - timedelta(seconds=1)))
        train_trial(context, trial.id)
        ended = trial_of(context, trial.id)
        assert (ended.state, ended.attempts) == (TrialState.SUCCEEDED, 2)

    def test_a_process_that_always_dies_fails_after_three_attempts(self, context: Context) -> None:
        trial = make_trial(context, LONG)

        for _ in range(3):
            task = threading.Thread(target=train_trial, args=(context, trial.id))
            task.start()
            wait_until(lambda: bool(trainers_of(trial.id)))
            os.kill(trainers_of(trial.id)[0], signal.SIGKILL)
            task.join(300)

        ended = trial_of(context, trial.id)
        assert ended.state is TrialState.FAILED
        assert "signal 9" in (ended.failure or "")


def stop_between_transactions(context: Context, *processes: int) -> None:
    """Stop processes at a moment at which none of them keeps SQLite's only writer from all others."""
    url = context.database.engine.url

    def stopped_outside() -> bool:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        if url.get_backend_name() != "sqlite" or url.database is None:
            return True
        with closing(sqlite3.connect(url.database, timeout=0.2, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                for process in processes:
                    os.kill(process, signal.SIGCONT)
                return False
            connection.execute("ROLLBACK")
        return True

    wait_until(stopped_outside)


class TestZombie:
    @pytest.mark.long
    @slow_on_postgresql
    def test_a_trainer_that_wakes_after_a_takeover_writes_nothing_and_ends(
        self, context: Context, started: Started
    ) -> None:
        trial = make_trial(context, LONG)
        supervisor = supervise(context, trial, started)
        wait_until(lambda: is_training(context, trial.id))
        [trainer] = trainers_of(trial.id)

        stop_between_transactions(context, supervisor.pid, trainer)
        with context.unit_of_work() as session:
            session.execute(update(Trial).values(claimed_until=utc_now() - timedelta(seconds=1)))
            taken = trials.claim_trial(session, trial.id, by="the next", now=utc_now())
        before = epochs_of(context, trial.id)
        os.kill(trainer, signal.SIGCONT)
        wait_until(lambda: trainers_of(trial.id) == [])
        os.kill(supervisor.pid, signal.SIGCONT)
        supervisor.wait(300)

        assert taken == Claim(Trial, trial.id, 2)
        assert epochs_of(context, trial.id) == before
        now = trial_of(context, trial.id)
        assert (now.state, now.claimed_by) == (TrialState.RUNNING, "the next")

    @both_databases
    def test_a_late_success_publishes_nothing(self, context: Context) -> None:
        trial = make_trial(context)
        with context.unit_of_work() as session:
            late = trials.claim_trial(session, trial.id, by="late", now=utc_now() - timedelta(minutes=1))
            trials.claim_trial(session, trial.id, by="next", now=utc_now())
        assert late is not None

        with pytest.raises(ClaimLost), context.unit_of_work() as session:
            trials.succeed_trial(session, late, target_accuracy=1.0, result={}, now=utc_now())

        assert trial_of(context, trial.id).state is TrialState.RUNNING
