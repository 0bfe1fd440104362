"""Which GPUs of this host a worker has for itself. Imports no torch."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from worker.local.starting import BadStart

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
QUERY = ("--query-gpu=index,uuid", "--format=csv,noheader")
DRIVER_S = 20.0


class GpuTaken(BadStart):
    """Another worker of this host has the GPUs that this one is given."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of this host, as the driver names it."""

    index: str
    uuid: str


def gpus_here() -> list[Gpu]:
    """The GPUs of this host in the driver's order; none where there is no driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        told = subprocess.run(
            [tool, *QUERY], capture_output=True, text=True, timeout=DRIVER_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(",") for line in told.splitlines() if line.count(",") == 1]
    return [Gpu(index.strip(), uuid.strip()) for index, uuid in rows]


def device_among(wanted: str, taken: Sequence[Gpu]) -> str:
    """What the setting means to a process that sees the taken GPUs alone, by other numbers."""
    return "cuda" if taken and wanted.startswith("cuda") else wanted


@contextmanager
def gpus_taken(
    wanted: str, count: int, *, environment: MutableMapping[str, str] = os.environ
) -> Iterator[list[Gpu]]:
    """Have GPUs that no other worker of this host has, for as long as the block lasts or this process lives.

    Those named in CUDA_VISIBLE_DEVICES are tried, else all of the host, in their order. What was taken stands
    in CUDA_VISIBLE_DEVICES meanwhile, so that every process started from here sees these alone.

    Args:
        wanted: auto, cpu, cuda or cuda:N, the setting; the last means the one of that place alone.
        count: how many to take.
        environment: of this process.

    Raises:
        GpuTaken: fewer of them are free.
    """
    given = _given(wanted, environment)
    if not given:
        yield []
        return
    held: list[tuple[Gpu, socket.socket]] = []
    before = environment.get(VISIBLE)
    try:
        for gpu in given:
            if len(held) < count and (name := _named(gpu)):
                held.append((gpu, name))
        if len(held) < count:
            raise GpuTaken(_sentence(given, count, len(held)))
        environment[VISIBLE] = ",".join(gpu.uuid for gpu, _ in held)
        yield [gpu for gpu, _ in held]
    finally:
        for _, name in held:
            name.close()
        environment.pop(VISIBLE, None)
        if before is not None:
            environment[VISIBLE] = before


def _given(wanted: str, environment: MutableMapping[str, str]) -> list[Gpu]:
    """The GPUs that a worker may take; those of names that the driver does not know are left as they are."""
    if wanted == "cpu":
        return []
    here = gpus_here()
    names = [name.strip() for name in environment.get(VISIBLE, "").split(",") if name.strip()]
    if VISIBLE in environment:
        here = [gpu for name in names for gpu in here if name == gpu.index or gpu.uuid.startswith(name)]
    _, _, place = wanted.partition(":")
    return here[int(place) :][:1] if place else here


def _named(gpu: Gpu) -> socket.socket | None:
    """The one socket of a GPU's name on this host; None: another process has it.

    The kernel takes the name back when its process ends, however it ends. A file could be left behind, or lie
    in a folder that systemd shows to one worker alone.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if sys.platform != "linux":  # which alone has such names; elsewhere there are no such GPUs
        return made
    try:
        made.bind(f"\0clarinet-gpu-{gpu.uuid}")
    except OSError:
        made.close()
        return None
    return made


def _sentence(given: list[Gpu], count: int, free: int) -> str:
    named = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in given)
    if count == 1:
        return (
            f"Another worker of this host has GPU {named}. Name a free one in {VISIBLE}, start one worker "
            "for each GPU, or set CLARINET_DEVICE to cpu."
        )
    return (
        f"This worker takes {count} GPUs (CLARINET_GPUS), and {free} of {named} are free. Stop the worker "
        "that has the others, or take fewer."
    )
