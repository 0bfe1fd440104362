"""Names of files and classes: when two are one, how they sort, which of one list is which of another."""

import csv
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from clarinet.files.refusal import Refused
from clarinet.recipes.counting import is_or_are, many
from clarinet.recipes.errors import DataError

NO_LABEL = -1
_NUMBER = re.compile(r"(\d+)")
_UNSEEN = "upper and lower case, accents, spaces or invisible characters"
JOINERS = "\u200c\u200d"  # join or part letters and emoji: invisible, and nothing can be written without them
# Beyond the category Cf: what Unicode calls ignorable by default, and a blank letter of Braille.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
_SAID_AT_ONCE = 5  # names in a sentence


def same_path(path: str) -> str:
    """Equal for paths that some file system takes for one: case and composed accents do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def sameness(name: str) -> str:
    """Equal for names that people take for one.

    Case, accents composed or apart, the number of spaces and invisible characters do not count.
    """
    return " ".join("".join(c for c in same_path(name) if not _is_invisible(c)).split())


def tidy(name: str) -> str:
    """A class name as it is kept: composed (NFC), with single spaces, without what nobody can see.

    Characters that join letters stay where they stand between some. It is the same name as before, by
    `sameness`.
    """
    seen = "".join(c for c in unicodedata.normalize("NFC", name) if c in JOINERS or not _is_unneeded(c))
    return " ".join(seen.split()).strip(JOINERS)


def is_printable(text: str) -> bool:
    """Whether a text has only characters that can be shown; control characters forge log lines."""
    return all(c.isprintable() or c in JOINERS for c in text)


def _is_invisible(c: str) -> bool:
    return unicodedata.category(c) == "Cf" or bool(_INVISIBLE.match(c))


def _is_unneeded(c: str) -> bool:
    """Invisible, and no sign of how the one before it looks, as emoji have it."""
    return _is_invisible(c) and not "\ufe00" <= c <= "\ufe0f"


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


def alike_paths(paths: Iterable[str]) -> dict[str, Refused]:
    """Paths that some system takes for one that came before, each with why it is not taken."""
    seen: dict[str, str] = {}
    refused: dict[str, Refused] = {}
    for path in paths:
        other = seen.setdefault(same_path(path), path)
        if other != path:
            why = f'has the same name as "{other}" but for upper and lower case or accents'
            refused[path] = Refused(path, why)
    return refused


def classes_in_order(names: Collection[str]) -> list[str]:
    """Distinct class names, tidy, in the order that counts them: numbers by value, words by the alphabet.

    `numbers_among` finds each in it.

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
        if not sameness(name) or not is_printable(tidy(name)):
            raise Refused(name, "is a class name that nobody can read; rename it")
        other = seen.setdefault(sameness(name), name)
        if other != name:
            raise Refused(name, f'is the same class name as "{other}" but for {_UNSEEN}')
    return [tidy(name) for name in in_order]


def class_lines(text: str) -> list[str]:
    """Class names that somebody wrote one a line; empty lines say nothing."""
    return list(filter(None, map(str.strip, text.splitlines())))


def names_in_line(text: str) -> list[str]:
    """Names with commas between, as a line of a CSV: quotes hold one that has a comma."""
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def as_listed(names: Collection[str], listed: Sequence[str]) -> list[str] | None:
    """The classes of a list, tidy and in its order, if it has all of these and none twice; else None."""
    tidied = [tidy(name) for name in listed if sameness(name)]
    is_one = len({sameness(name) for name in tidied}) == len(tidied)
    if not is_one or NO_LABEL in numbers_among(tidied, names) or not all(map(is_printable, tidied)):
        return None
    return tidied


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


def class_numbers(
    given: Sequence[str],
    class_names: Sequence[str],
    *,
    are_names: bool = False,
    are_places: bool = False,
    first: int | None = None,
) -> list[int]:
    """The number of each class that a file gives: all of them are names, or all places.

    Where the classes are called by numbers, a number is a name unless somebody says that it is a place.

    Args:
        given: as the file writes them.
        class_names: those that they are about.
        are_names, are_places: which of both, where the file says so.
        first: the place of the first class, 0 or 1, where somebody said it; then numbers are places. Else
            they count from 0.

    Returns:
        NO_LABEL for one that is not there.

    Raises:
        DataError: both readings fit the whole file and differ; both are named. Or the numbers run to K, and
            none is 0: then they may count from 1.
    """
    names = numbers_by_name(class_names, given)
    can_be_places = not are_names and all(text.isascii() and text.isdigit() for text in given)
    places = [_place(text, len(class_names), first or 0) for text in given] if can_be_places else []
    if are_places or (can_be_places and (NO_LABEL in names or first is not None)):
        if first is None and can_be_places:
            require_counted_from_0(given, class_names)
        if not are_places and first is None and are_numbers(class_names):
            return names
        return places or [NO_LABEL] * len(given)
    if can_be_places and NO_LABEL not in places and names != places:
        odd = next(row for row, name in enumerate(names) if name != places[row])
        raise DataError(
            f"{given[odd]!r} can be read in two ways: as the class called {class_names[names[odd]]!r}, or "
            f"as the class at place {given[odd]} counted from 0, which is {class_names[places[odd]]!r}. Call "
            "the column class_name if the file names classes, or class_index if it counts them"
        )
    return names


