"""What every reader gives: how many pictures there will be, their classes, and the pictures one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.datasets.intake.limits import MAX_EXAMPLES
from app.datasets.intake.shards import Incoming
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
