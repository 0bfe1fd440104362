"""Workers on GPUs of one host: no two of them have the same one. The driver's tool is a fake on PATH."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from worker.cli.serve import run_jobs
from worker.local.gpus import VISIBLE, GpuTaken, device_among, gpus_taken
from worker.local.starting import BadStart


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The UUIDs of two GPUs of this host, whose names no other test has."""
    uuids = [f"GPU-{uuid4()}" for _ in range(2)]
    tool = tmp_path / "nvidia-smi"
    lines = "".join(f"echo '{index}, {uuid}'\n" for index, uuid in enumerate(uuids))
    tool.write_text(f"#!/bin/sh\n{lines}")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(VISIBLE, raising=False)
    return uuids


def test_a_second_worker_takes_another_gpu_and_a_third_is_refused(gpus: list[str]) -> None:
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    with gpus_taken("auto", 1, environment=first), gpus_taken("cuda", 1, environment=second):
        assert [first[VISIBLE], second[VISIBLE]] == gpus
        with (
            pytest.raises(GpuTaken, match=f"Another worker of this host has GPU 0 .{gpus[0]}., 1"),
            gpus_taken("auto", 1, environment={}),
        ):
            pass

    assert first == {}
    third: dict[str, str] = {}
    with gpus_taken("auto", 1, environment=third):  # they have ended
        assert third[VISIBLE] == gpus[0]


@pytest.mark.parametrize("named", ["index", "uuid", "setting"])
def test_a_gpu_that_is_named_is_that_one_or_refused(named: str, gpus: list[str]) -> None:
    wanted = "cuda:1" if named == "setting" else "cuda"
    environment = {"index": {VISIBLE: "1"}, "uuid": {VISIBLE: gpus[1][:12]}, "setting": {}}[named]
    with gpus_taken(wanted, 1, environment=dict(environment)) as taken:
        assert [gpu.uuid for gpu in taken] == [gpus[1]]
        with (
            pytest.raises(GpuTaken, match="start one worker for each GPU"),
            gpus_taken(wanted, 1, environment=dict(environment)),
        ):
            pass


def test_a_worker_may_take_several_or_none(gpus: list[str]) -> None:
    environment: dict[str, str] = {}
    with gpus_taken("cuda", 2, environment=environment), gpus_taken("cpu", 1) as taken:
        assert environment[VISIBLE] == ",".join(gpus)
        assert not taken
    with (
        gpus_taken("cuda", 1, environment={}),
        pytest.raises(GpuTaken, match=r"takes 2 GPUs .CLARINET_GPUS., and 1 of"),
        gpus_taken("cuda", 2, environment={}),
    ):
        pass


@pytest.mark.parametrize(("wanted", "meant"), [("cuda:1", "cuda"), ("cuda", "cuda"), ("auto", "auto")])
def test_what_was_taken_is_the_first_gpu_that_a_training_sees(
    wanted: str, meant: str, gpus: list[str]
) -> None:
    with gpus_taken(wanted, 1, environment={}) as taken:
        assert device_among(wanted, taken) == meant
    assert len(gpus) == 2
    assert device_among("cuda:1", []) == "cuda:1"  # of names that the driver does not know


def test_the_gpu_of_a_killed_worker_is_free(gpus: list[str]) -> None:
    program = (
        "from worker.local.gpus import *; held = gpus_taken('cuda', 2); held.__enter__(); print(flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(GpuTaken), gpus_taken("cuda", 1, environment={}):
            pass
        process.kill()
    with gpus_taken("cuda", 2, environment={}) as taken:
        assert [gpu.uuid for gpu in taken] == gpus


def test_the_worker_command_refuses_before_it_waits_for_anything(gpus: list[str]) -> None:
    with gpus_taken("cuda", 2, environment={}), pytest.raises(GpuTaken, match=gpus[0]):
        run_jobs(["gpu"], concurrency=1, parent=None)
    with pytest.raises(BadStart, match="would share its GPU: leave out --concurrency 2"):
        run_jobs(["io", "gpu"], concurrency=2, parent=None)
