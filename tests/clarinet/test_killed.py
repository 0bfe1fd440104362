"""Processes killed with SIGKILL at random: what they leave is whole, and what goes on ends bit-equal."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clarinet.commands.cli import main
from clarinet.export.models import load_model
from clarinet.run.tensor_files import read_tensors, write_tensors
from clarinet.run.training import train
from tests.clarinet.factories import equal_weights, in_memory, make_config, make_data

pytestmark = pytest.mark.faults

# Forked from a process that has torch, and no threads: a child starts in milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["clarinet.run.training", "tests.clarinet.factories"])

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "clarinet": ("clarinet", {}),
    "clarinet in bfloat16": ("clarinet", {"precision": "bfloat16"}),
    "clarinet-plus": ("clarinet-plus", {}),
    "clarinet-plus in float32": ("clarinet-plus", {"precision": "float32"}),
    "two steps": ("gac+dan", {"epochs": 4}),
}


def train_until_killed(path: Path, run: str, step: int) -> None:
    """Train in a process that kills itself before so many steps more; it never gets to clean up."""
    torch.set_num_threads(1)
    method, changes = RUNS[run]
    asked = count()

    def die() -> bool:
        if next(asked) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    train(make_config(method, **changes), make_data(), checkpoint=path, should_stop=die)


def write_until_killed(path: Path) -> None:
    """Replace a checkpoint again and again, each with its own number in every place."""
    torch.set_num_threads(1)
    for number in count(1):
        tensors = {name: torch.full((2_000_000,), number) for name in ("first", "last")}
        write_tensors(path, tensors, {"number": number}, kind="checkpoint")


@contextmanager
def process_of(target: Callable[..., None], *arguments: object) -> Iterator[BaseProcess]:
    """A process that runs the function and must have been killed by the end of the block."""
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    yield process
    process.join(300)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("run", RUNS)
def test_a_run_killed_at_random_steps_ends_bit_equal(run: str, tmp_path: Path) -> None:
    method, changes = RUNS[run]
    config, path = make_config(method, **changes), tmp_path / "checkpoint.safetensors"
    undisturbed = train(config, make_data())

    steps = [random.randint(5, 9), random.randint(0, 2)]  # the second one counts from the checkpoint
    for step in steps:
        with process_of(train_until_killed, path, run, step):
            pass
    resumed = train(config, make_data(), checkpoint=path)

    assert equal_weights(resumed.model, undisturbed.model), f"killed at {steps}"
    assert [r.losses for r in resumed.reports] == [r.losses for r in undisturbed.reports]
    assert resumed.label_noise == undisturbed.label_noise
    assert (resumed.label_noise is not None) == (method == "clarinet-plus")  # else it had no neighbours


def test_a_writer_killed_at_any_moment_leaves_one_whole_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_tensors(path, {"first": torch.zeros(1), "last": torch.zeros(1)}, {"number": 0}, kind="checkpoint")

    for _ in range(12):
        before = path.stat().st_mtime_ns
        with process_of(write_until_killed, path) as writer:
            while path.stat().st_mtime_ns == before:
                time.sleep(0.005)
            time.sleep(random.uniform(0, 0.15))
            writer.kill()
        tensors, header = read_tensors(path, kind="checkpoint")
        assert all(bool((value == header["number"]).all()) for value in tensors.values())


def test_the_command_killed_from_outside_goes_on_where_it_was(tmp_path: Path) -> None:
    data, checkpoint = make_data(64, true_rows=64), tmp_path / "c" / "checkpoint.safetensors"
    source, target = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(source, x_train=in_memory(data.source_images).numpy(), y_train=data.true.numpy())
    np.savez(target, x_train=in_memory(data.target_images).numpy())
    words = ["train", "--source", str(source), "--target", str(target), "--device", "cpu", "--epochs", "60"]
    for setting in ("steps_per_epoch=2", "batch_size=16", "checkpoint_every=1"):
        words += ["--set", setting]
    kept = [*words, "--checkpoint", str(checkpoint), "--out", str(tmp_path / "resumed")]
    assert main([*words, "--out", str(tmp_path / "undisturbed")]) == 0

    with subprocess.Popen(
        [sys.executable, "-m", "clarinet", *kept], env=os.environ | {"OMP_NUM_THREADS": "1"}
    ) as process:
        while not checkpoint.exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
    assert process.returncode == -signal.SIGKILL
    stopped_at = read_tensors(checkpoint, kind="checkpoint")[1]["step"]
    assert main(kept) == 0

    assert 0 < stopped_at < 120
    resumed, undisturbed = (
        load_model(tmp_path / name / "model.safetensors") for name in ("resumed", "undisturbed")
    )
    assert equal_weights(resumed, undisturbed)
