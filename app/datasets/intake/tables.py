"""Tables of file names with classes and splits: CSV, or with semicolons or tabs."""

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_EXAMPLES
from app.datasets.intake.reading import checked_path
from clarinet.files.folders import SPLITS, VALIDATION
from clarinet.files.names import tidy
from clarinet.files.refusal import Refused

ENDINGS = (".csv", ".tsv")
SEPARATORS = (",", ";", "\t")
# What people call the columns, the first as we do.
COLUMNS = {
    "filename": ("filename", "file_name", "file", "image", "path"),
    "class": ("class", "label", "class_name"),
    "split": ("split",),
}
METADATA = "metadata.csv"  # of data sets of Hugging Face, which may tell anything of their images
WANTED = "must begin with the line filename,class,split (class and split may be missing)"


class Row(NamedTuple):
    """One line of the table."""

    line: int
    filename: str
    class_name: str | None
    split: str | None  # of SPLITS or VALIDATION; None: where the image lies says it


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read."""

    name: str
    rows: Sequence[Row]
    has_classes: bool  # a column of them
    unread: Sequence[str]  # columns that say nothing to us

    @property
    def folder(self) -> str:
        """Below which it names files: its own, as in data sets of Hugging Face; "" for one beside the zip."""
        return self.name.rpartition("/")[0]


class NoTable(Refused):
    """A file whose first line names no column of file names."""


def read_table(data: bytes, name: str) -> Table:
    """The lines of a table whose header has filename and perhaps class and split, in any order.

    An empty class means unknown, an empty split what the image's place says.

    Raises:
        NoTable: its header names no files.
        Refused: not UTF-8, lines that do not fit, or names that leave the archive.
    """
    text = _text(data, name)
    separator = _separator(text)
    if separator is None:
        raise NoTable(name, WANTED)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = [column.strip().lower() for column in next(reader, [])]
        places = _places(header, name)
        rows = [
            _row(header, places, values, name=name, line=reader.line_num)
            for values in reader
            if any(value.strip() for value in values)
        ]
    except csv.Error as error:
        raise Refused(name, f"has a line {reader.line_num} that is no CSV") from error
    if not rows:
        raise Refused(name, "names no files")
    if len(rows) > MAX_EXAMPLES:
        raise Refused(name, f"names {len(rows)} files; at most {MAX_EXAMPLES} are taken")
    further = set(filter(None, header)) - set(COLUMNS["filename"])
    is_silent = "class" not in places and "split" not in places
    if further and is_silent and name.rpartition("/")[2].lower() != METADATA:
        raise Refused(name, WANTED)
    unread = [column for place, column in enumerate(header) if column and place not in places.values()]
    return Table(name, rows, "class" in places, unread)


def _text(data: bytes, name: str) -> str:
    # UTF-16 with its mark is what spreadsheets call Unicode text.
    is_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(name, "is not a CSV in UTF-8") from error


def _separator(text: str) -> str | None:
    """That which makes a column of file names of the first line."""
    first = text.lstrip("\r\n").split("\n", maxsplit=1)[0]
    for separator in SEPARATORS:
        columns = {column.strip().strip('"').lower() for column in first.split(separator)}
        if columns & set(COLUMNS["filename"]):
            return separator
    return None


def _places(header: Sequence[str], name: str) -> dict[str, int]:
    """Where each of our columns is."""
    places: dict[str, int] = {}
    for column, names in COLUMNS.items():
        found = [place for place, called in enumerate(header) if called in names]
        if len(found) > 1:
            both = " and ".join(header[place] for place in found)
            raise Refused(name, f"has the columns {both}, of which one alone can be the {column}")
        if found:
            places[column] = found[0]
    return places


def _row(
    header: Sequence[str], places: dict[str, int], values: Sequence[str], *, name: str, line: int
) -> Row:
    if len(values) < len(header) or any(value.strip() for value in values[len(header) :]):
        raise Refused(name, f"has {len(values)} instead of {len(header)} values in line {line}")
    cells = {column: values[place].strip() for column, place in places.items()}
    split = cells.get("split", "").lower() or None
    if split is not None and split not in (*SPLITS, *VALIDATION):
        raise Refused(name, f'has a split other than "train" and "test" in line {line}')
    class_name = tidy(cells.get("class", "")) or None
    if class_name is not None and len(class_name) > MAX_CLASS_NAME_LENGTH:
        raise Refused(
            name, f"has a class name of more than {MAX_CLASS_NAME_LENGTH} characters in line {line}"
        )
    return Row(line, checked_path(cells["filename"]), class_name, split)
