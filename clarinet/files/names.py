"""Names of files and classes: when two are one, how they sort, which of one list is which of another."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from clarinet.files.refusal import Refused
from clarinet.recipes.errors import DataError

NO_LABEL = -1
_NUMBER = re.compile(r"(\d+)")
_UNSEEN = "upper and lower case, accents, spaces or invisible characters"


def same_path(path: str) -> str:
    """Equal for paths that some file system takes for one: case and composed accents do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def sameness(name: str) -> str:
    """Equal for names that people take for one.

    Case, accents composed or apart, the number of spaces and invisible characters do not count.
    """
    seen = "".join(c for c in same_path(name) if unicodedata.category(c) != "Cf")
    return " ".join(seen.split())


def plain_number(digits: str) -> str:
    """A whole number of any length and script as 0 to 9 write it, without zeros in front.

    Python makes no number of more than 4,300 digits.
    """
    return "".join(str(unicodedata.decimal(digit)) for digit in digits).lstrip("0") or "0"


def natural(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key in which 2 comes before 10."""

    def key(piece: str) -> tuple[int, int, str]:
        if not piece.isdecimal():
            return 1, 0, piece
        number = plain_number(piece)
        return 0, len(number), number

    return [key(piece) for piece in _NUMBER.split(text)], text


def require_distinct_paths(paths: Iterable[str]) -> None:
    """Raises Refused where two paths would be one file on some system."""
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(same_path(path), path)
        if other != path:
            raise Refused(path, f'has the same name as "{other}" but for upper and lower case or accents')


def classes_in_order(names: Collection[str]) -> list[str]:
    """Distinct class names in the order that counts them: numbers by value, words by the alphabet.

    Raises:
        Refused: one that nobody could read or type, or two that people take for one.
    """
    in_order = sorted(names, key=natural)
    seen: dict[str, str] = {}
    for name in in_order:
        kinds = {unicodedata.category(c) for c in name}
        if "Cs" in kinds:  # what Python makes of other bytes
            raise Refused(name, "is a class whose name is not in UTF-8; rename it")
        if "Cc" in kinds:
            raise Refused(name, "is a class name with control characters")
        other = seen.setdefault(sameness(name), name)
        if other != name:
            raise Refused(name, f'is the same class name as "{other}" but for {_UNSEEN}')
    return in_order


def require_distinct_classes(owner: object, names: Sequence[str]) -> None:
    """Raises DataError, which names the owner, where two of its classes are one."""
    if len({sameness(name) for name in names}) < len(names):
        raise DataError(f"{owner} has the classes {', '.join(names)}, of which two are the same")


def numbers_among(class_names: Sequence[str], own: Iterable[str]) -> list[int]:
    """The number that each of one's own classes has among those named, or NO_LABEL.

    The very name goes before another spelling of it, so that lists in which two spellings are two classes,
    as older data sets have them, still find each. A spelling that could mean either means none.
    """
    exact = {name: number for number, name in enumerate(class_names)}
    alike: dict[str, int] = {}
    for number, name in enumerate(class_names):
        alike[sameness(name)] = NO_LABEL if sameness(name) in alike else number
    return [exact.get(name, alike.get(sameness(name), NO_LABEL)) for name in own]


def share_no_class(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of class names have none in common; numbers are no names, and share all there are."""
    if any(not names or all(name.isdecimal() for name in names) for names in (one, other)):
        return False
    return all(number == NO_LABEL for number in numbers_among(one, other))
