"""Bring a database to the current schema, and see whether it is there."""

import enum
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


class Schema(enum.StrEnum):
    """How a database's schema stands to this code. A newer one fits, too: while versions change, both work
    on one database, so no migration may take away what the version before reads, or ask for what it lacks.
    """

    CURRENT = "current"
    OLDER = "older"
    NEWER = "newer"


def upgrade(engine: Engine, revision: str = "head") -> Schema:
    """Run every migration that has not run yet; what the schema was before. Servers take turns.

    A newer schema, which a later version made, is left as it is.
    """
    config = alembic_config()
    with _turn(engine), engine.connect() as connection:
        before = schema_of(connection)
        if before is not Schema.NEWER:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    return before


@contextmanager
def _turn(engine: Engine) -> Iterator[None]:
    """Hold PostgreSQL's lock for upgrades, in a transaction beside theirs; SQLite has one writer anyway."""
    if engine.dialect.name != "postgresql":
        yield
        return
    with engine.begin() as beside:
        beside.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
        yield


def schema_of(connection: Connection) -> Schema:
    """How the database's schema stands to this code."""
    found = set(MigrationContext.configure(connection).get_current_heads())
    heads, known = _revisions()
    if found == heads:
        return Schema.CURRENT
    return Schema.OLDER if found <= known else Schema.NEWER


def revision_of(connection: Connection) -> str:
    """The name of the database's schema; "" before the first."""
    return MigrationContext.configure(connection).get_current_revision() or ""


def revision_of_code() -> str:
    """The name of the schema that this code expects."""
    (head,) = _revisions()[0]
    return head


def fits(connection: Connection) -> bool:
    """Whether this code can work with the database's schema: the one that it expects, or a newer one."""
    return schema_of(connection) is not Schema.OLDER


@cache
def _revisions() -> tuple[frozenset[str], frozenset[str]]:
    """The last one of this code, and all; to find them Python loads every migration."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return frozenset(scripts.get_heads()), frozenset(item.revision for item in scripts.walk_revisions())
