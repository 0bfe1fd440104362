"""Workers that were seen: written by their heartbeats, read by upkeep and pages."""

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app import jobs
from app.runs.models import Worker

# A worker is believed alive this long after its last beat, which comes every 5 s.
SEEN = timedelta(seconds=30)
FORGOTTEN = timedelta(hours=1)


def record_worker(session: Session, name: str, *, queues: str, device: str, now: datetime) -> None:
    """Note that a worker is alive and consuming."""
    session.merge(Worker(name=name, queues=queues, device=device, seen_at=now))


def training_workers(session: Session) -> list[Worker]:
    """Workers that take trainings, the one seen last first."""
    queue = jobs.QUEUE_OF[jobs.TRAIN_TRIAL]
    workers = session.scalars(select(Worker).order_by(Worker.seen_at.desc(), Worker.name))
    return [worker for worker in workers if queue in worker.queues.split(",")]


def live_workers(session: Session, *, now: datetime) -> list[Worker]:
    """Workers that take trainings and were consuming a moment ago."""
    return [worker for worker in training_workers(session) if worker.seen_at > now - SEEN]


def forget_workers(session: Session, *, now: datetime) -> None:
    """Drop the rows of workers that have been silent for long."""
    session.execute(delete(Worker).where(Worker.seen_at < now - FORGOTTEN))
