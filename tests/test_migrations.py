"""Migrations go up, down and up again, and end where the models are."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from app.db import Base, Database, connect
from app.migrate import alembic_config, is_at_head, upgrade
from tests.conftest import POSTGRES


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without a table."""
    if request.param == "sqlite":
        database = connect(f"sqlite:///{tmp_path / 'empty.db'}")
        yield database
        database.dispose()
        return
    request.getfixturevalue("postgres_url")  # skips, or fails, where none answers
    admin = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    name = f"clarinet_test_{uuid4().hex[:12]}"
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    database = connect(admin.url.set(database=name).render_as_string(hide_password=False))
    yield database
    database.dispose()
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


def test_up_down_up(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        command.downgrade(config, "base")
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
        assert not is_at_head(connection)
        command.upgrade(config, "head")
        assert is_at_head(connection)


def test_migrations_equal_models(empty: Database) -> None:
    upgrade(empty.engine)

    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
