"""Images of a dataset about whose class its files say different things, or that are called like others."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.datasets.models import Example
from clarinet.files.refusal import MOST_NAMED, shown
from clarinet.recipes.counting import is_or_are, many

Contradiction = dict[str, str]  # {"file": its name, "why": continues a sentence about it}


class Found(NamedTuple):
    """What an import is to say."""

    notes: list[str]  # sentences
    named: list[Contradiction]  # of many the first


def twins_of_other_classes(
    session: Session, dataset_id: UUID, class_names: Sequence[str], *, first_position: int = 0
) -> Found:
    """Images that are the same, pixel by pixel, and of different classes. Each keeps its own.

    `first_position`: of the images that have just joined; one of each group is among them.
    """
    several = (
        select(Example.digest)
        .where(Example.dataset_id == dataset_id, Example.true_class.is_not(None))
        .group_by(Example.digest)
        .having(func.count(Example.true_class.distinct()) > 1, func.max(Example.position) >= first_position)
    )
    where = Example.dataset_id == dataset_id, Example.digest.in_(several), Example.true_class.is_not(None)
    count = session.scalar(select(func.count()).where(*where)) or 0
    if not count:
        return Found([], [])
    rows = session.execute(
        select(Example.digest, Example.filename, Example.position, Example.true_class)
        .where(*where)
        .order_by(Example.digest, Example.position)
        .limit(MOST_NAMED + 1)
    )
    named: list[Contradiction] = []
    digest_before: str | None = None
    of_class: dict[str, str] = {}  # of these pixels the first of each class
    for digest, filename, position, true_class in rows:
        assert true_class is not None  # by the query
        if digest != digest_before:
            digest_before, of_class = digest, {}
        name, class_name = called(filename, position), class_names[true_class]
        before = next((one for one in of_class if one != class_name), None)
        of_class.setdefault(class_name, name)
        if before is not None:
            same = f"the same picture as “{of_class[before]}” of {before!r:.80}"
            why = f"is of the class {class_name!r:.80} and {same}; both keep their class"
            named.append({"file": name, "why": why})
    told = (
        f"{many(count, 'image')} {is_or_are(count)} the same as another one of another class; each keeps its "
        "class, so that no model can be right about all of them."
    )
    return Found([told], named[:MOST_NAMED])


def namesakes(session: Session, dataset_id: UUID, *, first_position: int) -> Found:
    """Images from this position on that are called like others, of other pixels. By the database: as many
    names as a dataset may have are too many for a process to keep.
    """
    several = (
        select(Example.filename)
        .where(Example.dataset_id == dataset_id, Example.filename.is_not(None))
        .group_by(Example.filename)
        .having(func.count(Example.digest.distinct()) > 1, func.max(Example.position) >= first_position)
    )
    where = (
        Example.dataset_id == dataset_id,
        Example.position >= first_position,
        Example.filename.in_(several),
    )
    count = session.scalar(select(func.count()).where(*where)) or 0
    if not count:
        return Found([], [])
    query = select(Example.filename).where(*where).order_by(Example.position).limit(MOST_NAMED)
    why = "is another picture than one that is there under the same name"
    named = [{"file": shown(name), "why": why} for name in session.scalars(query) if name]
    told = (
        f"{many(count, 'image')} {is_or_are(count)} called like another picture; a file of labels must tell "
        "them by position or example_id."
    )
    return Found([told], named)


def called(filename: str | None, position: int) -> str:
    """What an image is called in a list."""
    return shown(filename) if filename else f"the image at position {position}"
