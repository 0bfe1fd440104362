"""A worker of one trial, as a job of a cluster runs it: beats, trains that trial, and ends."""

import multiprocessing
import os
import signal
from uuid import UUID

from app.jobs import QUEUE_OF, TRAIN_TRIAL
from app.logs import configure_logs
from app.runs.workers import process_name
from app.settings import Settings
from app.tracing import spans
from worker.context import Context, ProcessContext
from worker.heartbeat import Heartbeat
from worker.local.gpus import device_among, gpus_taken
from worker.local.processes import die_with_parent
from worker.supervisor import train_trial


def train_once(settings: Settings, trial_id: UUID) -> None:
    """Train one trial if it still waits; SIGTERM has it checkpointed and handed back.

    Raises:
        GpuTaken: the GPUs that the job was given are another worker's.
    """
    configure_logs(settings)
    with gpus_taken(settings.device, settings.gpus) as taken:
        settings = settings.model_copy(update={"device": device_among(settings.device, taken)})
        contexts = ProcessContext(settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: contexts.stop())
        # Forked before anything connects: as a worker's children are, under the name of who beats.
        child = multiprocessing.get_context("fork").Process(
            target=_train, args=(contexts, os.getpid(), trial_id)
        )
        child.start()
        # By its host, too: every pod counts its processes from 1.
        name = f"once-{process_name(os.getpid())}"
        heartbeat = Heartbeat(Context.of(settings), name, [QUEUE_OF[TRAIN_TRIAL]], takes_any=False)
        heartbeat.start()
        child.join()
        heartbeat.stop()


def _train(contexts: ProcessContext, parent: int, trial_id: UUID) -> None:
    die_with_parent(parent)
    spans.begin(contexts.settings, "worker")
    train_trial(contexts(), trial_id, only=True)
    spans.end()
