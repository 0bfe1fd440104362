"""What trials train on here. Imports no torch: who asks must not load it."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

QUERY = ("--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
FIGURES = 2  # behind the name
KIBIBYTE, MEBIBYTE = 1024, 1024**2


@dataclass(frozen=True, slots=True)
class Device:
    """What trials train on, in words, and its memory where something tells it."""

    words: str
    memory_bytes: int | None
    memory_free_bytes: int | None
    most_processes: int  # into which a run can be split here: a GPU or, without any, a core for each


def look_at_device(wanted: str) -> Device:
    """What trials will train on. Asks the driver's tool: this process must not load torch."""
    if wanted != "cpu" and (tool := shutil.which("nvidia-smi")):
        given = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
        own = given[0]  # of several GPUs a worker trains on the first, or has its processes share them out
        try:
            found = subprocess.run(
                [tool, *([f"--id={own}"] if own else []), *QUERY],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=20,
                check=True,
            ).stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            found = []
        if found:
            name, _, memory = found[0].partition(",")
            sizes = [_bytes(size, MEBIBYTE) for size in memory.split(",")]
            total, free = sizes if len(sizes) == FIGURES else (None, None)
            return Device(name.strip()[:120], total, free, len(given) if own else len(found))
    return Device(f"CPU ({platform.machine()})", *_host_memory(), most_processes_without_gpu())


def most_processes_without_gpu() -> int:
    """A core for each, since each holds all images; two can always be tried."""
    return max(2, os.cpu_count() or 1)


def _host_memory() -> tuple[int | None, int | None]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None, None
    told = {name: size.split()[0] for name, _, size in (line.partition(":") for line in lines)}
    return _bytes(told.get("MemTotal", ""), KIBIBYTE), _bytes(told.get("MemAvailable", ""), KIBIBYTE)


def _bytes(number: str, unit: int) -> int | None:
    """Some drivers say that they do not know."""
    return int(number) * unit if number.strip().isdecimal() else None
