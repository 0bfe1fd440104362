"""PostgreSQL: prepared statements, all of a call in one round trip.

Most of the time that a short statement takes is the way there and back: a system call and a change of threads
at either end, and the driver's cursor around it. Here they go straight to libpq, by the driver's thin wrapper
of it, one behind the other; the driver's connection, its transaction and its types stay what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from select import POLLIN, POLLOUT, poll
from typing import Any, NamedTuple

from psycopg import Connection, Error, IsolationLevel, OperationalError
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

_FINE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class Sent(NamedTuple):
    """A statement with its values as PostgreSQL reads them; `name` stands for this very text."""

    name: bytes
    sql: str
    values: Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Found:
    """What one of them gave."""

    rows: list[tuple[Any, ...]]
    type_codes: list[int]  # of the columns


class Failed(Exception):
    """One of the statements failed, and those behind it did not run."""

    def __init__(self, place: int, why: Error) -> None:
        super().__init__(place)
        self.place = place
        self.why = why


def as_text(value: object) -> bytes | None:
    """A value as PostgreSQL reads it, for a place whose type the statement tells."""
    if value is None:
        return None
    if isinstance(value, list):  # of numbers or ids, which need no quotes
        value = "{" + ",".join(map(str, value)) + "}"
    found = str(value).encode()
    if b"\0" in found:  # libpq would read as far as that
        raise ValueError("PostgreSQL's text has no NUL")
    return found


class Pipeline:
    """What is kept with a connection: the statements that it knows, and how to read its types."""

    def __init__(self, driver: Connection[Any]) -> None:
        self.prepared: set[bytes] = set()  # names
        self._driver = driver
        self._types = Transformer(driver)

    def send(self, statements: Sequence[Sent]) -> list[Found]:
        """Run statements in the connection's transaction, which begins with them if there is none.

        They run in this order, and each sees what those before it wrote.

        Raises:
            Failed: as it says; the transaction can only be rolled back.
            psycopg.OperationalError: the connection is lost.
        """
        try:
            results = self._exchange(statements)
        except BaseException:
            self._driver.close()  # with answers under way that nobody would read
            raise
        return [self._found(result, place) for place, result in enumerate(results)]

    def _exchange(self, statements: Sequence[Sent]) -> list[PGresult]:
        pgconn = self._driver.pgconn
        pgconn.enter_pipeline_mode()
        begins = not self._driver.autocommit and pgconn.transaction_status == TransactionStatus.IDLE
        if begins:
            pgconn.send_query_params(_begin(self._driver), None)
        new: dict[bytes, PGresult | None] = {}  # what learning them gave
        for item in statements:
            if item.name not in self.prepared and item.name not in new:
                pgconn.send_prepare(item.name, item.sql.encode())
                new[item.name] = None
            pgconn.send_query_prepared(item.name, item.values)
        pgconn.pipeline_sync()
        _flush(pgconn)
        results = [_next(pgconn)] if begins else []
        for item in statements:
            if item.name in new and new[item.name] is None:
                new[item.name] = _next(pgconn)
            result, learnt = _next(pgconn), new.get(item.name)
            results.append(result if learnt is None or learnt.status in _FINE else learnt)
        if begins and (begun := results.pop(0)).status not in _FINE:
            results[0] = begun  # which is why it did not run
        self.prepared.update(name for name, learnt in new.items() if learnt and learnt.status in _FINE)
        if _get(pgconn) is None:  # the mark behind them
            raise OperationalError(pgconn.get_error_message())
        pgconn.exit_pipeline_mode()
        return results

    def _found(self, result: PGresult, place: int) -> Found:
        if result.status not in _FINE:
            raise Failed(place, error_from_result(result))
        self._types.set_pgresult(result)
        rows = self._types.load_rows(0, result.ntuples, tuple)
        return Found(rows, [result.ftype(column) for column in range(result.nfields)])


def _begin(driver: Connection[Any]) -> bytes:
    """As the driver itself would begin."""
    if driver.isolation_level is None:
        return b"BEGIN"
    return b"BEGIN ISOLATION LEVEL " + IsolationLevel(driver.isolation_level).name.replace("_", " ").encode()


def _flush(pgconn: PGconn) -> None:
    """Send what waits to be sent; reads meanwhile, or both ends could wait for each other to read."""
    while pgconn.flush():
        if _wait(pgconn, POLLIN | POLLOUT) & POLLIN:
            pgconn.consume_input()


def _next(pgconn: PGconn) -> PGresult:
    """What the next statement gave; waits for it."""
    result = _get(pgconn)
    if result is None or pgconn.status == ConnStatus.BAD:
        raise OperationalError(pgconn.get_error_message())
    _get(pgconn)  # None: each gives one
    return result


def _get(pgconn: PGconn) -> PGresult | None:
    while pgconn.is_busy():  # libpq's own wait would let no other thread run
        _wait(pgconn, POLLIN)
        pgconn.consume_input()
    return pgconn.get_result()


def _wait(pgconn: PGconn, events: int) -> int:
    waiting = poll()
    waiting.register(pgconn.socket, events)
    [(_, happened)] = waiting.poll()
    return happened
