"""What a dataset has already of images that are to join it: read before they join, so that joining is short.

On SQLite nobody answers while images join, so that may not take longer the larger the dataset is. A dataset
only grows: what joined since the first look is read behind it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets.contradictions import Found, Seen, told_of_namesakes, told_of_twins
from app.datasets.intake.shards import Record
from app.datasets.models import Example

PIECE = 20_000  # rows that are fetched at once


class There:
    """The images of a dataset that those to come are the same as, or are called like."""

    def __init__(self, coming: Iterable[Iterable[Record]]) -> None:
        """`coming`: the records of the images that are to join, some at a time."""
        self.sum: Any = hashlib.sha256()  # over all digests; hashlib's type has no public name
        self._count = 0  # images that were looked at
        self._same: dict[str, list[Seen]] = {}  # by digest, those that are there
        self._of_name: dict[str, str | None] = {}  # the digest of the first of each name; None: none is there
        self._alike: set[str] = set()  # names of several pictures
        self._joined: dict[str, int | None] = {}  # digests of those that joined, with the first one's class
        self._differing: set[str] = set()  # of these, what is of several classes
        for records in coming:
            for record in records:
                self._same[record.digest] = []
                if record.filename is not None:
                    self._of_name[record.filename] = None

    def look(self, session: Session, dataset_id: UUID) -> None:
        """Look at what the dataset has, or has got since it was looked at last."""
        rows = session.execute(
            select(Example.digest, Example.position, Example.filename, Example.true_class)
            .where(Example.dataset_id == dataset_id, Example.position >= self._count)
            .order_by(Example.position)
            .execution_options(yield_per=PIECE)
        )
        for row in rows:
            one = Seen._make(row)
            self.sum.update(bytes.fromhex(one.digest))
            self._count += 1
            if one.digest in self._same:
                self._same[one.digest].append(one)
            self._note_name(one.filename, one.digest)

    def has(self, digest: str) -> bool:
        """Whether an image with these pixels was there before."""
        return bool(self._same[digest])

    def has_joined(self, digest: str) -> bool:
        """Whether one has come along."""
        return digest in self._joined

    def class_of(self, digest: str) -> int | None:
        """Of those that were there, the class of the first that has one."""
        return next((one.true_class for one in self._same[digest] if one.true_class is not None), None)

    def add(self, record: Record) -> None:
        """Note that an image joins; its class is the dataset's."""
        digest, class_ = record.digest, record.true_class
        self.sum.update(bytes.fromhex(digest))
        first = self._joined.get(digest)
        if first is None:
            self._joined[digest] = class_
        if class_ is not None:
            classes = {one.true_class for one in self._same[digest]} | {first}
            if classes - {None, class_}:
                self._differing.add(digest)
        self._note_name(record.filename, digest)

    def _note_name(self, name: str | None, digest: str) -> None:
        if name is None or name not in self._of_name:
            return
        first = self._of_name[name]
        if first is None:
            self._of_name[name] = digest
        elif first != digest:
            self._alike.add(name)

    def twins(self, session: Session, dataset_id: UUID, names: list[str]) -> Found:
        """What is to be said of images that joined and are of another class than the same ones."""
        if not self._differing:
            return Found([], [])
        joined = (one for one in self._behind(session, dataset_id) if one.digest in self._differing)
        before = (one for digest in self._differing for one in self._same[digest])
        images = sorted(one for one in chain(before, joined) if one.true_class is not None)
        return told_of_twins(images, names, count=len(images))

    def namesakes(self, session: Session, dataset_id: UUID) -> Found:
        """What is to be said of images that joined and are called like others, of other pixels."""
        if not self._alike:
            return Found([], [])
        joined = (one.filename for one in self._behind(session, dataset_id))
        return told_of_namesakes([name for name in joined if name in self._alike])

    def _behind(self, session: Session, dataset_id: UUID) -> Iterator[Seen]:
        """The images that joined, behind all that was looked at."""
        rows = session.execute(
            select(Example.digest, Example.position, Example.filename, Example.true_class)
            .where(Example.dataset_id == dataset_id, Example.position >= self._count)
            .order_by(Example.position)
            .execution_options(yield_per=PIECE)
        )
        return (Seen._make(row) for row in rows)
