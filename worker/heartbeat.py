"""A row that says: this worker was consuming a moment ago."""

import os
import platform
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.claims import BEAT_S
from app.clock import utc_now
from app.runs.workers import Machine, own_version, process_name, record_worker
from worker.context import Context
from worker.outages import OUTAGES

DEVICE_S = 30.0  # for which what the driver's tool said is new enough
QUERY = ("--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
FIGURES = 2  # behind the name
KIBIBYTE, MEBIBYTE = 1024, 1024**2

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Device:
    """What trials train on, in words, and its memory where something tells it."""

    words: str
    memory_bytes: int | None
    memory_free_bytes: int | None


class Heartbeat:
    """Writes the worker's row from a thread of its own, so that a busy database delays nobody else."""

    def __init__(self, context: Context, name: str, queues: Sequence[str]) -> None:
        self.context = context
        self.name = name
        self.queues = ",".join(queues)
        self._started_at = utc_now()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; the row ages."""
        self._ended.set()

    def _beat(self) -> None:
        device, looked = look_at_device(self.context.settings.device), time.monotonic()
        while not self._ended.is_set():
            if time.monotonic() - looked >= DEVICE_S:
                device = look_at_device(self.context.settings.device)
                looked = time.monotonic()
            machine = Machine(
                host=platform.node()[:120],
                process=process_name(os.getpid()),
                version=own_version(),
                memory_bytes=device.memory_bytes,
                memory_free_bytes=device.memory_free_bytes,
                started_at=self._started_at,
            )
            try:
                with self.context.unit_of_work() as session:
                    record_worker(
                        session,
                        self.name,
                        queues=self.queues,
                        device=device.words,
                        machine=machine,
                        now=utc_now(),
                    )
            except OUTAGES:
                log.warning("worker.beat_failed", worker=self.name, exc_info=True)
            self._ended.wait(BEAT_S)


def look_at_device(wanted: str) -> Device:
    """What trials will train on. Asks the driver's tool: this process must not load torch."""
    if wanted != "cpu" and (tool := shutil.which("nvidia-smi")):
        # Of several GPUs a worker trains on the first that it is given.
        own = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        try:
            found = subprocess.run(
                [tool, *([f"--id={own}"] if own else []), *QUERY],
                capture_output=True,
                text=True,
                timeout=20,
                check=True,
            ).stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            found = []
        if found:
            name, _, memory = found[0].partition(",")
            sizes = [_bytes(size, MEBIBYTE) for size in memory.split(",")]
            total, free = sizes if len(sizes) == FIGURES else (None, None)
            return Device(name.strip()[:120], total, free)
    return Device(f"CPU ({platform.machine()})", *_host_memory())


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
