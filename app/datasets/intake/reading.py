"""What every reader gives: how many pictures there will be, their classes, and the pictures one by one.

And what it lets through: how many, and which names that strangers gave.
"""

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_CLASSES, MAX_EXAMPLES, MAX_NAME_LENGTH
from app.datasets.intake.shards import Incoming
from clarinet.files.names import classes_in_order
from clarinet.files.refusal import Refused


@dataclass(frozen=True, slots=True)
class Reading:
    """A file whose shape was checked; its pictures are decoded while one iterates, train split first."""

    total: int
    class_names: list[str] | None  # None: the data came without classes
    pictures: Iterator[Incoming]
    made: str | None = None  # how, where the file says that these are not the published images


def check_total(total: int, name: str) -> None:
    """Raises Refused if there is no picture, or more than MAX_EXAMPLES."""
    if total == 0:
        raise Refused(name, "holds no images")
    if total > MAX_EXAMPLES:
        raise Refused(name, f"holds {total} images; at most {MAX_EXAMPLES} are taken")


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


def checked_classes(names: Collection[str], source: str) -> list[str]:
    """The class names in label order, as `classes_in_order` gives them.

    Raises:
        Refused: too many, too long, or what `classes_in_order` refuses.
    """
    if len(names) > MAX_CLASSES:
        raise Refused(source, f"has {len(names)} classes; at most {MAX_CLASSES} are taken")
    for name in names:
        if len(name) > MAX_CLASS_NAME_LENGTH:
            raise Refused(name, f"is a class name of more than {MAX_CLASS_NAME_LENGTH} characters")
    return classes_in_order(names)
