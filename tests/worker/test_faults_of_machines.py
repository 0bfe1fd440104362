"""A machine's fault is not the trial's: it goes on elsewhere, and the machine rests until it is well."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import pytest
from sqlalchemy import select, update

from app.clock import utc_now
from app.runs import queue, trials
from app.runs.faults import FIRST_PAUSE, MAX_SETBACKS, Fault, pause_after
from app.runs.labels import key_of
from app.runs.models import Run, Trial, TrialState, Worker
from app.runs.workers import Machine, note_trouble, own_version, process_name, record_worker
from app.stores.cache import Cache
from app.stores.folder import FolderStorage
from tests.factories import make_run
from tests.worker.conftest import PYTHON, both_databases, folder_of, trainers_of, trial_of, wait_until
from tests.worker.test_supervisor import LONG, epochs_of, is_training, make_trial
from worker.context import Context
from worker.heartbeat import Heartbeat
from worker.local.processes import environment_of
from worker.supervisor import train_trial

HERE = process_name(os.getppid())  # what the supervisor takes for its worker in this process


def with_settings(context: Context, **changed: object) -> Context:
    """The same database and folder under other settings."""
    settings = context.settings.model_copy(update=changed)
    return Context(settings, context.database, FolderStorage(settings.artefact_dir), context.publish)


def see_worker(context: Context, process: str, version: str | None = None) -> None:
    """A worker that takes trainings and beat a moment ago; of our version unless another one is given."""
    about = {
        "host": "h",
        "version": own_version() if version is None else version,
        "memory_bytes": None,
        "memory_free_bytes": None,
    }
    machine = Machine(process=process, started_at=utc_now(), **about)  # type: ignore[arg-type]
    with context.unit_of_work() as session:
        record_worker(session, process, queues="gpu", device="CPU", machine=machine, now=utc_now())


def end_of_rest(context: Context) -> None:
    """As if all trials had rested after their setbacks."""
    with context.unit_of_work() as session:
        session.execute(update(Trial).values(not_before=None))


def trouble_told(context: Context, process: str = HERE) -> str | None:
    """What the worker's row says."""
    with context.reading() as session:
        return session.scalar(select(Worker.trouble).where(Worker.process == process))


def seen_at(context: Context, process: str) -> datetime:
    """When the worker beat last."""
    with context.reading() as session:
        return session.scalars(select(Worker.seen_at).where(Worker.process == process)).one()


@both_databases
def test_a_setback_costs_no_attempt_rests_and_goes_to_others_first(context: Context) -> None:
    trial = make_trial(context)
    see_worker(context, "a:1")
    see_worker(context, "b:1")
    now = utc_now()
    with context.unit_of_work() as session:
        claim = queue.claim_next(session, by="a:1/7", now=now)
        assert claim is not None
        trials.set_back(session, claim, reason="It burns.", fault=Fault.MACHINE, by="a:1", now=now)

    def take(by: str, at: timedelta) -> bool:
        with context.unit_of_work() as session:
            return queue.claim_next(session, by=by, now=now + at) is not None

    row = trial_of(context, trial.id)
    assert (row.state, row.attempts, row.setbacks, row.setback) == (TrialState.QUEUED, 0, 1, "It burns.")
    assert row.fault is Fault.MACHINE
    assert not take("b:1/9", FIRST_PAUSE - timedelta(seconds=1))  # it rests
    assert not take("a:1/8", FIRST_PAUSE)  # b is there
    with context.unit_of_work() as session:
        note_trouble(session, "b:1", "It burns, too.")
    assert take("a:1/8", FIRST_PAUSE)  # there is nobody else


def test_a_trial_that_was_set_back_waits_for_no_worker_of_another_version(context: Context) -> None:
    make_trial(context)
    see_worker(context, "a:1")
    see_worker(context, "b:1", version="0.0.1")
    now = utc_now()
    with context.unit_of_work() as session:
        claim = queue.claim_next(session, by="a:1/7", now=now)
        assert claim is not None
        trials.set_back(session, claim, reason="It burns.", fault=Fault.MACHINE, by="a:1", now=now)

    with context.unit_of_work() as session:
        assert queue.claim_next(session, by="a:1/8", now=now + FIRST_PAUSE)


