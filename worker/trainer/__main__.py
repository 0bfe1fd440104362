"""`python -m worker.trainer TRIAL CLAIM PARENT`: train one claimed trial, in a process of its own.

The process ties its life to its supervisor before it imports anything slow.
"""

import os
import signal
import sys
import threading
import time
from types import FrameType
from uuid import UUID

from worker.local.processes import Orphaned, die_with_parent
from worker.trainer.exits import Exit

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


def main(trial_id: UUID, claim_number: int, parent: int) -> Exit:
    """Train; gives the exit code."""
    try:
        die_with_parent(parent)
    except Orphaned:
        return Exit.ORPHANED
    watch_parent(parent)

    # Only now what takes seconds: until here a lost parent would have gone unnoticed.
    from worker.trainer.training import train_claimed  # noqa: PLC0415

    # From here on there may be something to save; before, SIGTERM simply ends the process.
    asked_to_stop = StopFlag()
    signal.signal(signal.SIGTERM, asked_to_stop.set)
    return train_claimed(trial_id, claim_number, should_stop=asked_to_stop)


if __name__ == "__main__":
    sys.exit(main(UUID(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
