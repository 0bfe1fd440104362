"""Trials as jobs of a cluster: its programs are fakes on PATH; sbatch really runs what it is given."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
import yaml  # type: ignore[import-untyped]
from alembic import command
from pydantic import ValidationError
from sqlalchemy import select, update

from app.clock import utc_now
from app.migrate import alembic_config
from app.runs import trials
from app.runs.faults import MAX_SETBACKS, Fault, pause_after
from app.runs.models import Trial, TrialState, Worker
from app.settings import Settings
from tests.factories import make_run
from tests.worker.conftest import trial_of, wait_until
from worker.context import Context
from worker.launching import NotLaunched, launch_trial
from worker.supervisor import train_trial

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE_S = 240.0
Launcher = Literal["kubernetes", "slurm"]
TEMPLATES: dict[Launcher, str] = {"kubernetes": "kubernetes/trial.yaml", "slurm": "slurm/trial.sh"}

# Each keeps a file for a job under its name: of Slurm the pid, of Kubernetes the description.
JOBS = """
import os, pathlib, subprocess, sys
jobs = pathlib.Path(__file__).parent / "jobs"
jobs.mkdir(exist_ok=True)
"""
FAKES = {
    "squeue": """
def lives(name):
    try:
        return "Z" not in pathlib.Path("/proc", (jobs / name).read_text(), "stat").read_text().split(")")[1]
    except FileNotFoundError:
        return False
names = [word.removeprefix("--name=") for word in sys.argv if word.startswith("--name=")]
print("\\n".join((jobs / name).read_text() for name in names if lives(name)))
""",
    "sbatch": """
