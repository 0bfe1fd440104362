"""The processes beside the first one of a run: how their ends become its own, and what they are given."""

import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
import torch
from sqlalchemy import select

from app.runs.models import Worker
from clarinet.distributed.group import ALONE, Group
from tests.worker.conftest import PYTHON, wait_until
from worker.context import Context
from worker.device import look_at_device, most_processes_without_gpu
from worker.heartbeat import Heartbeat
from worker.local.processes import environment_of
from worker.trainer import others
from worker.trainer.exits import Exit
from worker.trainer.faults import WorkerUnfit
from worker.trainer.given import PART
from worker.trainer.others import Others, Place, device_of_part, joined_here, with_others

# A child has torch already, and a main thread of its own.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["worker.trainer.others"])
PATIENCE_S = 60.0
CUDA = torch.device("cuda")
NOBODY = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"  # where nobody listens


def wait_beside(command: str) -> None:
    """Be a first process that waits for ever in a collective, beside one that runs a command."""
    others.OWN_END_S = 0.1
    signal.signal(signal.SIGTERM, lambda *_: None)  # as a training has it
    beside = Others([subprocess.Popen(["sh", "-c", command])])
    threading.Thread(target=beside.watch, daemon=True).start()
    time.sleep(PATIENCE_S)


@pytest.mark.parametrize(
    ("command", "code"), [("kill -9 $$", -9), ("kill -15 $$", -9), ("kill -6 $$", -6), ("exit 80", 80)]
)
def test_who_waits_for_a_process_that_has_ended_ends_as_that_did(command: str, code: int) -> None:
    first = PROCESSES.Process(target=wait_beside, args=(command,))
    first.start()
    first.join(PATIENCE_S)
    first.kill()

    assert first.exitcode == code


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        (["exit 1"], 1),
        (["exit 0", "exit 0"], None),
        (["exit 1", f"exit {Exit.MACHINE}"], Exit.MACHINE),
        (["exit 1", f"exit {Exit.MACHINE}", "kill -9 $$"], -signal.SIGKILL),
    ],
)
def test_of_several_ends_the_one_that_tells_most_counts(commands: list[str], code: int | None) -> None:
    beside = Others([subprocess.Popen(["sh", "-c", command]) for command in commands])
    for process in beside.processes:
        process.wait()

    ended = beside.bad_end(within_s=0)

    assert (ended.code if ended else None) == code


def test_a_database_that_is_away_from_another_process_is_nobodys_fault(context: Context) -> None:
    away = context.settings.model_copy(update={"database_url": NOBODY})
    place = Place(1, 2, f"file://{away.data_dir}/meeting").words
    given = [str(uuid4()), "1", "2", "2"]
    done = subprocess.run(
        [PYTHON, "-m", "worker.trainer", str(os.getpid()), PART, *place, *given],
        env=environment_of(away),
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == Exit.DATABASE_AWAY


def test_processes_that_do_not_find_each_other_are_the_machines_fault() -> None:
    with (
        pytest.raises(WorkerUnfit, match="cannot work together here: process 0 of 2 did not find the others"),
        joined_here(Place(0, 2, "nowhere://"), torch.device("cpu")),
    ):
        pass


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)  # no machine of these tests has as many
    where = []

    @contextmanager
    def joined(_rank: int, _size: int, _meeting: str, *, device: torch.device) -> Iterator[Group]:
        where.append(device)
        yield ALONE

    monkeypatch.setattr(others, "joined", joined)
    with with_others(2, uuid4(), 1, device=CUDA, pipe=2):
        pass

    assert where == [torch.device("cuda", 0)]  # torch joins none without a number
    assert device_of_part(CUDA, Place(1, 2)) == torch.device("cuda", 1)
    with pytest.raises(WorkerUnfit, match="in 3 processes, each on a GPU of its own, and this worker has 2"):
        device_of_part(CUDA, Place(0, 3))


def test_without_gpus_there_are_no_more_processes_than_cores() -> None:
    cpu, cores = torch.device("cpu"), most_processes_without_gpu()

    assert device_of_part(cpu, Place(0, cores)) == cpu
    with pytest.raises(WorkerUnfit, match=f"trains in {cores + 1} processes.* no GPU and {cores} cores"):
        device_of_part(cpu, Place(0, cores + 1))


def test_a_worker_tells_into_how_many_processes_it_can_split_a_run(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nfor gpu in 1 2 3; do echo 'H100, 80000, 79000'; done\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    assert look_at_device("cpu").most_processes == most_processes_without_gpu()
    assert look_at_device("auto").most_processes == 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")  # as a worker has what it took
    assert look_at_device("auto").most_processes == 2

    of_one = Heartbeat(context, "once", ["gpu"], takes_any=False)
    heartbeats = Heartbeat(context, "w", ["gpu"]), of_one
    for heartbeat in heartbeats:
        heartbeat.start()

    def told(name: str) -> int | None:
        with context.reading() as session:
            return session.scalar(select(Worker.most_processes).where(Worker.name == name))

    wait_until(lambda: told("w") == most_processes_without_gpu() and told("once") == 0)
    for heartbeat in heartbeats:
        heartbeat.stop()


def test_bytes_that_are_no_text_keep_nobody_from_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf 'H\\377100, 80000, 79000\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    device = look_at_device("auto")

    assert (device.words, device.memory_bytes) == ("H\ufffd100", 80_000 * 2**20)