def numbers_by_name(class_names: Sequence[str], given: Iterable[str]) -> list[int]:
    """As `numbers_among`; where all classes are called by numbers, also without the zeros in front.

    A spreadsheet makes 1 of 01. What could be several then is none.
    """
    given = list(given)
    found = numbers_among(class_names, given)
    if not are_numbers(class_names):
        return found
    plain: dict[str, int] = {}
    for number, name in enumerate(class_names):
        plain[plain_number(name)] = NO_LABEL if plain_number(name) in plain else number
    return [
        plain.get(plain_number(text), NO_LABEL) if number == NO_LABEL and text.isdecimal() else number
        for number, text in zip(found, given, strict=True)
    ]


def named_by_numbers_told(called: str, class_names: Sequence[str]) -> str:
    """How to say that a number which is no class's name is a place; continues a sentence."""
    if not (called.isdecimal() and are_numbers(class_names)):
        return ""
    return (
        f"; the classes are called by numbers ({in_a_row(class_names)}): if the file counts them instead, "
        "call the column class_index, or say first_class=0 or first_class=1"
    )


def _place(digits: str, count: int, first: int = 0) -> int:
    number = plain_number(digits)
    if len(number) > len(str(count)) or not first <= int(number) < count + first:
        return NO_LABEL
    return int(number) - first


def require_counted_from_0(given: Iterable[str], class_names: Sequence[str]) -> None:
    """Raises DataError where numbers of classes run from 1 to K, so that they seem to count from 1.

    Args:
        given: the numbers, as digits.
        class_names: K names.
    """
    count = len(class_names)
    found = {plain_number(text) for text in given}
    if "0" in found or str(count) not in found or any(len(one) > len(str(count)) for one in found):
        return
    if max(map(int, found)) > count:
        return
    low = min(map(int, found))
    run = f"run from {low} to {count}" if low < count else f"are all {count}"
    raise DataError(
        f"The numbers of classes {run}, and there are {count} classes. Counted from 1, "
        f"{low} is {class_names[low - 1]!r}; counted from 0, {low} is {_called(class_names, low)} and there "
        f"is no class {count}. Say first_class=1 or first_class=0, or give the names"
    )


def _called(class_names: Sequence[str], number: int) -> str:
    return repr(class_names[number]) if number < len(class_names) else "no class"


def require_count_said(given: Iterable[str], class_names: Sequence[str], *, are_places: bool = False) -> None:
    """Raises DataError where numbers of classes can count from 0 and from 1: none is 0, and all are below K.

    Those that reach K are `class_numbers`' to refuse. `are_places`: the file says that they are no names.
    """
    given = list(given)
    if not given or not all(text.isascii() and text.isdigit() for text in given):
        return
    are_names = are_numbers(class_names) or NO_LABEL not in numbers_among(class_names, given)
    found = {plain_number(text) for text in given}
    is_beyond = any(len(one) > len(str(len(class_names))) or int(one) >= len(class_names) for one in found)
    if (are_names and not are_places) or is_beyond or "0" in found:
        return
    low = min(map(int, found))
    raise DataError(
        f"No number of a class is 0, which can be read in two ways: counted from 0, {low} is "
        f"{_called(class_names, low)}; counted from 1, {low} is {class_names[low - 1]!r}. Say "
        "first_class=0 or first_class=1, or give the names"
    )


def strangers(
    class_names: Sequence[str],
    own: Sequence[str],
    counts: Sequence[int],
    *,
    total: int | None = None,
    whose: str = "campaign",
    image: str = "test image",
) -> str:
    """How many images are of classes that are none of those named, in a sentence; "" where there are none.

    Args:
        class_names: those that are told apart.
        own: classes of the images.
        counts: images of each of these.
        total: images, with those of no known class; None where there are none of these.
        whose: the former are: "campaign", "model".
        image: what one of them is called.
    """
    numbers = numbers_among(class_names, own)
    left = {name: n for name, n, k in zip(own, counts, numbers, strict=True) if n and k == NO_LABEL}
    if not left:
        return ""
    images = sum(left.values())
    of_all = f"of {many(sum(counts) if total is None else total, image)} {is_or_are(images)}"
    what = f"which is no class of this {whose}" if len(left) == 1 else f"which are no classes of this {whose}"
    return f"{images:,} {of_all} of {in_a_row(list(left))}, {what}"


def in_a_row(names: Sequence[str]) -> str:
    """Names in a sentence: "a, b and c", or the first of many."""
    shown = list(names[:_SAID_AT_ONCE])
    if len(names) > _SAID_AT_ONCE:
        shown.append(f"{len(names) - _SAID_AT_ONCE:,} more")
    return " and ".join([part for part in (", ".join(shown[:-1]), shown[-1]) if part])


def are_numbers(names: Collection[str]) -> bool:
    """Whether class names are mere numbers, as an npz has them that names none: they tell people nothing."""
    return bool(names) and all(name.isdecimal() for name in names)


def share_no_class(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of class names have none in common; numbers are no names, and share all there are."""
    if any(not names or are_numbers(names) for names in (one, other)):
        return False
    return all(number == NO_LABEL for number in numbers_among(one, other))