@both_databases
def test_a_trial_that_no_machine_can_train_ends_and_starts_anew_when_asked(context: Context) -> None:
    trial = make_trial(context)
    for number in range(MAX_SETBACKS):
        with context.unit_of_work() as session:
            claim = trials.claim_trial(session, trial.id, by="w", now=utc_now())
            assert claim is not None, number
            trials.set_back(
                session, claim, reason="No.", fault=Fault.MACHINE, by=f"w{number % 2}", now=utc_now()
            )
        end_of_rest(context)

    ended = trial_of(context, trial.id)
    assert (ended.state, ended.fault, ended.attempts) == (TrialState.FAILED, Fault.MACHINE, 1)
    assert (
        ended.failure
        == f"No.\nIt was tried {MAX_SETBACKS} times, on 2 workers. Mend that, then try it again."
    )


def test_the_rest_doubles() -> None:
    assert [pause_after(n) / FIRST_PAUSE for n in (1, 2, 3)] == [1, 2, 4]


@pytest.mark.long
def test_a_worker_without_the_data_takes_nothing_beside_one_that_has_them(
    context: Context, tmp_path: Path
) -> None:
    trial = make_trial(context)
    astray = with_settings(context, data_dir=tmp_path / "not mounted")
    see_worker(context, HERE)

    train_trial(astray, trial.id)

    waits = trial_of(context, trial.id)
    assert (waits.state, waits.claim_number, waits.setbacks) == (TrialState.QUEUED, 0, 0)
    assert "has no file of the data sets" in (trouble_told(context) or "")
    train_trial(context, trial.id)
    ended = trial_of(context, trial.id)
    assert (ended.state, ended.failure) == (TrialState.SUCCEEDED, None)


def test_what_a_look_at_the_data_found_outlives_the_next_beats(context: Context, tmp_path: Path) -> None:
    trial = make_trial(context)
    astray = with_settings(context, data_dir=tmp_path / "not mounted")
    here = process_name(os.getpid())
    see_worker(context, HERE)
    see_worker(context, here)

    train_trial(astray, trial.id)

    with context.unit_of_work() as session:
        note_trouble(session, here, "What a look found.")
    began = utc_now()
    heartbeat = Heartbeat(astray, here, ["gpu"])
    heartbeat.start()
    wait_until(lambda: seen_at(context, here) > began)
    heartbeat.stop()
    assert astray.suspicion
    assert trouble_told(context, here) == "What a look found."


@pytest.mark.long
def test_a_file_that_one_worker_lacks_sets_the_trial_back_in_words(context: Context) -> None:
    trial = make_trial(context, train=2)
    with context.reading() as session:
        digest = session.get_one(Run, trial.run_id).snapshot_digest
    folder_of(context).path(key_of(digest)).unlink()
    see_worker(context, HERE)

    train_trial(context, trial.id)

    waits = trial_of(context, trial.id)
    assert (waits.state, waits.attempts, waits.fault) == (TrialState.QUEUED, 0, Fault.MACHINE)
    assert "no longer in the server's folder" in (waits.setback or "")
    assert waits.avoided == [HERE]
    assert not context.suspicion  # it looked closer, and found itself well
    assert trouble_told(context) is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 16 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_what_is_kept_of_a_bucket_makes_room_on_a_full_disk(small_disk: Path) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"x" * 4 * 2**20)

    cache = Cache(small_disk, max_bytes=2**30)
    for key in ("a", "b", "c"):
        cache.fetched(key, write)

    cache.make_room(4 * 2**20 - 2**16)
    assert cache.find("a")  # there is room
    cache.make_room(7 * 2**20)  # "b" is now the least lately used

    assert [cache.find(key) is not None for key in ("a", "b", "c")] == [True, False, True]
    assert shutil.disk_usage(small_disk).free >= 7 * 2**20


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_a_full_disk_is_waited_out_and_training_goes_on_from_its_checkpoint(
    context: Context, small_disk: Path
) -> None:
    with context.unit_of_work() as session:
        trial = make_run(
            session,
            context.storage,
            config={"epochs": 30, "steps_per_epoch": 4},
            method="gac",
            preset="digits",
            queued_at=utc_now(),
        ).trials[0]
    shutil.copytree(context.settings.artefact_dir, small_disk / "artefacts")
    there = with_settings(context, data_dir=small_disk, min_free_mb=1)
    checkpoint = folder_of(there).path(f"{trials.trial_prefix(trial.id)}/{trials.CHECKPOINT}")
    see_worker(context, HERE)
    task = threading.Thread(target=train_trial, args=(there, trial.id))

    task.start()
    wait_until(lambda: checkpoint.exists() or not task.is_alive())
    with (small_disk / "hog").open("wb") as hog:
        hog.truncate(0)
        while shutil.disk_usage(small_disk).free:
            try:
                hog.write(b"x" * 4096)
                hog.flush()
            except OSError:
                break
    task.join(300)

    waits = trial_of(context, trial.id)
    assert waits.setback is not None, waits.failure
    assert waits.setback.startswith("There is no room left on the worker's disk.")
    assert (waits.state, waits.attempts, waits.setbacks) == (TrialState.QUEUED, 0, 1)
    assert "MB left on the disk" in (trouble_told(context) or "") or "cannot be written" in (
        trouble_told(context) or ""
    )
    end_of_rest(context)
    train_trial(there, trial.id)
    assert trial_of(context, trial.id).claim_number == 1  # its worker takes nothing
    reached = len(epochs_of(context, trial.id))

    (small_disk / "hog").unlink()
    train_trial(there, trial.id)

    ended = trial_of(context, trial.id)
    assert (ended.state, ended.failure) == (TrialState.SUCCEEDED, None)
    assert trouble_told(context) is None
    told = folder_of(there).path(f"{trials.trial_prefix(trial.id)}/{trials.LOG}").read_text()
    assert "resumed=True" in told
    assert reached < 30


