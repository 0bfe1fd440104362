"""Going on while the database does not answer: a training of hours must survive a pause of minutes."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from worker.beats import silently

Result = TypeVar("Result")
OUTAGES = (OperationalError, InterfaceError, PoolTimeout)
# As long as this a process works on without its database; every write is fenced, so it can do no harm.
PATIENCE_S = 600.0
LONGEST_PAUSE_S = 15.0

log = structlog.get_logger()


def keep_trying(
    step: Callable[[], Result], *, patience_s: float = PATIENCE_S, beat: Callable[[], None] = silently
) -> Result:
    """Do a step, again and again while the database is away.

    Args:
        step: one transaction; safe to repeat.
        patience_s: after this many seconds the outage is raised.
        beat: called before each try: who waits for a database does not stall.
    """
    started, pause = time.monotonic(), 0.2
    while True:
        beat()
        try:
            return step()
        except OUTAGES as error:
            if time.monotonic() - started > patience_s:
                raise
            log.warning("database.away", error=type(error).__name__)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
