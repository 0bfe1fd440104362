"""`python -m worker.trainer PARENT [TRIAL CLAIM PIPE LOG]...`: train claimed trials in their own process.

`--part` and the three words of a `Place` before them make it one of the other processes of a run in several.

The process ties its life to its supervisor before it imports anything slow.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from worker.local.processes import Orphaned, die_with_parent
from worker.trainer.exits import Exit
from worker.trainer.given import PART, Given

LOOK_S = 1.0


class StopFlag:
    """Set by SIGTERM; asked before every step of the training."""

    def __init__(self) -> None:
        self._is_set = False

    def __call__(self) -> bool:
        """Whether we were asked to stop."""
        return self._is_set

    def set(self, _number: int, _frame: FrameType | None) -> None:
        """A signal handler."""
        self._is_set = True


def watch_parent(parent: int) -> None:
    """End this process when its parent is another one than at the start.

    The kernel does it at once on Linux; this is for what the kernel does not know.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os._exit(Exit.ORPHANED)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()


def main(parent: int, given: Sequence[Given], place: Sequence[str] = ()) -> Exit:
    """Train; gives the exit code. `place` are the words of a Place, none for the first process."""
    try:
        die_with_parent(parent)
    except Orphaned:
        return Exit.ORPHANED
    watch_parent(parent)

    # Only now what takes seconds: until here a lost parent would have gone unnoticed.
    try:
        from worker.trainer.others import OtherEnded, Place  # noqa: PLC0415
        from worker.trainer.part import train_part  # noqa: PLC0415
        from worker.trainer.together import train_claimed  # noqa: PLC0415
    except (ImportError, OSError) as error:  # a package or one of its libraries is gone or broken
        traceback.print_exc()
        for each in given:
            each.teller.say(f"The worker's program is not whole: {error}.")
        return Exit.MACHINE

    # From here on there may be something to save; before, SIGTERM simply ends the process.
    asked_to_stop = StopFlag()
    signal.signal(signal.SIGTERM, asked_to_stop.set)
    if place:
        return train_part(given[0], Place.of(place), should_stop=asked_to_stop)
    try:
        return train_claimed(given, should_stop=asked_to_stop)
    except OtherEnded as ended:
        ended.follow()


if __name__ == "__main__":
    words = sys.argv[2:]
    place = words[1:4] if words[0] == PART else []
    code = main(int(sys.argv[1]), Given.all_of(words[4:] if place else words), place)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk; the end of the trial is in the database
            stream.flush()
    os._exit(code)  # all is written; to take torch apart would take a second more
