"""Whose fault it is that a trial did not go on, and how often others try it when it was not its own."""

import enum
from collections.abc import Sequence
from datetime import timedelta

MAX_SETBACKS = 6  # a trial that no machine can train must end some day
FIRST_PAUSE = timedelta(seconds=15)


class Fault(enum.StrEnum):
    """Whose fault it is."""

    RUN = "run"  # its configuration or data, or it diverged: it would happen anywhere
    MACHINE = "machine"  # disk, folder, memory, device or program of the worker that had it
    PASSING = "passing"  # the database, or the store of images and models, was away for long


WORDS = {
    Fault.RUN: "by its own settings or data",
    Fault.MACHINE: "by the machines that tried it",
    Fault.PASSING: "by something that passes",
}


def pause_after(setbacks: int) -> timedelta:
    """How long a trial rests after so many setbacks, at least one: twice as long each time."""
    return FIRST_PAUSE * (1 << (setbacks - 1))


def last_words(reason: str, workers: Sequence[str]) -> str:
    """Why a trial ends that was set back too often."""
    where = "one worker" if len(workers) == 1 else f"{len(workers)} workers"
    return f"{reason}\nIt was tried {MAX_SETBACKS} times, on {where}. Mend that, then try it again."
