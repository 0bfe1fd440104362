"""Migrations go up, down and up again, and end where the models are."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from app.db import Base, Database, connect
from app.migrate import alembic_config, is_at_head, upgrade
from tests.conftest import postgres_database

UPGRADE = """
import sys
from app.db import connect
from app.migrate import upgrade
database = connect(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
upgrade(database.engine)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without a table."""
    if request.param == "sqlite":
        database = connect(f"sqlite:///{tmp_path / 'empty.db'}")
        yield database
        database.dispose()
        return
    with postgres_database() as url:
        database = connect(url)
        yield database
        database.dispose()


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


def test_servers_that_start_together_upgrade_one_after_another(empty: Database) -> None:
    # Processes, because Alembic keeps its environment in globals.
    url = empty.engine.url.render_as_string(hide_password=False)
    servers = [
        subprocess.Popen([sys.executable, "-c", UPGRADE, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
    for server in servers:
        assert server.stdin is not None
        server.stdin.write(b"go\n")
        server.stdin.flush()
    for server in servers:
        server.communicate(timeout=60)

    assert [server.returncode for server in servers] == [0, 0, 0]
    with empty.read() as session:
        assert is_at_head(session.connection())
