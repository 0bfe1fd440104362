"""Memory that a training process keeps, by the kernel's counts of page faults and of resident pages."""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clarinet.run.memory import keep_freed_memory

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
PAGE_BYTES = 4096
# Above 32 MiB, up to where glibc's own threshold may rise, it always maps and unmaps a block by itself;
# of smaller ones it depends on what else lies on the heap.
TENSORS, BYTES, TURNS = 2, 48 * 2**20, 10

COUNTED = f"""
import resource
import torch
from clarinet.run.memory import keep_freed_memory

if {{kept}}:
    assert keep_freed_memory()

def turn():
    return [torch.zeros({BYTES}, dtype=torch.uint8).add_(1) for _ in range({TENSORS})]

turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({TURNS}):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*, kept: bool) -> int:
    """Of turns that each allocate two large tensors and free both, after a first one."""
    command = [sys.executable, "-c", COUNTED.format(kept=kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


@pytest.mark.long
@needs_glibc
def test_freed_tensors_are_used_again_without_a_page_fault() -> None:
    half = TURNS * TENSORS * BYTES // PAGE_BYTES / 2  # where each turn fetches its memory anew

    # The default hands them back; should glibc ever keep them by itself, this module can go.
    assert page_faults(kept=True) < half < page_faults(kept=False)


def test_elsewhere_than_on_linux_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert keep_freed_memory() is False


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())

    assert keep_freed_memory() is False


HALF, SETTLED = 48, 16  # steps of each half of a training, and those after which a half is looked at
LEAK_BYTES = 50_000  # a step, that must not pass

TRAINED = f"""
import ctypes, gc
from pathlib import Path
import torch
from clarinet import train
from tests.clarinet.factories import make_config, make_data

torch.set_num_threads(1)
resident_kib = []

def look(report):
    if report.epoch % {HALF} not in (0, {SETTLED}):
        return
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # else what is freed and not yet handed back adds a megabyte or none
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmRSS:")]
    resident_kib.append(int(line.split()[1]))

config = make_config({{method!r}}, steps_per_epoch=1, batch_size=8, image_size=16, **{{changes}})
train(config, make_data(32), checkpoint=Path({{checkpoint!r}}), on_epoch=look)
print(resident_kib)
"""
HALVES: dict[str, dict[str, Any]] = {
    "clarinet": {"adaptation_start_epoch": HALF},
    "clarinet-plus": {
        "pretraining_share": 0.5,
        "source_self_training_start": 0.5,
        "target_self_training_start": 0.5,
    },
}


@pytest.mark.long
@needs_glibc
@pytest.mark.parametrize("method", HALVES)
def test_resident_memory_does_not_grow_with_steps(method: str, tmp_path: Path) -> None:
    changes = HALVES[method] | {"epochs": 2 * HALF}
    code = TRAINED.format(method=method, changes=changes, checkpoint=str(tmp_path / "c.safetensors"))

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )

    first, first_end, second, second_end = json.loads(done.stdout)
    # Half of what a leak would take: reports add a little, and a leak may fill gaps of what was freed.
    bound_kib = (HALF - SETTLED) * LEAK_BYTES / 1024 / 2
    assert first_end - first < bound_kib
    assert second_end - second < bound_kib
