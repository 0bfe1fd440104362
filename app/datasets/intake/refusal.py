"""The one way in which the intake says no."""

SHOWN_LENGTH = 120


def shown(name: str) -> str:
    """A name from a stranger's file, fit for a sentence: printable, and not longer than a line."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return clean if len(clean) <= SHOWN_LENGTH else f"{clean[: SHOWN_LENGTH - 1]}\N{HORIZONTAL ELLIPSIS}"


class Refused(Exception):
    """A file cannot be imported; the message is a sentence that says which file and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'"{shown(name)}" {why}.')
