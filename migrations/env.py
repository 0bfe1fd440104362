"""Alembic's entry: the connection comes from the caller, the metadata from app."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from alembic import context
from sqlalchemy import Connection

import app.models  # noqa: F401  (fills Base.metadata)
from app.db import Base, UtcDateTime, connect
from app.settings import Settings

LOCK_TIMEOUT = "5s"


def render_item(kind: str, item: object, _context: object) -> str | Literal[False]:
    """Write our timestamp type as the plain one beneath it: migrations are frozen history."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def run(connection: Connection) -> None:
    """Run the migrations in one transaction, and fail fast rather than block everybody."""
    with _whole(connection):
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=connection.dialect.name == "sqlite",
            compare_server_default=True,
            render_item=render_item,
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                context.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            context.run_migrations()
        connection.commit()


@contextmanager
def _whole(connection: Connection) -> Iterator[None]:
    """Give SQLite what PostgreSQL does by itself: all migrations in one transaction, and no row deleted.

    Alembic takes its tables for impossible to change in a transaction, and would look for the revision before
    it waits for another server that upgrades. And with foreign keys enforced, replacing a table by a changed
    copy (batch mode) would delete every row that refers to it.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    connection.commit()  # inside a transaction the pragma does nothing
    plain = connection.connection.driver_connection
    assert isinstance(plain, sqlite3.Connection)
    plain.execute("PRAGMA foreign_keys=OFF")
    try:
        connection.begin()
        yield
    finally:
        connection.rollback()  # nothing, after a commit
        plain.execute("PRAGMA foreign_keys=ON")


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with connect(Settings().sqlalchemy_url).engine.connect() as own:
        run(own)
