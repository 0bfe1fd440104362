"""A CSV of file names with classes and splits."""

import csv
import io
from typing import NamedTuple

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_EXAMPLES
from app.datasets.intake.reading import checked_path
from clarinet.files.folders import SPLITS
from clarinet.files.refusal import Refused

COLUMNS = ("filename", "class", "split")


class Row(NamedTuple):
    """One line of the table."""

    line: int
    filename: str
    class_name: str | None
    split: str


def read_rows(data: bytes, name: str) -> list[Row]:
    """The lines of a CSV whose header is filename[,class][,split]; an empty class means unknown, an empty
    split train.

    Raises:
        Refused: not UTF-8, other columns, lines that do not fit, or names that leave the archive.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(name, "is not a CSV in UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [column.strip().lower() for column in next(reader, [])]
        if header[:1] != ["filename"] or set(header) - set(COLUMNS) or len(set(header)) != len(header):
            raise Refused(
                name, "must begin with the line filename,class,split (class and split may be missing)"
            )
        rows = [_row(header, values, name=name, line=reader.line_num) for values in reader if any(values)]
    except csv.Error as error:
        raise Refused(name, f"has a line {reader.line_num} that is no CSV") from error
    if not rows:
        raise Refused(name, "names no files")
    if len(rows) > MAX_EXAMPLES:
        raise Refused(name, f"names {len(rows)} files; at most {MAX_EXAMPLES} are taken")
    return rows


def _row(header: list[str], values: list[str], *, name: str, line: int) -> Row:
    if len(values) != len(header):
        raise Refused(name, f"has {len(values)} instead of {len(header)} values in line {line}")
    cells = dict(zip(header, (value.strip() for value in values), strict=True))
    split = cells.get("split", "").lower() or "train"
    if split not in SPLITS:
        raise Refused(name, f'has a split other than "train" and "test" in line {line}')
    class_name = cells.get("class") or None
    if class_name is not None and len(class_name) > MAX_CLASS_NAME_LENGTH:
        raise Refused(
            name, f"has a class name of more than {MAX_CLASS_NAME_LENGTH} characters in line {line}"
        )
    return Row(line, checked_path(cells["filename"]), class_name, split)
