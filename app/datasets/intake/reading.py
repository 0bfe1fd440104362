"""What every reader gives: how many pictures there will be, their classes, and the pictures one by one.

And what it lets through: how many, and which names that strangers gave.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from app.datasets.intake.limits import MAX_CLASS_NAME_LENGTH, MAX_CLASSES, MAX_EXAMPLES, MAX_NAME_LENGTH
from app.datasets.intake.shards import Incoming
from clarinet.files.names import as_listed, classes_in_order
from clarinet.files.pictures import Change
from clarinet.files.refusal import Refused


@dataclass(frozen=True, slots=True)
class Reading:
    """A file whose shape was checked; its pictures are decoded while one iterates, train split first."""

    total: int
    class_names: list[str] | None  # None: the data came without classes
    pictures: Iterator[Incoming | Refused]  # or why a file is none
    made: str | None = None  # how, where the file says that these are not the published images
    refused: Sequence[Refused] = ()  # files that have no place
    remarks: Sequence[str] = ()  # what the admin should know, in sentences without their full stop
    contradictions: Sequence[Refused] = ()  # images that are taken although something says another class
    changes: Counter[Change] = field(default_factory=Counter)  # of pictures, while one iterates


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
    parts = [part for part in name.rstrip("/").split("/") if part != "."]
    if any(part in ("", "..") for part in parts):
        raise Refused(name, "has a name that leaves its folder")
    return "/".join(parts) or "."


def checked_classes(names: Collection[str], source: str, *, listed: Sequence[str] = ()) -> list[str]:
    """The class names in label order: as listed, or else as `classes_in_order` gives them.

    Args:
        names: of the images' classes.
        source: what refusals call their origin.
        listed: classes that a file lists in their order; it counts where it has all of these.

    Raises:
        Refused: too many, too long, or what `classes_in_order` refuses.
    """
    most = max(len(names), len(listed))
    if most > MAX_CLASSES:
        raise Refused(source, f"has {most} classes; at most {MAX_CLASSES} are taken")
    for name in (*names, *listed):
        if len(name) > MAX_CLASS_NAME_LENGTH:
            raise Refused(name, f"is a class name of more than {MAX_CLASS_NAME_LENGTH} characters")
    return as_listed(names, listed) or classes_in_order(names)
