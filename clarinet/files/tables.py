"""Tables as spreadsheets write and read them: separators, columns, cells that are no formulas."""

import csv
from collections.abc import Iterable

# A spreadsheet takes a cell that starts so for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could start one gets an apostrophe in front."""
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def unguarded(cell: str) -> str:
    """A cell without that apostrophe."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def separator_of(text: str) -> str:
    """What parts the columns of a table: a tab, a semicolon or a comma, by its first line."""
    first = text.lstrip("\ufeff\r\n").split("\n", maxsplit=1)[0]
    return max(",;\t", key=first.count)


def csv_rows(file: Iterable[str], *, separator: str = ",") -> "csv.DictReader[str]":
    """The rows of a CSV by its columns, whose names are taken without case and spaces around them."""
    reader = csv.DictReader(file, delimiter=separator, strict=True)
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    return reader
