"""Engine, mapping base and the unit of work. Knows no HTTP."""

import enum
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import structlog
from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Engine,
    Enum,
    Integer,
    MetaData,
    String,
    TypeDecorator,
    Uuid,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.pool import QueuePool

from app.database_clock import keep_time, know_time
from app.jobs import Job

Publish = Callable[[Job], None]

BUSY_S = 30  # for which one writer of SQLite waits for another
LOG_LINES = "log"  # in a session's `info`: events and their facts, for the log once it has committed
REST_S = 1  # after which a connection of PostgreSQL is tried before it is used again

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

# SQLite only auto-increments a column whose type is exactly INTEGER.
BigId = BigInteger().with_variant(Integer, "sqlite")


log = structlog.get_logger()


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp with zone; SQLite, which keeps no zone, stores UTC and gives it back as such."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive timestamps: nobody knows what they mean."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a timestamp needs a zone: {value!r}")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Give back UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Root of every mapped class."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        UUID: Uuid(),
        dict[str, Any]: JSON(),
        list[str]: JSON(),
        list[int]: JSON(),
        str: String(),
    }


def enum_column(kind: type[enum.StrEnum]) -> Enum:
    """A string enum stored by value with a CHECK; a native enum would need a migration of its own kind."""
    return Enum(
        kind,
        native_enum=False,
        create_constraint=True,
        length=32,
        values_callable=lambda members: [member.value for member in members],
        name=f"{kind.__name__.lower()}_known",
    )


@dataclass(frozen=True, slots=True)
class Database:
    """Where sessions come from: `write` may change rows, `read` only looks.

    On SQLite they are two engines: readers run beside the one pooled writer connection. Its transactions
    begin IMMEDIATE, because a deferred one that upgrades fails at once, whatever the busy timeout. Elsewhere
    they share one pool.
    """

    read: sessionmaker[Session]
    write: sessionmaker[Session]
    engine: Engine

    def dispose(self) -> None:
        """Close every connection."""
        for maker in (self.read, self.write):
            maker.kw["bind"].dispose()


# Of a connection to PostgreSQL, unless its address says otherwise: a host that is gone is given up, and a
# connection that was cut without a word is noticed.
WAITING = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # ms for which what was sent may stay without an acknowledgement
}
# The same for the server's side of it: a host that is gone must not hold rows for longer than its leases
# last. PostgreSQL by itself notices after two hours.
NOTICING = {
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


def connect(url: str, *, statement_timeout_s: int = 0) -> Database:
    """Open a database by its SQLAlchemy address; creates the folder of an SQLite file.

    On PostgreSQL a statement that takes longer than `statement_timeout_s` fails; 0: none does.
    """
    if not url.startswith("sqlite"):
        # Compiling a plan takes tens of milliseconds; our statements touch few rows and take less than one.
        # Options of the address come last, so they win.
        told = make_url(url).query
        given = told.get("options", "")
        noticing = " ".join(f"-c {name}={value}" for name, value in NOTICING.items())
        own = f"-c jit=off -c statement_timeout={1000 * statement_timeout_s} {noticing}"
        options = " ".join([own, *([given] if isinstance(given, str) else given)]).strip()
        engine = create_engine(
            url,
            pool_size=20,
            max_overflow=20,
            hide_parameters=True,  # an error in the log must not tell seeds and hashes
            connect_args={
                **{name: value for name, value in WAITING.items() if name not in told},
                "options": options,
                # The driver would forget its prepared statements, and ours with them, after each rollback.
                "prepare_threshold": None,
            },
        )
        _ping_after_rest(engine)
        keep_time(engine)
        # A read sees one moment throughout, as in SQLite. Labels follow from several statements: one that saw
        # an answer which another did not see would weigh it wrongly.
        snapshot = engine.execution_options(isolation_level="REPEATABLE READ")
        return Database(
            read=sessionmaker(snapshot, expire_on_commit=False),
            write=sessionmaker(engine, expire_on_commit=False),
            engine=engine,
        )
    if path := make_url(url).database:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    writer = _sqlite_engine(url, begin="BEGIN IMMEDIATE", size=1)
    reader = _sqlite_engine(url, begin="BEGIN", size=16)
    return Database(
        read=sessionmaker(reader, expire_on_commit=False),
        write=sessionmaker(writer, expire_on_commit=False),
        engine=writer,
    )


def _ping_after_rest(engine: Engine) -> None:
    """Give out no connection that the database has closed, without asking it at each of many requests."""

    lost_at = 0.0  # when a connection was last found lost: then the others may be as well

    @event.listens_for(engine, "invalidate")
    def note_lost(_connection: object, _record: object, _error: object) -> None:
        nonlocal lost_at
        lost_at = time.monotonic()

    @event.listens_for(engine, "checkin")
    def note(_connection: object, record: Any) -> None:
        record.info["rests_since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def ping(connection: Any, record: Any, _proxy: object) -> None:
        now = time.monotonic()
        since = record.info.get("rests_since", now)
        if since > lost_at and now - since < REST_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError from error


def _sqlite_engine(url: str, *, begin: str, size: int) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=60,
        hide_parameters=True,  # as above
        connect_args={"timeout": BUSY_S, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        _log_ahead(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", f"busy_timeout={1000 * BUSY_S}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    keep_time(engine)
    return engine


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite gives up at once when another process switches, so we wait."""
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


@contextmanager
def unit_of_work(sessions: sessionmaker[Session], publish: Publish) -> Iterator[Session]:
    """One transaction. Jobs asked for inside it, and lines for the log, go out once it has committed."""
    know_time(sessions.kw["bind"])
    with sessions.begin() as session:
        yield session
    for job in session.info.pop("jobs", ()):
        publish(job)
    for name, facts in session.info.pop(LOG_LINES, ()):
        log.info(name, **facts)
