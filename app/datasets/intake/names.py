"""Names that strangers gave: what they may be, and how they sort."""

import re
import unicodedata

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_CLASSES, MAX_NAME_LENGTH
from app.datasets.intake.refusal import Refused

NUMBER = re.compile(r"(\d+)")


def checked_path(name: str) -> str:
    """A path inside an archive that stays inside, on every system.

    Raises:
        Refused: absolute, with a drive, with backslashes, with `..`, too long, or with control characters.
    """
    if len(name) > MAX_NAME_LENGTH:
        raise Refused(name, f"has a name of more than {MAX_NAME_LENGTH} characters")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        raise Refused(name, "has control characters in its name")
    if "\\" in name:
        raise Refused(name, "has a backslash in its name; folders must be parted by /")
    if name.startswith("/") or name[1:2] == ":":
        raise Refused(name, "has an absolute path for a name")
    parts = name.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise Refused(name, "has a name that leaves its folder")
    return "/".join(parts)


def sameness(path: str) -> str:
    """Equal for names that some file system takes for the same: case and composed accents do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def natural(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key in which 2 comes before 10."""
    pieces = [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in NUMBER.split(text)]
    return pieces, text


def checked_classes(names: set[str], source: str) -> list[str]:
    """The class names in label order: numbers by value, words by the alphabet.

    Raises:
        Refused: too many, too long, or two that look the same.
    """
    if len(names) > MAX_CLASSES:
        raise Refused(source, f"has {len(names)} classes; at most {MAX_CLASSES} are taken")
    seen: dict[str, str] = {}
    for name in sorted(names, key=natural):
        if len(name) > MAX_CLASS_NAME_LENGTH:
            raise Refused(name, f"is a class name of more than {MAX_CLASS_NAME_LENGTH} characters")
        if any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
            raise Refused(name, "is a class name with control characters")
        other = seen.setdefault(sameness(name), name)
        if other != name:
            raise Refused(name, f'is a class name that differs from "{other}" only in upper and lower case')
    return sorted(names, key=natural)
