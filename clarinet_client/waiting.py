"""Looking at a row until it is as wanted."""

import time
from collections.abc import Callable
from typing import TypeVar

from clarinet_client.errors import TookTooLong

T = TypeVar("T")
EVERY_S = 0.5


def look_until(
    look: Callable[[], T],
    is_so: Callable[[T], bool],
    *,
    what: str,
    on_look: Callable[[T], None] | None,
    timeout_s: float | None,
) -> T:
    """The row once it is so.

    Args:
        look: gives the row as it stands now.
        is_so: whether the wait is over.
        what: is waited for, for the error.
        on_look: is told the row each time, twice a second.
        timeout_s: for how long; None: without an end.

    Raises:
        TookTooLong: it was not so in time.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        row = look()
        if on_look:
            on_look(row)
        if is_so(row):
            return row
        if deadline is not None and time.monotonic() + EVERY_S > deadline:
            raise TookTooLong(f"{what} is not there after {timeout_s:g} s. The server goes on with it.")
        time.sleep(EVERY_S)
