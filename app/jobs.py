"""Names of background jobs, and the one way to ask for one. All that app and worker share about the queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy.orm import Session

from app.settings import Settings
from app.tracing import spans

IMPORT_DATASET = "datasets.import"
IMPORT_LABELS = "labels.import"
ADD_IMAGES = "datasets.grow"
OPEN_CAMPAIGN = "campaigns.open"
DRAW_FURTHER = "campaigns.draw"
CHECK_DRAWS = "campaigns.check"
KEEP_FIGURES = "campaigns.figures"
TRAIN_TRIAL = "runs.train"
PREDICT_DATASET = "models.predict"
MAKE_UMAP = "models.umap"
SEND_NOTICE = "notices.send"
MEASURE_DISK = "disk.measure"

# Training waits behind nothing short, and nothing short waits behind training.
QUEUE_OF = {
    IMPORT_DATASET: "io",
    IMPORT_LABELS: "io",
    ADD_IMAGES: "io",
    OPEN_CAMPAIGN: "io",
    DRAW_FURTHER: "io",
    CHECK_DRAWS: "io",
    KEEP_FIGURES: "io",
    TRAIN_TRIAL: "gpu",
    PREDICT_DATASET: "io",
    MAKE_UMAP: "io",
    SEND_NOTICE: "io",
    MEASURE_DISK: "io",
}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Job:
    """A nudge to do work that a row describes; losing it or sending it twice is harmless."""

    name: str
    args: tuple[str, ...]
    traceparent: str | None = None  # of what asked for it, where that is traced


def enqueue(session: Session, name: str, *args: object) -> None:
    """Ask for a job once the current transaction has committed."""
    session.info.setdefault("jobs", []).append(Job(name, tuple(map(str, args)), spans.traceparent()))


def broker_options(settings: Settings) -> dict[str, Any]:
    """Celery settings that the sender and the worker must agree on."""
    options: dict[str, Any] = {
        "broker_url": settings.broker_url,
        "task_serializer": "json",
        "accept_content": ["json"],
    }
    if settings.broker_url.startswith("filesystem://"):
        for folder in ("messages", "control"):
            (settings.queue_dir / folder).mkdir(parents=True, exist_ok=True)
        messages = str((settings.queue_dir / "messages").resolve())
        options["broker_transport_options"] = {
            "data_folder_in": messages,
            "data_folder_out": messages,
            "control_folder": str((settings.queue_dir / "control").resolve()),
        }
    return options


def publisher(settings: Settings) -> Callable[[Job], None]:
    """Send jobs to the broker. A failed send is logged, never raised: upkeep repeats what rows ask for."""
    from celery import Celery  # noqa: PLC0415  (tools that only need the names start faster)

    celery = Celery("clarinet", set_as_current=False)
    celery.conf.update(broker_options(settings), broker_connection_retry_on_startup=True)

    def publish(job: Job) -> None:
        try:
            celery.send_task(
                job.name,
                args=job.args,
                queue=QUEUE_OF[job.name],
                headers={spans.HEADER: job.traceparent} if job.traceparent else None,
                ignore_result=True,
                retry=False,
            )
        except Exception:
            # The edge of the process: whatever the broker raises, the committed row is still the truth.
            log.warning("job.publish_failed", job=job.name, exc_info=True)

    return publish
