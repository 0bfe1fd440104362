"""The queue: settings, names, and one run through each broker with a real worker process."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import select

from app import jobs
from app.clock import utc_now
from app.db import Base, connect
from app.disk.models import DiskUse
from app.jobs import publisher
from app.runs.models import TrialState
from app.runs.workers import live_workers
from app.settings import Settings
from tests.factories import make_run
from tests.worker.conftest import PYTHON, trainers_of, trial_of, wait_until
from worker.celery_app import TASKS, create_celery
from worker.context import Context
from worker.local.processes import environment_of

WORK = """
from app.settings import Settings
from worker.celery_app import run_worker
run_worker(Settings(), queues=["gpu"])
"""


@pytest.fixture(params=["filesystem", "redis"])
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each supported broker, empty."""
    if request.param == "filesystem":
        yield "filesystem://"
        return
    url: str = request.getfixturevalue("redis_url")
    with Redis.from_url(url) as redis:
        redis.flushdb()
        yield url
        redis.flushdb()


@pytest.fixture
def queued(context: Context, broker_url: str) -> Context:
    """A context that publishes to the broker."""
    settings = context.settings.model_copy(update={"broker_url": broker_url})
    return Context(settings, context.database, context.storage, publisher(settings))


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Worker processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start_worker(context: Context, workers: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([PYTHON, "-c", WORK], env=environment_of(context.settings))
    workers.append(process)
    return process


def test_every_job_has_a_task_and_a_queue(tmp_path: Path) -> None:
    celery = create_celery(Settings(environment="test", data_dir=tmp_path, _env_file=None))

    registered = {name for name in celery.tasks if not name.startswith("celery.")}
    assert registered == set(TASKS) == set(jobs.QUEUE_OF)


def test_a_job_about_no_row_is_done(tmp_path: Path) -> None:
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)

    create_celery(settings).tasks[jobs.MEASURE_DISK]()

    with database.read.begin() as session:
        assert session.scalars(select(DiskUse)).all()
    database.dispose()


def test_messages_are_acknowledged_early_and_only_redis_reserves_none(tmp_path: Path) -> None:
    folder = create_celery(Settings(environment="test", data_dir=tmp_path, _env_file=None)).conf
    redis = create_celery(
        Settings(environment="test", data_dir=tmp_path, broker_url="redis://127.0.0.1", _env_file=None)
    ).conf

    assert not folder.task_acks_late
    assert not folder.worker_disable_prefetch
    assert redis.worker_disable_prefetch
    assert redis.task_time_limit is None
    assert redis.accept_content == ["json"]


def ask_for(queued: Context, **config: int) -> UUID:
    """Queue a run of one trial and give the trial's id."""
    with queued.unit_of_work() as session:
        run = make_run(session, queued.storage, config=config or None, queued_at=utc_now())
        jobs.enqueue(session, jobs.TRAIN_TRIAL, run.trials[0].id)
    return run.trials[0].id


@pytest.mark.long
def test_a_run_goes_through_the_queue_and_a_stopped_worker_hands_its_trial_back(
    queued: Context, workers: list[subprocess.Popen[bytes]]
) -> None:
    worker = start_worker(queued, workers)
    # One after the other: a queue promises no order between messages of the same millisecond.
    short_id = ask_for(queued)
    wait_until(lambda: trial_of(queued, short_id).state is TrialState.SUCCEEDED)
    long_id = ask_for(queued, epochs=100_000)
    with queued.reading() as session:
        [seen] = live_workers(session, now=utc_now())
    assert seen.queues == "gpu"
    wait_until(lambda: trial_of(queued, long_id).target_accuracy is not None)
    worker.send_signal(signal.SIGTERM)
    worker.wait(300)

    left = trial_of(queued, long_id)
    assert (left.state, left.attempts) == (TrialState.QUEUED, 0)
    assert trainers_of(long_id) == []


@pytest.mark.long
@pytest.mark.parametrize("broker_url", ["filesystem"], indirect=True)
def test_a_killed_worker_leaves_no_training_behind(
    queued: Context, workers: list[subprocess.Popen[bytes]]
) -> None:
    worker = start_worker(queued, workers)
    with queued.unit_of_work() as session:
        run = make_run(session, queued.storage, config={"epochs": 100_000}, queued_at=utc_now())
        jobs.enqueue(session, jobs.TRAIN_TRIAL, run.trials[0].id)
    wait_until(lambda: bool(trainers_of(run.trials[0].id)))

    worker.kill()
    worker.wait()

    wait_until(lambda: trainers_of(run.trials[0].id) == [])
    assert trial_of(queued, run.trials[0].id).state is TrialState.RUNNING  # upkeep will see to it
