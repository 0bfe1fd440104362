"""Tests of processes need a database that other processes can open, and must leave no process behind."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, select, text

from app.datasets.models import Dataset
from app.db import Base, connect
from app.jobs import Job
from app.runs.models import Run, Trial
from app.settings import Settings
from app.stores.folder import FolderStorage
from clarinet.recipes.methods import config_for
from tests.factories import make_run
from worker.context import Context
from worker.trainer.trial_data import TrialData, load


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 300) -> None:
    """Wait for another process; fails when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.05)


slow_on_postgresql = pytest.mark.parametrize(
    "own_database_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
    indirect=True,
)
both_databases = pytest.mark.parametrize("own_database_url", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite"])
def own_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that is committed to, gone after the test; SQLite unless the test asks for others.

    Processes do not care which it is, and starting them takes seconds: `@both_databases` asks for both.
    """
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'own.db'}"
        return
    server = create_engine(request.getfixturevalue("postgres_url"), isolation_level="AUTOCOMMIT")
    name = f"clarinet_test_{uuid4().hex[:12]}"
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.url.set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def jobs_sent() -> list[Job]:
    """What the context under test has published."""
    return []


@pytest.fixture
def context(own_database_url: str, tmp_path: Path, jobs_sent: list[Job]) -> Iterator[Context]:
    """What tasks get, over a database of their own."""
    settings = Settings(
        environment="test",
        data_dir=tmp_path,
        database_url=own_database_url,
        device="cpu",
        trainer_threads=1,
        _env_file=None,
    )
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)
    yield Context(settings, database, FolderStorage(settings.artefact_dir), jobs_sent.append)
    database.dispose()


def folder_of(context: Context) -> FolderStorage:
    """Where its artefacts lie as files."""
    assert isinstance(context.storage, FolderStorage)
    return context.storage


def trial_of(context: Context, trial_id: UUID) -> Trial:
    """The row as it is now."""
    with context.reading() as session:
        return session.get_one(Trial, trial_id)


def trainers_of(trial_id: UUID) -> list[int]:
    """Pids of the live training processes of a trial."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_text().split("\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "worker.trainer" in command and str(trial_id) in command and state != "Z":
            found.append(int(entry.name))
    return found


SUPERVISE = """
import sys
from uuid import UUID
from app.settings import Settings
from worker.context import Context
from worker.supervisor import train_trial
train_trial(Context.of(Settings()), UUID(sys.argv[1]))
"""
"""A worker's child that supervises one trial, without a broker."""

PYTHON = sys.executable


@pytest.fixture
def loaded(context: Context) -> tuple[Run, TrialData]:
    """A run and its data."""
    with context.unit_of_work() as session:
        run = make_run(session, context.storage)
        for dataset in session.scalars(select(Dataset)):
            is_target = dataset.id == run.target_dataset_id
            dataset.made = "regenerated, seed 0" if is_target else "regenerated, seed 1"
        session.flush()
        return run, load(session, context.storage, run, config_for("clarinet"))


@pytest.fixture
def without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the packages, where no test waits seconds for a file that it does not look at."""
    monkeypatch.setattr("clarinet.export.onnx.find_spec", lambda _: None)


@pytest.fixture
def trainers_without_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training processes find no package for a file that takes them seconds, where no test looks at it."""
    folder = tmp_path / "without-onnx"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'onnx' else find(name, package)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")
