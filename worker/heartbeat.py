"""A row that says: this worker was consuming a moment ago."""

import os
import platform
import threading
import time
from collections.abc import Sequence

import structlog

from app.claims import BEAT_S
from app.clock import utc_now
from app.jobs import QUEUE_OF, TRAIN_TRIAL
from app.runs.workers import Machine, note_trouble, own_version, process_name, record_worker
from worker.context import Context
from worker.device import Device, look_at_device
from worker.downloads import downloaded_weights
from worker.fitness import trouble_here
from worker.outages import OUTAGES

DEVICE_S = 30.0  # for which what the driver's tool said is new enough
FITNESS_S = 15.0  # and what was seen of folder and disk

NOT_SEEN = "This machine could not be looked at: {}."

log = structlog.get_logger()


class Heartbeat:
    """Writes the worker's row from a thread of its own, so that a busy database delays nobody else."""

    def __init__(self, context: Context, name: str, queues: Sequence[str], *, takes_any: bool = True) -> None:
        """`takes_any`: it takes trainings from the queue, and was not started for one alone."""
        self.context = context
        self.name = name
        self.queues = ",".join(queues)
        self._trains = QUEUE_OF[TRAIN_TRIAL] in queues
        # A cluster's jobs have GPUs of their own.
        self._trains_any = takes_any and context.settings.launcher == "local"
        self._started_at = utc_now()
        self._device: Device | None = None
        self._device_at, self._looked_at = -DEVICE_S, -FITNESS_S  # on the monotonic clock
        self._trouble: str | None = None
        self._weights: list[str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; the row ages."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._beat()
            except OUTAGES:
                log.warning("worker.beat_failed", worker=self.name, exc_info=True)
            except Exception:
                # The edge of a thread: without it the worker would count as gone while it works.
                log.exception("worker.beat_failed", worker=self.name)
            self._ended.wait(BEAT_S)

    def _beat(self) -> None:
        device = self._look()
        machine = Machine(
            host=platform.node()[:120],
            process=process_name(os.getpid()),
            version=own_version(),
            memory_bytes=device.memory_bytes,
            memory_free_bytes=device.memory_free_bytes,
            started_at=self._started_at,
            weights=self._weights,
            most_processes=device.most_processes if self._trains_any else 0,
        )
        with self.context.unit_of_work() as session:
            record_worker(
                session, self.name, queues=self.queues, device=device.words, machine=machine, now=utc_now()
            )
            # What who looked closer found is told until that is mended.
            if self._trouble or not self.context.suspicion:
                note_trouble(session, machine.process, self._trouble)

    def _look(self) -> Device:
        """Look at this machine again where what was seen is no longer new enough."""
        if self._device is None or time.monotonic() - self._device_at >= DEVICE_S:
            self._device = look_at_device(self.context.settings.device)
            self._device_at = time.monotonic()
        if self._trains and time.monotonic() - self._looked_at >= FITNESS_S:
            self._trouble, self._weights = self._looked()
            self._looked_at = time.monotonic()
        return self._device

    def _looked(self) -> tuple[str | None, list[str] | None]:
        """What keeps this machine from training, in a sentence, and the trained weights that it has."""
        try:
            return trouble_here(self.context.settings), downloaded_weights()
        except Exception as error:  # whatever keeps us from looking is told, and the worker is there
            log.warning("worker.not_looked_at", worker=self.name, exc_info=True)
            return NOT_SEEN.format(error), None
