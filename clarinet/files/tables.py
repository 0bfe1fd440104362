"""Tables as spreadsheets write and read them: separators, columns, cells that are no formulas."""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from clarinet.files.columns import BESIDE_LABELS, NEARLY, may_count_rows
from clarinet.files.names import in_a_row, sameness
from clarinet.files.refusal import shown
from clarinet.files.yes_no import Sayings

# A spreadsheet takes a cell that starts so for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
SEPARATORS = (",", ";", "\t")
_SAID_SEPARATOR = re.compile(r"\s*\"?sep=(.)\"?[^\n]*\n")  # the first line that a spreadsheet takes and hides
_JOINTS = re.compile(r"[\s\-._]+")
MAX_COLUMNS = 1_000
TAKE_OUT = "take it out of the file, or name it in ignore_columns"
_SHOWN = 40  # characters of a column's name
Types = Mapping[str, re.Pattern[str]]
NONE_OURS: Types = {}


class BadTable(Exception):
    """A table that is not taken; `why` continues a sentence about it, without a full stop."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class BrokenLine(BadTable):
    """What follows a line is no CSV."""

    def __init__(self, line: int) -> None:
        super().__init__(f"has a line {line} that is no CSV")
        self.line = line


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could start one gets an apostrophe in front."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def unguarded(cell: str) -> str:
    """A cell without that apostrophe."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def text_of(data: bytes) -> str:
    """The text of a table: UTF-8, or UTF-16 with its mark, which spreadsheets call Unicode text.

    Raises:
        BadTable: another encoding; it says what to do.
    """
    is_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if is_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTable("is not in UTF-8; save it as “CSV UTF-8”") from error


def column_name(written: str, known: frozenset[str] = frozenset()) -> str:
    """What a column is called, whatever its case, spaces, hyphens and points; as `known` spells it."""
    plain = _JOINTS.sub("_", sameness(written)).strip("_")
    return plain if plain in known else _without_joints(known).get(plain.replace("_", ""), plain)


@lru_cache
def _without_joints(known: frozenset[str]) -> dict[str, str]:
    return {name.replace("_", ""): name for name in sorted(known, reverse=True)}


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text, of which the first line names the columns.

    Args:
        names: of the columns, as `column_name` gives them; "" where one has none.
        written: as they stand there.
        ignored: places of those that somebody wants left out; they have no name here, too.
    """

    names: Sequence[str]
    written: Sequence[str]
    _text: str
    _separator: str
    _lines_before: int
    ignored: frozenset[int] = field(default=frozenset())

    @classmethod
    def of(cls, text: str, *, known: frozenset[str], ignored: Sequence[str] = ()) -> "TextTable":
        """Read the first line.

        Args:
            text: of the table.
            known: names of columns, by which the separator shows itself.
            ignored: those that are left out, whatever they say.

        Raises:
            BadTable: a column is there twice, or there are too many, or one that is left out is not there.
        """
        said = _SAID_SEPARATOR.match(text)
        body = text[said.end() :] if said else text
        separators = [said[1]] if said else SEPARATORS
        headers = {separator: _header(body, separator) for separator in separators}

        def fits(separator: str) -> tuple[int, int]:
            cells = headers[separator]
            return sum(column_name(cell, known) in known for cell in cells[:MAX_COLUMNS]), len(cells)

        separator = max(separators, key=fits)
        written = headers[separator]
        if len(written) > MAX_COLUMNS:
            raise BadTable(f"has {len(written):,} columns; at most {MAX_COLUMNS:,} are taken")
        left_out = _places_of(ignored, written, known)
        names = ["" if at in left_out else column_name(cell, known) for at, cell in enumerate(written)]
        for place, name in enumerate(names):
            first = names.index(name)
            if name and first < place:
                alike = [quoted(written[first]), quoted(written[place])]
                told = alike[0] if alike[0] == alike[1] else " and ".join(alike)
                raise BadTable(f"has the same column twice: {told}. Keep the one that counts")
        lines_before = text[: said.end()].count("\n") if said else 0
        return cls(names, written, body, separator, lines_before, left_out)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The line's number and the cells of each row that is not empty: one a column, or more, or fewer.

        Raises:
            BrokenLine: what follows is no CSV.
        """
        reader = csv.reader(io.StringIO(self._text, newline=""), delimiter=self._separator, strict=True)
        is_first = True
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if is_first:
                    is_first = False
                    continue
                while len(cells) > len(self.names) and not cells[-1].strip():
                    cells.pop()
                yield self._lines_before + reader.line_num, cells
        except csv.Error as error:
            raise BrokenLine(self._lines_before + reader.line_num) from error

    def cells(self, row: Sequence[str]) -> dict[str, str]:
        """The cells of a row by column, of those that have names."""
        return {name: cell for name, cell in zip(self.names, row, strict=False) if name}

    def unread(
        self, used: Collection[str], ours: Types = NONE_OURS, *, judges: Collection[str] | None = None
    ) -> "list[Unread]":
        """The columns that are not among those used; all of what they say is looked at.

        Args:
            used: names of those that are read.
            ours: what the cells of those are like that we hand out ourselves.
            judges: of a table of labels that is to have no answer in an unknown column, the names that are
                known; None where another column answers.

        Raises:
            BadTable: one of them says yes or no, which could turn around what the others say, or may say so
                in other words; or one has values and no name, and does not just count the rows.
        """
        others = [
            place for place, name in enumerate(self.names) if name not in used and place not in self.ignored
        ]
        said = {
            place: Unread(self.written[place], self.names[place], ours.get(self.names[place]))
            for place in others
        }
        for number, (_, row) in enumerate(self.rows()):
            for place in others:
                if place < len(row):
                    said[place].add(row[place], number)
        found = unread_columns(said)
        if judges is not None:
            _refuse_judging(found, BESIDE_LABELS.union(judges))
        return found


