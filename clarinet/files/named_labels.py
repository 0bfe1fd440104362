"""Labels that find their image by the name of its file: `filename,label`, as people and other tools write."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from clarinet.files import yes_no
from clarinet.files.agreeing import first_contradiction, repeated, said_of
from clarinet.files.columns import FILENAMES, IDS, of_files
from clarinet.files.folders import PathFinder
from clarinet.files.label_columns import (
    ANSWERS,
    CLASSES,
    NAMES,
    label_table,
    only_one,
    records_of,
    tell_unread,
    unread_in,
)
from clarinet.files.label_table import KINDS, LabelKind, LabelRow
from clarinet.files.names import (
    NO_LABEL,
    class_numbers,
    classes_in_order,
    in_a_row,
    named_by_numbers_told,
    require_count_said,
)
from clarinet.files.no_class import odd_number
from clarinet.files.tables import unguarded
from clarinet.recipes.counting import many
from clarinet.recipes.errors import ColumnsLeftOut, DataError

OF_ANSWER = {yes_no.YES: LabelKind.TRUE, yes_no.NO: LabelKind.COMPLEMENTARY}


def lacks_positions(path: Path, ignored: Sequence[str] = ()) -> bool:
    """Whether a table has file names and no positions, as people write it; `ignored`: columns left out."""
    columns = label_table(path, ignored).names
    return "position" not in columns and bool(of_files(columns))


def is_by_filename(path: Path, ignored: Sequence[str] = ()) -> bool:
    """Whether a table has a file name in each of its rows, or without positions an id of Kaggle."""
    table = label_table(path, ignored)
    found = of_files(table.names)
    if not found or ("position" in table.names and found[0] not in FILENAMES):
        return False
    return all(row[found[0]] for _, row in records_of(path, table))


def by_filename(
    path: Path,
    filenames: Sequence[str],
    class_names: Sequence[str],
    *,
    first_class: int | None = None,
    ignored: Sequence[str] = (),
) -> tuple[list[LabelRow], list[str]]:
    """The labels of a table, and the names of the classes that they count.

    A column `answer` (yes or no) says as much as `kind` (true or complementary). Lines that answer "unsure"
    say nothing, and are told of.

    Args:
        path: the table.
        filenames: what the file of each image is called, by its place.
        class_names: the classes; empty takes those of the table.
        first_class: from which number the table counts classes; None: from 0, if that alone can be.
        ignored: columns that are left out.

    Raises:
        DataError: no column of classes, two that could be it, or one that says yes or no under another name;
            a file or class that is not there; numbers that can be read as names and as places; or a number
            that may stand for no class.
    """
    table = label_table(path, ignored)
    column, further = _class_columns(path, table.names)
    files = of_files(table.names)
    has_ids = files[0] in IDS
    name = only_one(path, table.names, files, "the image's file")
    kind = only_one(path, table.names, ANSWERS, "the answer")
    assert name is not None  # there is one, or nobody asks
    used = {name, column, *further, kind or "", "weight"}
    unread = unread_in(path, table, used, is_answered=kind is not None)
    finder, places = (
        PathFinder(filenames, by_id=has_ids),
        {file: place for place, file in enumerate(filenames)},
    )
    lines = list(records_of(path, table))
    rows = [row for _, row in lines]
    given = [unguarded(row[column]) for row in rows]
    for (line, _), called in zip(lines, given, strict=True):
        if not called:
            raise DataError(f"line {line} of {path} names no class in the column {column}")
    classes = list(class_names) or classes_in_order(set(given))
    if not class_names and (odd := odd_number(classes)):
        raise DataError(
            f'{path} has labels of "{odd}", which may mean that nobody knows the class: take these lines '
            "out, or call the classes by names"
        )
    numbers = _numbers(given, classes, column, first_class)
    if first_class is None and column not in NAMES:
        _require_count_said(path, given, classes, column)
    for other in further:
        again = _numbers([unguarded(row[other]) for row in rows], classes, other, first_class)
        _require_alike(path, lines, (column, other), numbers, again)
    found: dict[int, LabelRow] = {}  # by its line
    for label, ((line, row), called, number) in enumerate(zip(lines, given, numbers, strict=True), 1):
        file = finder.find(unguarded(row[name]))
        if file is None:
            why = "which is no image here"
            if finder.could_be_several(unguarded(row[name])):
                why = "which could be several images here; write the folders that it lies in, too"
            raise DataError(f"label {label} of {path} is about {row[name]!r:.80}, {why}")
        if number == NO_LABEL:
            raise DataError(f"label {label} of {path} {_no_class(called, column, classes)}")
        said = _kind(row, kind, f"label {label} of {path}")
        if said is not None:
            found[line] = LabelRow(places[file], said, number, _weight(row.get("weight"), path))
    if len(found) < len(rows):
        told = f"{path}: {many(len(rows) - len(found), 'line')} that answers nothing left out"
        warnings.warn(told, ColumnsLeftOut, stacklevel=2)
    if not found:
        raise DataError(f"{path} has no labels")
    tell_unread(path, unread)
    return _once_each(path, found, filenames, classes), classes


def _once_each(
    path: Path, found: Mapping[int, LabelRow], filenames: Sequence[str], classes: Sequence[str]
) -> list[LabelRow]:
    """The labels of lines, what several say once; raises DataError where two cannot both be true."""
    lines, rows = list(found), list(found.values())
    if (pair := first_contradiction(rows)) is not None:
        (before, first), (line, row) = ((lines[place], rows[place]) for place in pair)
        raise DataError(
            f"line {line} of {path} says that {filenames[row.position]!r:.80} is {said_of(row, classes)}, "
            f"but line {before} says that it is {said_of(first, classes)}; keep the one that is right"
        )
    again = repeated(rows)
    for place, earlier in again.items():
        if rows[place].weight != rows[earlier].weight:
            raise DataError(
                f"line {lines[place]} of {path} says what line {lines[earlier]} says, with another weight; "
                "keep the one that counts"
            )
    if again:
        told = f"{many(len(again), 'line')} that {'says' if len(again) == 1 else 'say'}"
        warnings.warn(f"{path}: {told} what an earlier one says counted once", ColumnsLeftOut, stacklevel=2)
    return [row for place, row in enumerate(rows) if place not in again]


def _class_columns(path: Path, columns: Sequence[str]) -> tuple[str, list[str]]:
    """The column that tells the class, and others that must say the same."""
    only_one(path, columns, ("label", "class"), "the class")
    found = [name for name in CLASSES if name in columns]
    if not found:
        raise DataError(f"{path} lacks a column label; a table of labels has filename,label")
    return found[0], found[1:]


def _require_count_said(path: Path, given: Sequence[str], classes: Sequence[str], column: str) -> None:
    try:
        require_count_said(given, classes, are_places=column == "class_index")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _numbers(given: Sequence[str], classes: Sequence[str], column: str, first: int | None) -> list[int]:
    return class_numbers(
        given, classes, are_names=column in NAMES, are_places=column == "class_index", first=first
    )


def _require_alike(
    path: Path,
    lines: Sequence[tuple[int, Mapping[str, str]]],
    columns: tuple[str, str],
    numbers: Sequence[int],
    again: Sequence[int],
) -> None:
    """Raises DataError where two columns name different classes in a line."""
    for (line, row), one, other in zip(lines, numbers, again, strict=True):
        if one != other:
            told = " and ".join(f"{row[name]!r:.80} in {name}" for name in columns)
            raise DataError(
                f"line {line} of {path} says {told}, which are not the same class; keep one of the columns"
            )


def _no_class(called: str, column: str, classes: Sequence[str]) -> str:
    if column == "class_index":
        return (
            f"has {called!r:.80} in class_index, which counts {many(len(classes), 'class', 'classes')} from 0"
        )
    mend = "" if column in NAMES else named_by_numbers_told(called, classes)
    return f"is about the class {called!r:.80}, which is none of {in_a_row(classes)}{mend}"


def _kind(row: Mapping[str, str], column: str | None, what: str) -> str | None:
    """What a line says of its class; None where it answers nothing."""
    if column is None:
        return LabelKind.TRUE
    if column == "kind":
        kind = row[column].lower()
        if not kind:
            raise DataError(f"{what} says nothing in the column kind; expected {' or '.join(KINDS)}")
        if kind not in KINDS:
            raise DataError(f"{what} is of the kind {kind!r:.80}; expected {' or '.join(KINDS)}")
        return kind
    meaning = yes_no.meaning(row[column])
    if meaning is None:
        raise DataError(f"{what} answers {row[column]!r:.80} in the column {column}; expected yes or no")
    return OF_ANSWER.get(meaning)


def _weight(given: str | None, path: Path) -> float:
    if not given:
        return 1.0
    try:
        weight = float(given)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        told = "; write the decimals behind a point" if "," in given else ""
        raise DataError(f"{path} has the weight {given!r:.80}; expected a number of at least 0{told}")
    return weight
