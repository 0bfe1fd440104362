"""Uploads, the worker that imports them, and what is stored then."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets import growing, service
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Example
from app.datasets.uploads import Kind, Upload
from app.db import Database
from app.jobs import Job
from app.settings import Settings
from app.storage import Storage
from app.stores.folder import FolderStorage
from tests.app.datasets.files import picture, zip_of
from tests.app.datasets.hostile import TABLE
from tests.app.datasets.refused import NAME
from tests.factories import NOW, number
from worker import intake
from worker.context import Context

PETS = {"train/cat/1.png": 1, "train/dog/2.png": 2, "test/cat/3.png": 3}

Grow = Callable[..., DatasetVersion]
Ready = Callable[[bytes], Dataset]


@pytest.fixture
def context(settings: Settings, database: Database, storage: FolderStorage, published: list[Job]) -> Context:
    """What a worker works with."""
    return Context(settings=settings, database=database, storage=storage, publish=published.append)


@pytest.fixture
def upload(session: Session, storage: FolderStorage, admin: User) -> Callable[..., Dataset]:
    """Uploads of the test's admin."""

    def make(data: bytes, *, table: bytes | None = None, kind: Kind = "auto") -> Dataset:
        beside = None if table is None else io.BytesIO(table)
        sent = Upload(io.BytesIO(data), NAME, kind=kind, table=beside, table_name=TABLE)
        dataset = service.create_dataset(session, storage, sent, name=f"Set {number()}", by=admin, now=NOW)
        session.commit()
        return dataset

    return make


@pytest.fixture
def grow(session: Session, storage: FolderStorage, admin: User, context: Context) -> Grow:
    """Adds images by the test's admin and lets the worker take them in."""

    def add(dataset: Dataset, data: bytes, *, work: bool = True, **choices: Any) -> DatasetVersion:
        skip_known = choices.pop("skip_known", True)
        sent = Upload(io.BytesIO(data), "more.zip", **choices)
        addition = growing.add_images(
            session, storage, dataset, sent, skip_known=skip_known, by=admin, now=NOW
        )
        session.commit()
        if work:
            intake.add_images(context, addition.id)
            session.expire_all()
        return addition

    return add


@pytest.fixture
def ready(context: Context, session: Session, upload: Callable[..., Dataset]) -> Ready:
    """Imports a dataset."""

    def make(data: bytes) -> Dataset:
        dataset = upload(data)
        intake.import_dataset(context, dataset.id)
        session.refresh(dataset)
        assert dataset.state is DatasetState.READY
        return dataset

    return make


def pets(shades: Mapping[str, int]) -> bytes:
    """A zip of tiny pictures, each of a shade of its own."""
    return zip_of({path: picture(mode="L", shade=shade) for path, shade in shades.items()})


def files_in(storage: Storage) -> list[str]:
    """Every file that is stored."""
    return sorted(about.key for about in storage.listed())


def examples_of(session: Session, dataset: Dataset) -> list[Example]:
    """All of them, in order."""
    return list(session.scalars(service.examples_of(dataset.id, limit=10**6)))
