"""Runs and their trials: start, claim, report, end; and the workers that were seen."""

from datetime import datetime

from sqlalchemy.orm import Session

from app.runs.models import Worker


def record_worker(session: Session, name: str, *, queues: str, device: str, now: datetime) -> None:
    """Note that a worker is alive and consuming."""
    session.merge(Worker(name=name, queues=queues, device=device, seen_at=now))
