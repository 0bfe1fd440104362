"""Bring a database to the current schema, and see whether it is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

import migrations

UPGRADE_LOCK = 0x436C_6172_696E_6574  # "Clarinet" in ASCII: ours among the database's advisory locks


def alembic_config() -> Config:
    """Alembic's configuration, without a file."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "%%(year)d%%(month).2d%%(day).2d_%%(rev)s_%%(slug)s")
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Run every migration that has not run yet. Servers that start together take turns."""
    config = alembic_config()
    with _turn(engine), engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@contextmanager
def _turn(engine: Engine) -> Iterator[None]:
    """Hold PostgreSQL's lock for upgrades, in a transaction beside theirs; SQLite has one writer anyway."""
    if engine.dialect.name != "postgresql":
        yield
        return
    with engine.begin() as beside:
        beside.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
        yield


def is_at_head(connection: Connection) -> bool:
    """Whether the database has the schema that this code expects."""
    return set(MigrationContext.configure(connection).get_current_heads()) == _heads()


@cache
def _heads() -> frozenset[str]:
    """Of this code; to find them Python loads every migration."""
    return frozenset(ScriptDirectory.from_config(alembic_config()).get_heads())