@dataclass(slots=True)
class Unread:
    """A column that nobody reads, cell by cell.

    Args:
        written: its name as it stands there.
        name: as `column_name` gives it.
        ours: what each cell of it is like where we have handed it out; None: it is none of ours.
    """

    written: str
    name: str
    ours: re.Pattern[str] | None = None
    said: Sayings = field(default_factory=Sayings)
    other: str = ""  # the first that is not so

    def add(self, text: str, row: int) -> None:
        """A further cell; `row` counts from 0."""
        self.said.add(text, row)
        if self.ours and not self.other and text.strip() and not self.ours.fullmatch(text.strip()):
            self.other = text.strip()

    @property
    def is_ours(self) -> bool:
        """Whether we may have handed it out: then it answers nothing."""
        return self.ours is not None and not self.other

    @property
    def shown(self) -> str:
        """Its name in a sentence."""
        return shown(self.written.strip())[:_SHOWN]

    @property
    def example(self) -> str:
        """What it says where it may answer something; "" where it does not."""
        if self.is_ours or (may_count_rows(self.name) and self.said.in_order):
            return ""
        if self.said.answer:
            return self.said.example
        return self.other if self.name in NEARLY else ""


def unread_columns(said: Mapping[int, Unread]) -> list[Unread]:
    """Columns that nobody reads and that say something; see `TextTable.unread`."""
    for place, column in said.items():
        is_named = bool(column.written.strip())
        called = quoted(column.written) if is_named else f"number {place + 1}"
        if column.example:
            raise BadTable(
                f"says {quoted(column.example)} in the column {called}; call it answer if it tells whether "
                f"the picture is of the class, or else {TAKE_OUT if is_named else 'take it out'}"
            )
        if not is_named and column.said.filled and not column.said.in_order:
            raise BadTable(f"has values in the column {called} and no name for it in the first line")
    return [column for column in said.values() if column.said.filled and column.written.strip()]


def _refuse_judging(columns: Sequence[Unread], known: Collection[str]) -> None:
    """Raise BadTable of a column that may answer in words of its own: it has two or three values."""
    for column in columns:
        is_told = column.is_ours or (column.name in known and column.ours is None)
        counts = may_count_rows(column.name) and column.said.in_order
        if column.said.sides and not is_told and not counts:
            values = in_a_row([quoted(one) if one else "nothing" for one in column.said.sides])
            raise BadTable(
                f"has {values} in the column {quoted(column.written)} and nothing else, as a column has that "
                "tells whether the picture is of the class; call it answer, with yes and no, if it does, or "
                f"else {TAKE_OUT}"
            )


def quoted(text: str) -> str:
    """A stranger's word in a sentence."""
    return f"'{shown(text.strip())[:_SHOWN]}'"


def _places_of(ignored: Sequence[str], written: Sequence[str], known: frozenset[str]) -> frozenset[int]:
    """Where columns are that are left out: those of the very name, or else of the same one."""
    found: set[int] = set()
    for name in ignored:
        places = {at for at, cell in enumerate(written) if cell.strip() == name.strip()}
        places = places or {
            at for at, cell in enumerate(written) if column_name(cell, known) == column_name(name, known)
        }
        if not places:
            there = in_a_row([quoted(cell) for cell in written])
            raise BadTable(f"has no column {quoted(name)} that could be left out; it has {there}")
        found |= places
    return frozenset(found)


def _header(text: str, separator: str) -> list[str]:
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        found = next((row for row in reader if any(cell.strip() for cell in row)), [])
    except csv.Error:
        return []
    while len(found) > MAX_COLUMNS and not found[-1].strip():
        found.pop()
    return found
