"""Memory that a training process keeps, by the page faults that the kernel counts."""

import platform
import subprocess
import sys

import pytest

from clarinet.memory import keep_freed_memory

PAGE_BYTES = 4096
TENSORS, BYTES, TURNS = 8, 12 * 2**20, 10

COUNTED = f"""
import resource
import torch
from clarinet.memory import keep_freed_memory

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
    """Of turns that each allocate eight tensors and free all of them, after a first one."""
    command = [sys.executable, "-c", COUNTED.format(kept=kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_freed_tensors_are_used_again_without_a_page_fault() -> None:
    of_a_turn = TENSORS * BYTES // PAGE_BYTES

    assert page_faults(kept=True) < of_a_turn
    # The default hands them back; should glibc ever keep them by itself, this module can go.
    assert page_faults(kept=False) > TURNS // 2 * of_a_turn


def test_elsewhere_than_on_linux_nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert keep_freed_memory() is False


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _name: object())

    assert keep_freed_memory() is False
