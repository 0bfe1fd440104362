"""The one way in which a file is not taken."""

from collections.abc import Sequence
from pathlib import Path

from clarinet.recipes.errors import DataError

SHOWN_LENGTH = 120


def shown(name: str) -> str:
    """A name from a stranger's file, fit for a sentence: printable, and not longer than a line."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return clean if len(clean) <= SHOWN_LENGTH else f"{clean[: SHOWN_LENGTH - 1]}\N{HORIZONTAL ELLIPSIS}"


MOST_NAMED = 100  # files


class Refused(DataError):
    """A file that is not taken; the message is a sentence that says which file and why.

    Args:
        name: what a stranger calls it; or a path on this machine, which is told whole.
        why: continues the sentence.
    """

    def __init__(self, name: str | Path, why: str) -> None:
        self.name = shown(name) if isinstance(name, str) else str(name)
        self.why = why
        super().__init__(f'"{self.name}" {why}.')


class ManyRefused(DataError):
    """Several files that are not taken, each with its reason; the message names at most MOST_NAMED."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        self.refused = refused
        named = [str(one) for one in refused[:MOST_NAMED]]
        more = len(refused) - len(named)
        listed = "\n".join([*named, *([f"And {more:,} more."] if more else [])])
        super().__init__(f"{len(refused):,} files are not taken:\n{listed}")


def require_none(refused: Sequence[Refused]) -> None:
    """Raises Refused of the one file that was refused, or ManyRefused of several."""
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise ManyRefused(refused)
