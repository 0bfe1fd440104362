"""The columns of a table of labels, for the library: each is understood, told of, or refused."""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clarinet.files.columns import FILENAMES, HANDED_OUT, IDS, OURS, PICTURES
from clarinet.files.names import in_a_row
from clarinet.files.tables import BadTable, TextTable, Unread, quoted, text_of, unread_columns
from clarinet.recipes.errors import ColumnsLeftOut, DataError

NAMES = ("class_name", "label_name")  # of columns that name classes, whatever they look like
CLASSES = (*NAMES, "class_index", "label", "class")
ANSWERS = ("kind", "answer", "value")
KNOWN = frozenset({*FILENAMES, *PICTURES, *IDS, *CLASSES, *ANSWERS, *OURS, "position", "weight"})


def label_table(path: Path, ignored: Sequence[str] = ()) -> TextTable:
    """A table of labels, of which the first line was read, without the columns to leave out.

    Raises:
        DataError: it is no text, or has a column twice; or one that is to be left out is not there.
    """
    try:
        return TextTable.of(text_of(path.read_bytes()), known=KNOWN, ignored=ignored)
    except BadTable as bad:
        raise DataError(f"{path} {bad.why}") from bad


def records_of(path: Path, table: TextTable) -> Iterator[tuple[int, dict[str, str]]]:
    """The line's number and the cells by column of each line.

    Raises:
        DataError: a line that has more cells than there are columns, or is no CSV.
    """
    try:
        for line, row in table.rows():
            if len(row) > len(table.names):
                told = f"has {len(row)} values, and its first line names {len(table.names)}"
                raise DataError(f"line {line} of {path} {told}")
            # What a short line leaves out is empty.
            cells = table.cells([*row, *[""] * (len(table.names) - len(row))])
            yield line, {name: cell.strip() for name, cell in cells.items()}
    except BadTable as bad:
        raise DataError(f"{path} {bad.why}") from bad


def unread_in(path: Path, table: TextTable, used: Collection[str], *, is_answered: bool = True) -> list[str]:
    """The columns that nobody reads, to be told of; not those that the application hands out.

    Raises:
        DataError: one of them says yes or no, or has no name; or where no column `is_answered`, one may say
            so in words of its own.
    """
    try:
        columns = table.unread(used, OURS, judges=None if is_answered else KNOWN)
        return [column.shown for column in columns if not column.is_ours]
    except BadTable as bad:
        raise DataError(f"{path} {bad.why}") from bad


def tell_unread(path: Path, unread: Sequence[str]) -> None:
    """Warn of columns, or keys, that nobody reads."""
    if unread:
        verb = "column is" if len(unread) == 1 else "columns are"
        warnings.warn(f"{path}: the {verb} not read: {', '.join(unread)}", ColumnsLeftOut, stacklevel=2)


def only_one(path: Path, columns: Collection[str], names: Sequence[str], what: str) -> str | None:
    """The column of those names that there is, or None.

    Raises:
        DataError: there are several.
    """
    found = [name for name in names if name in columns]
    if len(found) > 1:
        raise DataError(
            f"{path} has the columns {in_a_row(found)}, which could both be {what}; keep the one that is"
        )
    return found[0] if found else None


@dataclass(slots=True)
class Keys:
    """The keys of JSON lines that nobody reads, with what they say; as columns are judged."""

    used: Collection[str]
    ignored: Collection[str] = ()
    _said: dict[str, Unread] = field(default_factory=dict)
    _there: set[str] = field(default_factory=set)
    _row: int = 0

    def add(self, entry: Mapping[str, Any]) -> None:
        """A further line."""
        self._there |= entry.keys() & set(self.ignored)
        for key in entry.keys() - set(self.used) - set(self.ignored):
            value = entry[key]
            text = "" if value is None else str(value) if isinstance(value, str | int | float) else "..."
            self._said.setdefault(key, Unread(key, key, HANDED_OUT.get(key))).add(text, self._row)
        self._row += 1

    def unread_in(self, path: Path) -> list[str]:
        """As the function of this name gives a table's columns; raises DataError alike."""
        if gone := sorted(set(self.ignored) - self._there):
            raise DataError(f"{path} has no key {quoted(gone[0])} that could be left out")
        try:
            columns = unread_columns(dict(enumerate(self._said[key] for key in sorted(self._said))))
            return [column.shown for column in columns if not column.is_ours]
        except BadTable as bad:
            raise DataError(f"{path} {bad.why.replace('the column', 'the key')}") from bad
