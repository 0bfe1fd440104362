"""What uses the disk, for people: sums that upkeep keeps, and the largest datasets and models."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import jobs
from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets.models import Dataset
from app.disk.models import DiskKind, DiskUse
from app.registry.models import Model

MOST = 10  # of each kind that a page names


def uses_of_disk(session: Session, *, by: User) -> Sequence[DiskUse]:
    """What each kind of files takes, largest first; nothing before upkeep has looked once.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    return session.scalars(select(DiskUse).order_by(DiskUse.size_bytes.desc(), DiskUse.kind)).all()


def count_again(session: Session, *, by: User) -> datetime | None:
    """Ask a worker to add it all up now; gives when that was last done.

    Raises:
        NotAllowed: `by` is no admin.
    """
    found = uses_of_disk(session, by=by)
    jobs.enqueue(session, jobs.MEASURE_DISK)
    return found[0].measured_at if found else None


def sums_now(session: Session) -> dict[DiskKind, int]:
    """What images of datasets and weights of models take at least, as their rows say at this moment."""
    sums = {DiskKind.DATASETS: Dataset.size_bytes, DiskKind.MODELS: Model.size_bytes}
    return {kind: int(session.scalar(select(func.sum(column))) or 0) for kind, column in sums.items()}


def largest_datasets(session: Session) -> Sequence[Dataset]:
    """Those whose images take most, archived ones among them."""
    return session.scalars(select(Dataset).order_by(Dataset.size_bytes.desc(), Dataset.id).limit(MOST)).all()


def largest_models(session: Session) -> Sequence[Model]:
    """Those whose weights take most, archived ones among them."""
    return session.scalars(select(Model).order_by(Model.size_bytes.desc(), Model.id).limit(MOST)).all()
