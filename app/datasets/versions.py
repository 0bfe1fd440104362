"""The versions of a dataset: which there are, and what it holds in each.

A version is published in one transaction and never changes, but for names that an admin gives to numbers. So
whoever names a version gets the same images for ever.
"""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.datasets.errors import DatasetNotReady, VersionNotFound
from app.datasets.models import Dataset, DatasetState, DatasetVersion, Holding

HELD = tuple(Holding.__annotations__)
SAID = ("state", "progress", "progress_total", "notes", "faults", "contradictions", "made")


def first_version(dataset: Dataset, *, now: datetime) -> DatasetVersion:
    """What a dataset that is ready was imported with, as a row to be added."""
    return DatasetVersion(
        id=dataset.id,
        dataset_id=dataset.id,
        number=1,
        first_position=0,
        **{name: getattr(dataset, name) for name in (*HELD, *SAID)},
        created_by_id=dataset.created_by_id,
        created_at=dataset.created_at,
        published_at=now,
    )


class TrainRows:
    """Between a training image's position and its row among all training images, as files outside count them.

    They differ where further training images lie behind test images that joined before.
    """

    def __init__(self, published: Sequence[Holding]) -> None:
        """`published`: the versions of a dataset, oldest first."""
        before = [(0, 0), *((held.image_count, held.test_count) for held in published)][: len(published)]
        self._starts = [images for images, _ in before] or [0]  # position of each version's first image
        self._tests = [tests for _, tests in before] or [0]  # test images before it
        self._rows = [start - tests for start, tests in zip(self._starts, self._tests, strict=True)]

    def row(self, position: int) -> int:
        """The row of the training image at a position."""
        return position - self._tests[bisect_right(self._starts, position) - 1]

    def position(self, row: int) -> int:
        """The position of the training image in a row; that of none where there are not so many."""
        return row + self._tests[bisect_right(self._rows, row) - 1]


def train_rows(session: Session, dataset_id: UUID) -> TrainRows:
    """Those of a dataset as it is now."""
    return TrainRows(versions_of(session, dataset_id))


def versions_of(session: Session, dataset_id: UUID) -> Sequence[DatasetVersion]:
    """What was published of a dataset, oldest first."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.number.is_not(None))
        .order_by(DatasetVersion.number)
    ).all()


def additions_of(session: Session, dataset_id: UUID) -> Sequence[DatasetVersion]:
    """Further images that are on their way, or failed to join; newest first."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.number.is_(None))
        .order_by(DatasetVersion.created_at.desc(), DatasetVersion.id)
    ).all()


def newest(session: Session, dataset: Dataset) -> DatasetVersion:
    """The last version that was published.

    Raises:
        DatasetNotReady: there is none.
    """
    found = session.scalar(
        select(DatasetVersion)
        .where(DatasetVersion.dataset_id == dataset.id, DatasetVersion.number.is_not(None))
        .order_by(DatasetVersion.number.desc())
        .limit(1)
    )
    if found is None or dataset.state is not DatasetState.READY:
        raise DatasetNotReady(dataset.name)
    return found


def version(session: Session, dataset_id: UUID, number: int) -> DatasetVersion:
    """One published version.

    Raises:
        VersionNotFound: there is none of this number.
    """
    found = session.scalar(
        select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.number == number)
    )
    if found is None:
        raise VersionNotFound
    return found


def get_version(session: Session, dataset_id: UUID, version_id: UUID, *, by: User) -> DatasetVersion:
    """A version by its id, published or not.

    Raises:
        NotAllowed: `by` is no admin.
        VersionNotFound: this dataset has none.
    """
    accounts.require_admin(by)
    found = session.get(DatasetVersion, version_id)
    if found is None or found.dataset_id != dataset_id:
        raise VersionNotFound
    return found
