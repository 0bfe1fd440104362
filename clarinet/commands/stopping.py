"""Ctrl-C and SIGTERM as a wish that training hears at its next step, with its checkpoint written."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended


@contextmanager
def stopping() -> Iterator[list[int]]:
    """A list that fills when somebody wants to stop: training then ends at its next step, and is kept."""
    asked: list[int] = []

    def ask(number: int, _frame: object) -> None:
        if asked:  # asked twice: at once
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
