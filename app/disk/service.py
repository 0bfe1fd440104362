"""What uses the disk, for people: sums that upkeep keeps, and the largest datasets and models."""

import shutil
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets.models import Dataset
from app.disk.models import DiskUse
from app.registry.models import Model
from app.storage import Storage

MOST = 10  # of each kind that a page names


def uses_of_disk(session: Session, *, by: User) -> Sequence[DiskUse]:
    """What each kind of files takes, largest first; nothing before upkeep has looked once.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    return session.scalars(select(DiskUse).order_by(DiskUse.size_bytes.desc(), DiskUse.kind)).all()


def free_bytes(storage: Storage) -> int:
    """What is free at this moment where artefacts lie."""
    storage.root.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(storage.root).free


def largest_datasets(session: Session) -> Sequence[Dataset]:
    """Those whose images take most, archived ones among them."""
    return session.scalars(select(Dataset).order_by(Dataset.size_bytes.desc(), Dataset.id).limit(MOST)).all()


def largest_models(session: Session) -> Sequence[Model]:
    """Those whose weights take most, archived ones among them."""
    return session.scalars(select(Model).order_by(Model.size_bytes.desc(), Model.id).limit(MOST)).all()
