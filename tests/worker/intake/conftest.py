"""Uploads, the worker that imports them, and what is stored then."""

import io
from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets import service
from app.datasets.models import Dataset, Example
from app.datasets.uploads import Kind, Upload
from app.db import Database
from app.jobs import Job
from app.settings import Settings
from app.storage import Storage
from tests.app.datasets.hostile import NAME, TABLE
from tests.factories import NOW, number
from worker.context import Context


@pytest.fixture
def context(settings: Settings, database: Database, storage: Storage, published: list[Job]) -> Context:
    """What a worker works with."""
    return Context(settings=settings, database=database, storage=storage, publish=published.append)


@pytest.fixture
def upload(session: Session, storage: Storage, admin: User) -> Callable[..., Dataset]:
    """Uploads of the test's admin."""

    def make(data: bytes, *, table: bytes | None = None, kind: Kind = "auto") -> Dataset:
        beside = None if table is None else io.BytesIO(table)
        sent = Upload(io.BytesIO(data), NAME, kind=kind, table=beside, table_name=TABLE)
        dataset = service.create_dataset(session, storage, sent, name=f"Set {number()}", by=admin, now=NOW)
        session.commit()
        return dataset

    return make


def files_in(storage: Storage) -> list[str]:
    """Every file that is stored."""
    return sorted(str(path.relative_to(storage.root)) for path in storage.root.rglob("*") if path.is_file())


def examples_of(session: Session, dataset: Dataset) -> list[Example]:
    """All of them, in order."""
    return list(session.scalars(service.examples_of(dataset.id, limit=10**6)))
