"""What the files of labelled pictures were called: beside each label, on its way out."""

from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.datasets.models import Example
from app.datasets.versions import train_rows
from clarinet.files.label_table import LabelRow

AT_ONCE = 2_000  # rows that wait for their names


def with_filenames(session: Session, dataset_id: UUID, rows: Iterable[LabelRow]) -> Iterator[LabelRow]:
    """Rows in position order with the names of their files, where the dataset has kept them.

    Their positions are then those among the training images, as files outside count them.
    """
    iterator, places = iter(rows), train_rows(session, dataset_id)
    while some := list(islice(iterator, AT_ONCE)):
        query = select(Example.position, Example.filename).where(
            Example.dataset_id == dataset_id,
            Example.position.between(some[0].position, some[-1].position),
            Example.filename.is_not(None),
        )
        known = {row.position: row.filename for row in session.execute(query)}
        for row in some:
            yield row._replace(filename=known.get(row.position), position=places.row(row.position))


def longest_filename(session: Session, dataset_id: UUID) -> int:
    """Bytes of the longest in UTF-8, at least 1: an array holds all in that many."""
    longest = session.scalar(
        select(func.max(func.length(Example.filename))).where(Example.dataset_id == dataset_id)
    )
    return max(1, 4 * int(longest or 0))  # a character has at most four bytes
