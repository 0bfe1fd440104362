"""The one place that tells the time, so that rules take it as an argument. The time is the database's.

Hosts whose clocks differ would take each other's work: a claim ends when its holder says, and whoever reads
that compares it with a time of his own. So each process measures once in a while what the database's clock
says (`app.database_clock`), and counts on from there by a clock that nobody sets. Before its first
measurement, and without a database, it has its host's time.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

SLACK_S = 0.05  # within this the clocks agree: a measurement is no better
WORTH_TELLING_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Start:
    """A moment, and what the counting clock said at it."""

    moment: datetime
    counted_s: float


_start: _Start | None = None


def host_now() -> datetime:
    """What this host's clock says; only measurements and logs may ask it."""
    return datetime.now(UTC)


def counted_s() -> float:
    """Seconds since some moment, by a clock that nobody sets; on Linux it counts while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def utc_now() -> datetime:
    """Now, in UTC, with its zone, by the database's clock once that has been measured."""
    start = _start  # others may replace it meanwhile
    if start is None:
        return host_now()
    return start.moment + timedelta(seconds=counted_s() - start.counted_s)


def follow(told: datetime, *, asked_s: float, answered_s: float) -> None:
    """Go by what the database's clock told.

    Args:
        told: its time, somewhere between question and answer.
        asked_s: what `counted_s` said before the question.
        answered_s: and after the answer.
    """
    global _start  # noqa: PLW0603 - one process has one time
    is_first, present, now_s = _start is None, utc_now(), counted_s()
    error_s = (answered_s - asked_s) / 2
    theirs = told + timedelta(seconds=now_s - answered_s + error_s)
    apart_s = (theirs - present).total_seconds()
    if abs(apart_s) > SLACK_S + error_s:
        _start = _Start(theirs, now_s)
    elif is_first:
        _start = _Start(present, now_s)
    if abs(apart_s) > WORTH_TELLING_S:
        log.warning("clock.differs", ahead_s=round(-apart_s, 1))


def is_followed() -> bool:
    """Whether this process has measured the database's clock."""
    return _start is not None


def host_ahead_s() -> float:
    """By how many seconds this host's clock is ahead of the time that we go by."""
    return (host_now() - utc_now()).total_seconds()


def forget() -> None:
    """Go by the host's clock again, as a new process does; for tests."""
    global _start  # noqa: PLW0603
    _start = None
