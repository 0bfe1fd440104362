"""A trial that several processes of a worker train: watched, ended and blamed as if it were one."""

import os
import signal
import threading
from collections.abc import Mapping
from uuid import UUID

import pytest
from sqlalchemy import select

from app.accounts.models import User
from app.clock import utc_now
from app.runs import service as runs
from app.runs.models import Metric, Run, Trial, TrialState
from tests.factories import make_run
from tests.worker.conftest import trainers_of, trial_of, wait_until
from tests.worker.test_together import learnt_alone
from worker.context import Context
from worker.supervisor import train_trial

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("trainers_without_onnx")]
PATIENCE_S = 240.0


def make_trial(context: Context, config: Mapping[str, object] | None = None) -> Trial:
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, config=config, queued_at=utc_now())
        run.processes = 2
    return run.trials[0]


def metrics_of(context: Context, trial_id: UUID) -> list[Metric]:
    with context.reading() as session:
        query = select(Metric).where(Metric.trial_id == trial_id).order_by(Metric.epoch)
        return list(session.scalars(query))


def in_background(context: Context, trial: Trial) -> threading.Thread:
    """Supervise a trial until both of its processes train."""
    known = len(metrics_of(context, trial.id))
    # A daemon, so that a test that fails leaves no training behind.
    task = threading.Thread(target=train_trial, args=(context, trial.id), daemon=True)
    task.start()
    wait_until(lambda: len(metrics_of(context, trial.id)) > known, timeout_s=PATIENCE_S)
    assert len(trainers_of(trial.id)) == 2
    return task


def test_two_processes_train_a_trial_as_one_does(context: Context) -> None:
    both = make_trial(context)

    train_trial(context, both.id)

    ended = trial_of(context, both.id)
    assert (ended.state, ended.failure) == (TrialState.SUCCEEDED, None)
    found, (_, expected) = metrics_of(context, both.id), learnt_alone(context, both)
    assert [metric.epoch for metric in found] == [1, 2]  # by one of them
    for metric, losses in zip(found, expected, strict=True):
        assert metric.losses == pytest.approx(losses, rel=0.05)  # bfloat16
    assert trainers_of(both.id) == []


@pytest.mark.slow  # four processes load torch
def test_the_other_process_killed_costs_an_attempt_and_the_trial_goes_on(context: Context) -> None:
    trial = make_trial(context, {"epochs": 100_000, "steps_per_epoch": 2})
    task = in_background(context, trial)

    other = max(trainers_of(trial.id), key=lambda pid: os.getpgid(pid) != pid)  # the first leads the group
    os.kill(other, signal.SIGKILL)
    task.join(PATIENCE_S)

    handed_on = trial_of(context, trial.id)
    assert (handed_on.state, handed_on.attempts) == (TrialState.QUEUED, 1)
    assert trainers_of(trial.id) == []

    task = in_background(context, trial)
    with context.unit_of_work() as session:
        admin = session.get_one(User, session.get_one(Run, trial.run_id).created_by_id)
        run = runs.get_run(session, trial.run_id, by=admin)
        runs.cancel_run(session, run, by=admin, now=utc_now())
    task.join(PATIENCE_S)

    assert trial_of(context, trial.id).state is TrialState.CANCELLED
    assert trainers_of(trial.id) == []
