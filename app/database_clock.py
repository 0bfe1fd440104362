"""Measures the database's clock when a connection is used: see `app.clock`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, event

from app import clock

EVERY_S = 10.0  # a measurement is one question; a clock that was set is followed this soon


def _of_postgresql(connection: Any) -> datetime:
    # Outside a transaction: the pool gives connections out before one begins, and none may be left open.
    before = connection.autocommit
    connection.autocommit = True
    try:
        told: datetime = connection.execute("SELECT clock_timestamp()").fetchone()[0]
    finally:
        if not connection.closed:
            connection.autocommit = before
    return told


def _of_sqlite(connection: Any) -> datetime:
    told = connection.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')").fetchone()[0]
    return datetime.fromisoformat(told).replace(tzinfo=UTC)


_ASK: dict[str, Callable[[Any], datetime]] = {"postgresql": _of_postgresql, "sqlite": _of_sqlite}


def know_time(engine: Engine) -> None:
    """Measure once before anything is decided by the time; a new process has only its host's.

    Raises:
        OperationalError: the database is away.
    """
    if not clock.is_followed():
        with engine.connect():
            pass


def keep_time(engine: Engine) -> None:
    """Measure the clock of the engine's database as its pool gives out a connection, every few seconds."""
    ask = _ASK[engine.dialect.name]
    due_s = 0.0

    @event.listens_for(engine, "checkout")
    def measure(connection: Any, _record: object, _proxy: object) -> None:
        nonlocal due_s
        asked_s = clock.counted_s()
        if asked_s < due_s:
            return
        told = ask(connection)
        answered_s = clock.counted_s()
        due_s = answered_s + EVERY_S
        clock.follow(told, asked_s=asked_s, answered_s=answered_s)
