"""The one way in which a file is not taken."""

from pathlib import Path

from clarinet.recipes.errors import DataError

SHOWN_LENGTH = 120


def shown(name: str) -> str:
    """A name from a stranger's file, fit for a sentence: printable, and not longer than a line."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return clean if len(clean) <= SHOWN_LENGTH else f"{clean[: SHOWN_LENGTH - 1]}\N{HORIZONTAL ELLIPSIS}"


class Refused(DataError):
    """A file that is not taken; the message is a sentence that says which file and why.

    Args:
        name: what a stranger calls it; or a path on this machine, which is told whole.
        why: continues the sentence.
    """

    def __init__(self, name: str | Path, why: str) -> None:
        super().__init__(f'"{shown(name) if isinstance(name, str) else name}" {why}.')
