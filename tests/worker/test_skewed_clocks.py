"""Hosts whose clocks are ten minutes off neither take what others hold nor lose what they hold."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from app import clock, database_clock
from app.accounts.models import User
from app.annotation.models import Lease
from app.clock import utc_now
from app.db import connect
from app.fast.leasing import lease
from app.runs import trials
from app.runs.models import TrialState
from tests.factories import make_campaign, make_run, make_user
from tests.worker.conftest import PYTHON, SUPERVISE, both_databases, slow_on_postgresql, trial_of, wait_until
from worker.bench.faults.hosts import SKEWED
from worker.context import Context
from worker.local.processes import environment_of

TEN_MINUTES = 600
LONG = {"epochs": 100_000, "steps_per_epoch": 2}

LEASE = """
import sys
from uuid import UUID
from app.accounts.models import User
from app.clock import utc_now
from app.fast.leasing import lease
from app.settings import Settings
from worker.context import Context
with Context.of(Settings()).unit_of_work() as session:
    person = session.get_one(User, UUID(sys.argv[2]))
    _, held = lease(session, UUID(sys.argv[1]), count=100, by=person, now=utc_now())
    print(len(held.questions))
"""
"""A web process's lease, in a process whose clock is wrong."""


@pytest.fixture(autouse=True)
def own_time() -> Iterator[None]:
    """What one test follows, the next does not."""
    clock.forget()
    yield
    clock.forget()


def started(context: Context, script: str, *arguments: object, skew_s: int) -> subprocess.Popen[str]:
    """A process on a host whose clock is ahead by so much."""
    ahead_s = context.settings.data_dir / "clock-ahead-s"
    ahead_s.write_text(str(skew_s))
    given = environment_of(context.settings) | {"CLOCK_AHEAD_S": str(ahead_s)}
    given["PYTHONPATH"] = os.pathsep.join([str(SKEWED), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [PYTHON, "-c", script, *map(str, arguments)], env=given, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.long
@slow_on_postgresql
def test_a_worker_that_is_ahead_takes_no_trial_that_is_held(context: Context) -> None:
    with context.unit_of_work() as session:
        [trial] = make_run(session, context.storage, queued_at=utc_now()).trials
        assert trials.claim_trial(session, trial.id, by="a healthy one", now=utc_now())

    process = started(context, SUPERVISE, trial.id, skew_s=TEN_MINUTES)
    said, _ = process.communicate(timeout=60)

    assert "trial.none_free" in said
    after = trial_of(context, trial.id)
    assert (after.attempts, after.claimed_by, after.claim_number) == (1, "a healthy one", 1)


@pytest.mark.long
@slow_on_postgresql
def test_a_worker_that_is_behind_keeps_its_trial(context: Context) -> None:
    with context.unit_of_work() as session:
        [trial] = make_run(session, context.storage, config=LONG, queued_at=utc_now()).trials

    with started(context, SUPERVISE, trial.id, skew_s=-TEN_MINUTES) as process:
        try:
            wait_until(lambda: trial_of(context, trial.id).state is TrialState.RUNNING)
            with context.unit_of_work() as session:
                taken = trials.claim_trial(session, trial.id, by="somebody else", now=utc_now())
        finally:
            process.kill()

    after = trial_of(context, trial.id)
    assert taken is None
    assert after.claimed_until is not None
    assert timedelta(0) < after.claimed_until - datetime.now(UTC) <= timedelta(seconds=30)


@pytest.mark.long
@slow_on_postgresql
@pytest.mark.parametrize("skew_s", [TEN_MINUTES, -TEN_MINUTES])
def test_questions_are_held_whatever_the_clock_of_a_web_process_says(context: Context, skew_s: int) -> None:
    with context.unit_of_work() as session:
        campaign = make_campaign(session, examples=8)
        mine, theirs = make_user(session), make_user(session)
        _, held = lease(session, campaign.id, count=4, by=mine, now=utc_now())
    assert len(held.questions) == 4

    process = started(context, LEASE, campaign.id, theirs.id, skew_s=skew_s)
    said, _ = process.communicate(timeout=60)

    assert said.split()[-1] == "4"  # the other four, none of mine
    with context.unit_of_work() as session:
        _, left = lease(session, campaign.id, count=8, by=make_user(session), now=utc_now())
        leases = session.scalar(select(func.count()).select_from(Lease))
    assert (len(left.questions), leases) == (0, 8)


class TestFollowing:
    TOLD = datetime(2026, 1, 1, tzinfo=UTC)

    def test_the_database_is_right(self) -> None:
        start = clock.counted_s()
        clock.follow(self.TOLD, asked_s=start, answered_s=start)
        assert timedelta(0) <= utc_now() - self.TOLD < timedelta(seconds=1)
        assert clock.host_ahead_s() > 0

    def test_what_a_measurement_cannot_tell_moves_nothing(self) -> None:
        # The answer took two seconds: half of that, and the clocks' own slack, may be nothing.
        asked = clock.counted_s()
        told = clock.host_now() + timedelta(seconds=0.9 + 1)
        clock.follow(told, asked_s=asked, answered_s=asked + 2)
        assert abs(clock.host_ahead_s()) < 0.1

    def test_a_host_whose_clock_is_set_later_keeps_its_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        start = clock.counted_s()
        clock.follow(datetime.now(UTC), asked_s=start, answered_s=start)
        monkeypatch.setattr(clock, "host_now", lambda: datetime.now(UTC) + timedelta(hours=1))
        assert abs((utc_now() - datetime.now(UTC)).total_seconds()) < 1
        assert clock.host_ahead_s() == pytest.approx(3600, abs=1)

    @both_databases
    def test_is_measured_again(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clock, "host_now", lambda: datetime.now(UTC) - timedelta(hours=1))
        own = connect(context.settings.sqlalchemy_url)
        with own.read.begin() as session:
            session.scalars(select(User)).all()
        first = (utc_now() - datetime.now(UTC)).total_seconds()

        counted = clock.counted_s
        monkeypatch.setattr(clock, "counted_s", lambda: counted() + database_clock.EVERY_S + 1)
        wrong = (utc_now() - datetime.now(UTC)).total_seconds()  # as if it had counted too fast
        with own.read.begin() as session:
            session.scalars(select(User)).all()
        own.dispose()

        assert abs(first) < 0.1
        assert wrong == pytest.approx(database_clock.EVERY_S + 1, abs=0.5)
        assert abs((utc_now() - datetime.now(UTC)).total_seconds()) < 0.1
