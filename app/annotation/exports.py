"""Label files: CSV and JSON lines, written row by row."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from app.annotation.labels import ExampleLabel

COLUMNS = ("example_id", "position", "kind", "class", "class_name", "answers", "weight")
CHUNK = 500  # rows per piece that is sent
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could start one gets an apostrophe in front."""
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


def csv_lines(labels: Iterable[ExampleLabel], class_names: Sequence[str]) -> Iterator[str]:
    """One row per (example, class): an example known not to be two classes has two rows."""
    safe_names = [csv_safe(name) for name in class_names]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for count, label in enumerate(labels, start=1):
        for class_ in label.classes:
            writer.writerow(
                (
                    label.example_id,
                    label.position,
                    label.kind,
                    class_,
                    safe_names[class_],
                    label.answers,
                    label.weight,
                )
            )
        if count % CHUNK == 0:
            yield _drain(buffer)
    yield _drain(buffer)


def json_lines(labels: Iterable[ExampleLabel], class_names: Sequence[str]) -> Iterator[str]:
    """One JSON object per example."""
    buffer = io.StringIO()
    for count, label in enumerate(labels, start=1):
        line = {
            "example_id": label.example_id,
            "position": label.position,
            "kind": label.kind,
            "classes": label.classes,
            "class_names": [class_names[class_] for class_ in label.classes],
            "answers": label.answers,
            "weight": label.weight,
        }
        buffer.write(json.dumps(line, ensure_ascii=False) + "\n")
        if count % CHUNK == 0:
            yield _drain(buffer)
    yield _drain(buffer)


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
