"""What an upload that must be refused consists of."""

from collections.abc import Callable
from typing import NamedTuple

NAME = "upload.bin"
CUT = f"is cut short or damaged inside {NAME}."


class Hostile(NamedTuple):
    """An upload that must be refused."""

    make: Callable[[], bytes]
    sentence: str
    table: bytes | None = None
