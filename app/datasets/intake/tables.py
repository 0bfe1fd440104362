"""Tables of file names with classes and splits: CSV, or with semicolons or tabs, or lines of JSON."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_EXAMPLES
from app.datasets.intake.reading import checked_path
from clarinet.files.columns import FILENAMES, IDS, PICTURES, may_count_rows
from clarinet.files.json_text import KeyTwice, json_of
from clarinet.files.names import in_a_row, sameness, tidy
from clarinet.files.refusal import Refused
from clarinet.files.splits import split_word
from clarinet.files.tables import BadTable, TextTable, Unread, column_name, text_of, unguarded

ENDINGS = (".csv", ".tsv")
# What people call the columns, the first as we do.
COLUMNS = {
    "filename": (*FILENAMES, *PICTURES),
    "class": ("class", "label", "class_name", "label_name"),
    "split": ("split",),
}
NAMES = ("class_name", "label_name")  # of the class, beside a column that may number it
KNOWN = frozenset(name for names in (*COLUMNS.values(), IDS) for name in names)
# Of data sets of Hugging Face, which may tell anything of their images; the latter as lines of JSON.
METADATA, JSON_LINES = "metadata.csv", "metadata.jsonl"
WANTED = "must begin with the line filename,class,split (class and split may be missing)"
OF_IT, NOT_OF_IT = {"1", "1.0", "true"}, {"0", "0.0", "false"}  # what a column of a single class says
_FLOAT = re.compile(r"(\d+)\.0+")  # as pandas writes whole numbers of which one lacks
Lines = list[tuple[int, list[str]]]  # by their numbers
_DISK = re.compile(r"^(?:[A-Za-z]:)?/+")


class Row(NamedTuple):
    """One line of the table."""

    line: int
    filename: str
    class_name: str | None
    split: str | None  # train, test or validation; None: where the image lies says it


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read."""

    name: str
    rows: Sequence[Row]
    has_classes: bool  # a column of them
    unread: Sequence[str]  # columns that say nothing to us
    remarks: Sequence[str] = ()
    classes: Sequence[str] = ()  # that its columns name, in their order, whether an image is of them or not
    has_ids: bool = False  # in place of file names

    @property
    def folder(self) -> str:
        """Below which it names files: its own, as in data sets of Hugging Face; "" for one beside the zip."""
        return self.name.rpartition("/")[0]


class NoTable(Refused):
    """A file whose first line names no column of file names."""


def is_table(path: str) -> bool:
    """Whether a file in a zip is read as a table of its images, by its name."""
    return path.lower().endswith(ENDINGS) or path.lower().rpartition("/")[2] == JSON_LINES


def read_table(data: bytes, name: str) -> Table:
    """The lines of a table whose header has filename and perhaps class and split, in any order.

    Beside a class, `id` may stand in place of the filename. An empty class means unknown, an empty split what
    the image's place says. In place of a column of classes there may be one for each class, with 1 in that of
    the image's and 0 in the others.

    Raises:
        NoTable: its header names no files.
        Refused: not UTF-8, lines that do not fit, or names that leave the archive.
    """
    try:
        text = text_of(data)
        if name.lower().endswith(".jsonl"):
            return _of_lines(text, name)
        table = TextTable.of(text, known=KNOWN)
        places = _places(table.names, name)
        further = [
            place for place, column in enumerate(table.names) if column and place not in places.values()
        ]
        lines = list(_checked(table, name))
    except BadTable as bad:
        raise Refused(name, bad.why) from bad
    remarks: list[str] = []
    named: list[str] = []
    if further and "class" not in places and not _is_metadata(name):
        classes = {place: tidy(table.written[place]) for place in _of_classes(table.names, further, lines)}
        if not classes and "split" not in places:
            raise Refused(name, WANTED)
        if classes and ("split" not in places or _are_exact(lines, classes)):
            lines = [(line, [*row, _only_class(row, classes, name, line)]) for line, row in lines]
            places["class"], named = len(table.names), [*classes.values()]
            further = [place for place in further if place not in classes]
            remarks.append(
                f"In {name} a column for each class tells the classes: {in_a_row([*classes.values()])}"
            )
    elif "class" in places and (beside := _beside(table.names, places)) is not None:
        named = _require_names(lines, places["class"], beside, name)
        remarks.append(f"In {name} the column {table.written[beside].strip()} names the classes")
        places["class"], further = beside, [place for place in further if place != beside]
    elif "class" in places:
        lines = _without_points(lines, places["class"])
    rows = [_row(places, values, name=name, line=line) for line, values in lines]
    _require_some(rows, name)
    columns = {table.written[place].strip(): [row[place] for _, row in lines] for place in further}
    told = [*remarks, *_answers_told(columns, name)]
    has_ids = _has_ids(table.names)
    return Table(name, rows, "class" in places, list(columns), told, named, has_ids=has_ids)


