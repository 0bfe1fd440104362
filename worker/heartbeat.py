"""A row that says: this worker was consuming a moment ago."""

import platform
import shutil
import subprocess
import threading
from collections.abc import Sequence

import structlog

from app.claims import BEAT_S
from app.clock import utc_now
from app.runs.workers import record_worker
from worker.context import Context
from worker.outages import OUTAGES

log = structlog.get_logger()


class Heartbeat:
    """Writes the worker's row from a thread of its own, so that a busy database delays nobody else."""

    def __init__(self, context: Context, name: str, queues: Sequence[str]) -> None:
        self.context = context
        self.name = name
        self.queues = ",".join(queues)
        self._device = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; the row ages."""
        self._ended.set()

    def _beat(self) -> None:
        self._device = describe_device(self.context.settings.device)
        while not self._ended.is_set():
            try:
                with self.context.unit_of_work() as session:
                    record_worker(session, self.name, queues=self.queues, device=self._device, now=utc_now())
            except OUTAGES:
                log.warning("worker.beat_failed", worker=self.name, exc_info=True)
            self._ended.wait(BEAT_S)


def describe_device(wanted: str) -> str:
    """What trials will train on, in words. Asks the driver's tool: this process must not load torch."""
    if wanted != "cpu" and (tool := shutil.which("nvidia-smi")):
        try:
            found = subprocess.run(
                [tool, "--query-gpu=name", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                timeout=20,
                check=True,
            ).stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            found = []
        if found:
            return found[0].strip()[:120]
    return f"CPU ({platform.machine()})"
