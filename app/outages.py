"""What is away when a request fails that is nobody's mistake: the database, a bucket, the room on a disk."""

import errno
import sqlite3
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.errors import Unavailable
from app.languages import translatable
from app.storage import StorageAway


class OutOfService(Unavailable):
    """The database or the store of images does not answer, or a disk has no room left. Try again soon.

    A transaction is kept as a whole or not at all. Where its last word was lost nobody knows which: look
    before you send what must not happen twice, or send it with an `Idempotency-Key`.
    """

    title = translatable("Service Unavailable")


@dataclass(frozen=True, slots=True)
class Outage:
    """A short name for the log, and a sentence for people."""

    name: str
    words: str


AWAY = Outage("database-away", translatable("The database does not answer."))
BUSY = Outage("database-busy", translatable("The database has more to do than it can."))
LATE = Outage("database-late", translatable("The database took too long."))
SLOW = Outage("server-slow", translatable("The server took too long."))
READ_ONLY = Outage("database-read-only", translatable("The database can only be read."))
STORE_AWAY = Outage("store-away", translatable("The store of images and models does not answer."))
DISK_FULL = Outage("disk-full", translatable("There is no room left on the disk."))

_FULL = (errno.ENOSPC, errno.EDQUOT)
# SQLite's primary codes. The others of an OperationalError, such as a missing table, are our own mistakes.
_OF_SQLITE = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_IOERR: AWAY,
    sqlite3.SQLITE_CANTOPEN: AWAY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_FULL: DISK_FULL,
}
# PostgreSQL's codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
_OF_POSTGRESQL = {
    "25006": READ_ONLY,  # read_only_sql_transaction
    "53100": DISK_FULL,
    "53200": BUSY,  # out_of_memory
    "53300": BUSY,  # too_many_connections
    "55P03": BUSY,  # lock_not_available
    "57014": LATE,  # query_canceled, by statement_timeout
    "40001": BUSY,  # serialization_failure
    "40P01": BUSY,  # deadlock_detected
}
_PRIMARY = 0xFF


def outage_of(error: BaseException) -> Outage | None:
    """What is away; None: the error is a mistake, ours or the caller's."""
    if isinstance(error, PoolTimeout):
        return BUSY
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return AWAY
        return _of_driver(error.orig)
    if isinstance(error, StorageAway):
        return STORE_AWAY
    if isinstance(error, OSError) and error.errno in _FULL:
        return DISK_FULL
    return None


def _of_driver(error: Any) -> Outage | None:
    if isinstance(error, sqlite3.Error):
        return _OF_SQLITE.get(getattr(error, "sqlite_errorcode", -1) & _PRIMARY)
    state: str | None = getattr(error, "sqlstate", None)
    if state is None:  # said by the driver: it never reached the server, or lost it
        return AWAY if type(error).__name__ in ("OperationalError", "ConnectionTimeout") else None
    if state.startswith(("08", "57P")):  # connection exceptions; operator's intervention
        return AWAY
    return _OF_POSTGRESQL.get(state)
