"""What a file of labels says, as rows in a file of ours: from the process that reads it to who stores it."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from app.annotation.models import AnswerValue
from app.storage import Storage


class Row(NamedTuple):
    """What a file says about one picture and one class of the campaign."""

    number: int  # of its line or task
    filename: str  # of the picture, "" where the file does not say it
    position: int | None
    example_id: int | None
    candidate_class: int
    value: AnswerValue
    annotator: str
    answered_at: datetime | None


def write_rows(storage: Storage, key: str, rows: Iterable[Row]) -> None:
    """Write them, a line each."""
    with storage.create(key) as file:
        for row in rows:
            at = row.answered_at.isoformat() if row.answered_at else None
            file.write(json.dumps(row._replace(answered_at=at)).encode() + b"\n")  # type: ignore[arg-type]  # as text


def read_rows(storage: Storage, key: str, *, chunk: int) -> Iterator[list[Row]]:
    """So many at a time, in their order."""
    with storage.open(key) as file:
        while some := [_row(line) for line in islice(file, chunk)]:
            yield some


def _row(line: bytes) -> Row:
    number, filename, position, example_id, class_, value, annotator, at = json.loads(line)
    when = datetime.fromisoformat(at) if at else None
    return Row(number, filename, position, example_id, class_, AnswerValue(value), annotator, when)