def _has_ids(header: Sequence[str]) -> bool:
    """Whether images are named by their ids: where no column says it better, and one tells the class."""
    return not any(called in header for called in COLUMNS["filename"]) and any(
        called in header for called in COLUMNS["class"]
    )


def _answers_told(columns: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """That columns which are not read say yes or no, if so: perhaps a no was about the class."""
    said = {column: Unread(column, column_name(column)) for column in columns}
    for column, values in columns.items():
        for row, value in enumerate(values):
            said[column].add(value, row)
    return [
        f"The column {column} of {name} says yes or no; the class counts as it stands, whatever that says"
        for column in columns
        if said[column].example
    ]


def _checked(table: TextTable, name: str) -> Iterator[tuple[int, list[str]]]:
    nameless = [place for place, column in enumerate(table.names) if not column and len(table.names) > 1]
    for line, values in table.rows():
        if len(values) != len(table.names):
            raise Refused(name, f"has {len(values)} instead of {len(table.names)} values in line {line}")
        if any(values[place].strip() for place in nameless):
            table.unread([one for one in table.names if one])  # which may just count the rows
            nameless = []  # all lines were looked at
        yield line, values


def _is_metadata(name: str) -> bool:
    return name.rpartition("/")[2].lower() in {METADATA, JSON_LINES}


def _places(header: Sequence[str], name: str) -> dict[str, int]:
    """Where each of our columns is."""
    places: dict[str, int] = {}
    columns = COLUMNS | ({"filename": IDS} if _has_ids(header) else {})
    for column, names in columns.items():
        found = [place for place, called in enumerate(header) if called in names]
        if column == "class" and len(found) > 1:  # a number or a code, and its name
            found = _number_and_name(header, found)
        if len(found) > 1:
            both = " and ".join(header[place] for place in found)
            raise Refused(name, f"has the columns {both}, of which one alone can be the {column}")
        if found:
            places[column] = found[0]
    if "filename" not in places:
        raise NoTable(name, WANTED)
    return places


def _of_classes(header: Sequence[str], further: Sequence[int], lines: Lines) -> list[int]:
    """The columns of single classes: those that say yes or no of every image; none where one alone does.

    `is_valid`, `id` and numbers of rows say so of something else. Beside columns of other values they are of
    classes only where each image has exactly one.
    """
    places = [place for place in further if not _is_beside(header[place], place, lines)]
    said = {place: {row[place].strip().casefold() for _, row in lines} for place in places}
    found = [place for place in places if said[place] <= OF_IT | NOT_OF_IT]
    values = {value for place in found for value in said[place]}
    tells = len(found) > 1 and bool(values & OF_IT) and bool(values & NOT_OF_IT)
    return found if tells and (found == places or _are_exact(lines, found)) else []


def _is_beside(called: str, place: int, lines: Lines) -> bool:
    counts = all(row[place].strip() in {str(at), str(at + 1)} for at, (_, row) in enumerate(lines))
    is_split = called.startswith("is_") and split_word(called.removeprefix("is_")) is not None
    return called in IDS or is_split or (may_count_rows(called) and counts)


def _number_and_name(header: Sequence[str], found: Sequence[int]) -> list[int]:
    """Of two columns of a class that which may number it, where the other names it; else both."""
    others = [place for place in found if header[place] not in NAMES]
    return others if len(others) == 1 == len(found) - 1 else list(found)


def _beside(header: Sequence[str], places: Mapping[str, int]) -> int | None:
    """The column that names what another one numbers."""
    found = [place for place, called in enumerate(header) if called in NAMES and place != places["class"]]
    return found[0] if found else None


def _are_exact(lines: Lines, classes: Collection[int]) -> bool:
    return all(sum(row[place].strip().casefold() in OF_IT for place in classes) == 1 for _, row in lines)


def _require_names(lines: Lines, number: int, called: int, name: str) -> list[str]:
    """The names of classes that are numbered beside, in the order of the numbers where these are numbers.

    Raises:
        Refused: a class has two names, or a name two classes.
    """
    pairs = dict.fromkeys((_whole(row[number]), tidy(row[called])) for _, row in lines)
    pairs.pop(("", ""), None)
    numbers, names = {one for one, _ in pairs}, {sameness(other) for _, other in pairs}
    if not len(pairs) == len(numbers) == len(names) or "" in numbers | names:
        raise Refused(
            name,
            "tells the class in two columns that do not go together one to one; keep the one that counts",
        )
    are_numbered = all(one.isascii() and one.isdigit() for one in numbers)
    return [other for _, other in sorted(pairs, key=lambda pair: int(pair[0]))] if are_numbered else []


def _whole(text: str) -> str:
    found = _FLOAT.fullmatch(text.strip())
    return found[1] if found else text.strip()


def _without_points(lines: Lines, place: int) -> Lines:
    """The same, with classes as whole numbers where all of them are written as 1.0."""
    said = {row[place].strip() for _, row in lines} - {""}
    if not said or not all(_FLOAT.fullmatch(one) for one in said):
        return lines
    return [(line, [*row[:place], _whole(row[place]), *row[place + 1 :]]) for line, row in lines]


def _only_class(row: Sequence[str], classes: dict[int, str], name: str, line: int) -> str:
    found = [called for place, called in classes.items() if row[place].strip().casefold() in OF_IT]
    if len(found) > 1:
        raise Refused(name, f"has an image of the classes {in_a_row(found)} at once in line {line}")
    return found[0] if found else ""


def _row(places: dict[str, int], values: Sequence[str], *, name: str, line: int) -> Row:
    cells = {column: unguarded(values[place].strip()) for column, place in places.items()}
    said = cells.get("split", "")
    split = split_word(said) if said else None
    if said and split is None:
        raise Refused(name, f'has a split other than "train" and "test" in line {line}')
    class_name = tidy(cells.get("class", "")) or None
    if class_name is not None and len(class_name) > MAX_CLASS_NAME_LENGTH:
        raise Refused(
            name, f"has a class name of more than {MAX_CLASS_NAME_LENGTH} characters in line {line}"
        )
    # It is looked for in the zip alone, so the disk where it once lay does not matter.
    filename = _DISK.sub("", cells["filename"].replace("\\", "/"))
    return Row(line, checked_path(filename), class_name, split)


def _require_some(rows: Sequence[Row], name: str) -> None:
    if not rows:
        raise Refused(name, "names no files")
    if len(rows) > MAX_EXAMPLES:
        raise Refused(name, f"names {len(rows)} files; at most {MAX_EXAMPLES} are taken")


def _of_lines(text: str, name: str) -> Table:
    """A table as an object a line."""
    objects = [(number, _object(line, name, number)) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, entry) for number, entry in objects if entry is not None]
    written: dict[str, str] = {}  # by what we call them
    for number, entry in lines:
        for key in entry:
            if written.setdefault(column_name(key, KNOWN), key) != key:
                both = f"{written[column_name(key, KNOWN)]!r:.80} and {key!r:.80}"
                raise Refused(name, f"has the same key twice: {both} in line {number}")
    header = list(written)
    places = _places(header, name)
    beside = _beside(header, places) if "class" in places else None
    read = {*places.values(), beside}
    texts = [
        (
            number,
            [
                _text_in(entry.get(key), name, number, key) if at in read else ""
                for at, key in enumerate(written.values())
            ],
        )
        for number, entry in lines
    ]
    named = []
    if beside is not None:
        named = _require_names(texts, places["class"], beside, name)
        places["class"] = beside
    rows = [_row(places, values, name=name, line=number) for number, values in texts]
    _require_some(rows, name)
    unread = [key for at, key in enumerate(written.values()) if at not in places.values()]
    columns = {key: [str(entry.get(key, "")) for _, entry in lines] for key in unread}
    told = _answers_told(columns, name)
    return Table(name, rows, "class" in places, unread, told, named, has_ids=_has_ids(header))


def _object(line: str, name: str, number: int) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        entry = json_of(line, keys_once=True)
    except ValueError as error:
        told = ": a key is there twice" if isinstance(error, KeyTwice) else ""
        raise Refused(name, f"has a line {number} that is no JSON{told}") from error
    if not isinstance(entry, dict):
        raise Refused(name, f"has a line {number} that is no JSON object")
    return entry


def _text_in(value: object, name: str, line: int, key: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        told = (
            f"says {json.dumps(value)[:40]} of {key!r:.40} in line {line}; expected a text or a whole number"
        )
        raise Refused(name, told)
    return str(value)