[name] = [word.removeprefix("--job-name=") for word in sys.argv if word.startswith("--job-name=")]
with (jobs.parent / "log").open("a") as log:
    job = subprocess.Popen(["sh", "-c", sys.stdin.read()], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
(jobs / name).write_text(str(job.pid))
print(job.pid)
""",
    "kubectl": """
import yaml
assert sys.argv[1:] == ["create", "-f", "-"]
told = sys.stdin.read()
name = yaml.safe_load(told)["metadata"]["name"]
if (jobs / name).exists():
    sys.exit(f'Error from server (AlreadyExists): jobs.batch "{name}" already exists')
(jobs / name).write_text(told)
""",
}

# Takes a job, which ends at once.
DIES = """
with (jobs.parent / "launched").open("a") as launched:
    launched.write(".")
print(1)
"""


@pytest.fixture
def cluster(tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder first on PATH with the programs of both clusters, and the command `clarinet` of this tree."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name, program in FAKES.items():
        (folder / name).write_text(f"#!{sys.executable}\n{JOBS}{program}")
    (folder / "clarinet").write_text(f'#!/bin/sh\nexec {sys.executable} -m worker.cli.main "$@"\n')
    for program_file in folder.iterdir():
        program_file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    config = alembic_config()  # a job looks whether the schema is there
    with context.database.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.stamp(config, "head")
    yield folder
    for job in (folder / "jobs").glob("*"):
        with suppress(ProcessLookupError, ValueError):  # as most are gone, or never were a process
            os.kill(int(job.read_text()), signal.SIGKILL)


def launching(context: Context, launcher: Launcher, folder: Path) -> Context:
    """The same place of work, which hands trials to a cluster; its jobs have no GPU here."""
    template = folder / Path(TEMPLATES[launcher]).name
    template.write_text((DEPLOY / TEMPLATES[launcher]).read_text().replace("cuda", "cpu"))
    settings = context.settings.model_copy(update={"launcher": launcher, "launcher_template": template})
    return replace(context, settings=settings)


def make_trial(context: Context) -> Trial:
    with context.unit_of_work() as session:
        return make_run(session, context.storage, queued_at=utc_now()).trials[0]


@pytest.mark.slow  # a worker and its training for one job
@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_a_cluster_trains_a_trial_once(context: Context, cluster: Path) -> None:
    place, trial = launching(context, "slurm", cluster), make_trial(context)

    launch_trial(place, trial.id)
    launch_trial(place, trial.id)  # the message comes again before the job has begun

    assert [job.name for job in (cluster / "jobs").iterdir()] == [f"clarinet-{trial.id}-1"]
    wait_until(lambda: trial_of(context, trial.id).state not in {"queued", "running"}, timeout_s=PATIENCE_S)
    ended = trial_of(context, trial.id)
    assert (ended.state, ended.failure) == (TrialState.SUCCEEDED, None), (cluster / "log").read_text()
    with context.reading() as session:  # it takes nothing else, so nobody may wait for it
        told = session.scalars(select(Worker.most_processes).where(Worker.name.startswith("once-"))).all()
    assert told == [0]
    launch_trial(place, trial.id)  # and after its end
    assert len(list((cluster / "jobs").iterdir())) == 1


def test_an_attempt_is_one_job_of_kubernetes(context: Context, cluster: Path) -> None:
    place, trial = launching(context, "kubernetes", cluster), make_trial(context)

    launch_trial(place, trial.id)
    launch_trial(place, trial.id)  # the message comes again
    with context.unit_of_work() as session:
        claim = trials.claim_trial(session, trial.id, by="there:1/2", now=utc_now())
    launch_trial(place, trial.id)  # and while it trains
    assert claim is not None
    with context.unit_of_work() as session:
        trials.hand_back(session, claim, counts=True, now=utc_now())
    launch_trial(place, trial.id)

    jobs = sorted((cluster / "jobs").iterdir())
    assert [job.name for job in jobs] == [f"clarinet-{trial.id}-{number}" for number in (1, 2)]
    [container] = yaml.safe_load(jobs[0].read_text())["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["clarinet", "worker", "--once", str(trial.id)]
    assert {each["name"]: each["value"] for each in container["env"]}["CLARINET_GPUS"] == "1"


def test_a_job_of_an_older_program_leaves_what_it_does_not_know_and_says_so(context: Context) -> None:
    with context.unit_of_work() as session:
        run = make_run(session, context.storage, queued_at=utc_now())
        run.config = run.config | {"attention_heads": 8}  # of a later version

    train_trial(context, run.trials[0].id, only=True)

    left = trial_of(context, run.trials[0].id)
    assert (left.state, left.attempts, left.fault) == (TrialState.QUEUED, 0, Fault.MACHINE)
    assert "Name the image of this version" in (left.setback or "")


def test_a_cluster_that_takes_no_job_is_said_in_words(
    context: Context, cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_trial(context)
    (cluster / "squeue").write_text("#!/bin/sh\necho slurmctld is away >&2; exit 1\n")
    with pytest.raises(NotLaunched, match="squeue refused a trial: slurmctld is away"):
        launch_trial(launching(context, "slurm", cluster), trial.id)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotLaunched, match="kubectl could not be asked"):
        launch_trial(launching(context, "kubernetes", cluster), trial.id)
    waits = trial_of(context, trial.id)
    assert (waits.state, waits.fault, waits.setbacks) == (TrialState.QUEUED, Fault.PASSING, 0)
    assert (waits.setback or "").startswith("kubectl could not be asked to start a trial: ")


def test_jobs_that_end_before_they_claim_are_followed_ever_later_and_then_the_trial_fails(
    context: Context, cluster: Path
) -> None:
    """As jobs do whose image cannot be pulled, or whose node has another database."""
    (cluster / "sbatch").write_text(f"#!{sys.executable}\n{JOBS}{DIES}")
    place, trial = launching(context, "slurm", cluster), make_trial(context)
    count = cluster / "launched"

    for number in range(1, MAX_SETBACKS + 1):
        launch_trial(place, trial.id)
        launch_trial(place, trial.id)  # nudged again, and the job is gone already
        row = trial_of(context, trial.id)
        assert (len(count.read_text()), row.launches, row.state) == (number, number, TrialState.QUEUED)
        told = row.setback or ""
        assert (f"and {number - 1} of them ended before they began to train" in told) is (number > 1)
        assert row.launched_at is not None
        with context.unit_of_work() as session:
            early = row.launched_at - pause_after(number) + timedelta(seconds=2)
            session.execute(update(Trial).values(launched_at=early))
        launch_trial(place, trial.id)
        assert len(count.read_text()) == number
        with context.unit_of_work() as session:
            session.execute(update(Trial).values(launched_at=early - timedelta(seconds=2)))

    launch_trial(place, trial.id)
    failed = trial_of(context, trial.id)
    assert (failed.state, failed.fault) == (TrialState.FAILED, Fault.MACHINE)
    assert f"{MAX_SETBACKS} of them ended before they began to train" in (failed.failure or "")


def test_a_claim_ends_the_count_of_jobs(context: Context, cluster: Path) -> None:
    (cluster / "sbatch").write_text(f"#!{sys.executable}\n{JOBS}{DIES}")
    place, trial = launching(context, "slurm", cluster), make_trial(context)
    launch_trial(place, trial.id)

    with context.unit_of_work() as session:
        claim = trials.claim_trial(session, trial.id, by="there:1/2", now=utc_now())
        assert claim is not None
        trials.hand_back(session, claim, counts=True, now=utc_now())
    launch_trial(place, trial.id)

    row = trial_of(context, trial.id)
    assert (row.launches, row.setback) == (1, None)


def test_a_cluster_needs_the_description_of_a_job() -> None:
    with pytest.raises(ValidationError, match="CLARINET_LAUNCHER is slurm: name the description of its jobs"):
        Settings(launcher="slurm")
