"""Images of a dataset about whose class its files say different things, or that are called like others."""

from collections.abc import Iterable, Sequence
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


class Seen(NamedTuple):
    """An image, as far as another may contradict it."""

    digest: str
    position: int
    filename: str | None
    true_class: int | None


def twins_of_other_classes(session: Session, dataset_id: UUID, class_names: Sequence[str]) -> Found:
    """Images of a dataset that are the same, pixel by pixel, and of different classes. Each keeps its own."""
    several = (
        select(Example.digest)
        .where(Example.dataset_id == dataset_id, Example.true_class.is_not(None))
        .group_by(Example.digest)
        .having(func.count(Example.true_class.distinct()) > 1)
    )
    where = Example.dataset_id == dataset_id, Example.digest.in_(several), Example.true_class.is_not(None)
    count = session.scalar(select(func.count()).where(*where)) or 0
    if not count:
        return Found([], [])
    rows = session.execute(
        select(Example.digest, Example.position, Example.filename, Example.true_class)
        .where(*where)
        .order_by(Example.digest, Example.position)
        .limit(MOST_NAMED + 1)
    )
    return told_of_twins((Seen._make(row) for row in rows), class_names, count=count)


def told_of_twins(images: Iterable[Seen], class_names: Sequence[str], *, count: int) -> Found:
    """What is said of so many images; these are the first, by digest and position, and each has a class."""
    named: list[Contradiction] = []
    digest_before: str | None = None
    of_class: dict[str, str] = {}  # of these pixels the first of each class
    for digest, position, filename, true_class in images:
        assert true_class is not None  # as said above
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


def told_of_namesakes(names: Sequence[str]) -> Found:
    """What is said of images with these names, which are other pictures than others of the name."""
    if not names:
        return Found([], [])
    why = "is another picture than one that is there under the same name"
    told = (
        f"{many(len(names), 'image')} {is_or_are(len(names))} called like another picture; a file of labels "
        "must tell them by position or example_id."
    )
    return Found([told], [{"file": shown(name), "why": why} for name in names[:MOST_NAMED]])


def called(filename: str | None, position: int) -> str:
    """What an image is called in a list."""
    return shown(filename) if filename else f"the image at position {position}"