@pytest.mark.long
def test_a_training_that_is_stopped_is_noticed_and_handed_on(context: Context) -> None:
    trial = make_trial(context, LONG)
    impatient = with_settings(context, stall_timeout_s=40)  # loading torch takes long where many run
    task = threading.Thread(target=train_trial, args=(impatient, trial.id))

    task.start()
    wait_until(lambda: is_training(context, trial.id))
    [trainer] = trainers_of(trial.id)
    os.kill(trainer, signal.SIGSTOP)
    wait_until(lambda: trial_of(context, trial.id).state is TrialState.QUEUED)
    task.join(300)

    waits = trial_of(context, trial.id)
    assert (waits.attempts, waits.setbacks, waits.avoided) == (0, 1, [HERE])
    assert waits.setback == (
        "The training did not get on for 40 s and was stopped. Where a step takes so long here, raise "
        "CLARINET_STALL_TIMEOUT_S of this worker."
    )
    assert trainers_of(trial.id) == []


NARROW = """
import resource, sys
from uuid import UUID
from app.settings import Settings
from worker.context import Context
from worker.supervisor import train_trial
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
train_trial(Context.of(Settings()), UUID(sys.argv[1]))
"""
TORCH_TAKES = """
import torch, worker.trainer.training
torch.ones(9).sum()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmPeak")))
"""


@pytest.mark.long
def test_a_batch_for_which_memory_does_not_suffice_is_told(context: Context) -> None:
    batch = 4096
    trial = make_trial(context, {"batch_size": batch, "epochs": 1, "image_size": 96})
    environment = environment_of(context.settings)
    took = subprocess.run([PYTHON, "-c", TORCH_TAKES], env=environment, capture_output=True, check=True)
    limit = int(took.stdout) * 1024 + 700 * 2**20

    subprocess.run([PYTHON, "-c", NARROW, str(trial.id), str(limit)], env=environment, check=True)

    waits = trial_of(context, trial.id)
    assert waits.setback is not None, folder_of(context).path(f"trials/{trial.id}/log.txt").read_text()
    # What is left after the refusal depends on how torch and the machine gave memory out before.
    assert re.search(
        rf"does not suffice for a batch of {batch}(\. One of |, nor for a smaller)", waits.setback
    )
    assert (waits.state, waits.attempts) == (TrialState.QUEUED, 0)


@pytest.mark.long
@pytest.mark.usefixtures("trainers_without_onnx")
def test_a_broken_program_is_the_workers_fault_and_it_takes_nothing_more(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials_there = [make_trial(context), make_trial(context)]
    see_worker(context, HERE)
    broken = tmp_path / "broken"
    (broken / "torch").mkdir(parents=True)
    (broken / "torch" / "__init__.py").write_text("raise ImportError('libcudart.so.12: no such file')\n")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{broken}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        for trial in trials_there:
            train_trial(context, trial.id)

    assert sorted(trial_of(context, trial.id).claim_number for trial in trials_there) == [0, 1]
    assert "libcudart.so.12" in (trouble_told(context) or "")
    assert [trial_of(context, trial.id).attempts for trial in trials_there] == [0, 0]
    end_of_rest(context)
    train_trial(context, trials_there[0].id)
    assert trouble_told(context) is None
    assert TrialState.SUCCEEDED in {trial_of(context, trial.id).state for trial in trials_there}
