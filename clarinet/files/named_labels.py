"""Labels that find their image by the name of its file: `filename,label`, as people and other tools write."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from clarinet.files.folders import PathFinder
from clarinet.files.label_table import KINDS, LabelKind, LabelRow
from clarinet.files.names import NO_LABEL, class_numbers, classes_in_order, in_a_row
from clarinet.files.tables import csv_rows, separator_of, unguarded
from clarinet.recipes.errors import DataError

FILENAMES = ("filename", "file_name", "file")
CLASSES = ("class_name", "class_index", "label", "class")


def _read(path: Path) -> "csv.DictReader[str]":
    text = path.read_text(encoding="utf-8-sig")
    return csv_rows(io.StringIO(text, newline=""), separator=separator_of(text))


def lacks_positions(path: Path) -> bool:
    """Whether a table has file names and no positions, as people write it."""
    columns = _read(path).fieldnames or ()
    return "position" not in columns and any(name in columns for name in FILENAMES)


def is_by_filename(path: Path) -> bool:
    """Whether a table has a file name in each of its rows."""
    reader = _read(path)
    columns = reader.fieldnames or ()
    name = next((column for column in FILENAMES if column in columns), None)
    return name is not None and all((row[name] or "").strip() for row in reader)


def by_filename(
    path: Path, filenames: Sequence[str], class_names: Sequence[str]
) -> tuple[list[LabelRow], list[str]]:
    """The labels of a table, and the names of the classes that they count.

    Args:
        path: the table.
        filenames: what the file of each image is called, by its place.
        class_names: the classes; empty takes those of the table.

    Raises:
        DataError: no column of classes; a file or class that is not there; or numbers that can be read as
            names and as places.
    """
    reader = _read(path)
    columns = reader.fieldnames or ()
    column = next((name for name in CLASSES if name in columns), None)
    if column is None:
        raise DataError(f"{path} lacks a column label; a table of labels has filename,label")
    name = next(name for name in FILENAMES if name in columns)
    finder, places = PathFinder(filenames), {file: place for place, file in enumerate(filenames)}
    rows = list(reader)
    given = [unguarded((row[column] or "").strip()) for row in rows]
    classes = list(class_names) or classes_in_order(set(given))
    numbers = class_numbers(
        given, classes, are_names=column == "class_name", are_places=column == "class_index"
    )
    found: list[LabelRow] = []
    for line, (row, called, number) in enumerate(zip(rows, given, numbers, strict=True), 2):
        file = finder.find(unguarded(row[name] or ""))
        if file is None:
            raise DataError(f"label {line - 1} of {path} is about {row[name]!r:.80}, which is no image here")
        if number == NO_LABEL:
            told = f"is about the class {called!r:.80}, which is none of {in_a_row(classes)}"
            raise DataError(f"label {line - 1} of {path} {told}")
        kind = (row.get("kind") or LabelKind.TRUE).strip().lower()
        if kind not in KINDS:
            raise DataError(
                f"label {line - 1} of {path} is of the kind {kind!r:.80}; expected {' or '.join(KINDS)}"
            )
        found.append(LabelRow(places[file], kind, number, _weight(row.get("weight"), path)))
    if not found:
        raise DataError(f"{path} has no labels")
    return found, classes


def _weight(given: str | None, path: Path) -> float:
    if not given:
        return 1.0
    try:
        weight = float(given)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise DataError(f"{path} has the weight {given!r:.80}; expected a number of at least 0")
    return weight
