"""Migrations go up, down and up again, and end where the models are."""

import re
import subprocess
import sys
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from app.db import Base, Database
from app.migrate import alembic_config, fits, upgrade

pytestmark = pytest.mark.dialects

OF_0_1_0 = "0013"
# Columns of the schema that only an older version knows.
FOR_OLDER = {("campaign", "gold_feedback"), ("trial", "source_accuracy_estimate")}
UPGRADE = """
import sys
from app.db import connect
from app.migrate import upgrade
database = connect(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
upgrade(database.engine)
"""


def test_up_down_up(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        command.downgrade(config, "base")
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
        assert not fits(connection)
        command.upgrade(config, "head")
        assert fits(connection)


def test_migrations_equal_models(empty: Database) -> None:
    upgrade(empty.engine)

    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = compare_metadata(context, Base.metadata)
    kept = {(item[2], item[3].name) for item in found if item[0] == "remove_column"}
    assert kept == FOR_OLDER
    assert len(found) == len(kept)


def test_the_version_before_still_works_on_the_new_schema(empty: Database) -> None:
    """While versions change, old processes read and write beside new ones."""
    upgrade(empty.engine, OF_0_1_0)
    before = columns_of(empty)
    upgrade(empty.engine)
    after = columns_of(empty)

    assert before.keys() <= after.keys()
    for table, columns in before.items():
        assert columns.keys() <= after[table].keys(), table  # what it reads
        added = {name: column for name, column in after[table].items() if name not in columns}
        required = {name for name, column in added.items() if not has_a_value(column)}
        assert required == set(), table  # what it writes
        narrower = {name for name, column in columns.items() if has_a_value(column)} - {
            name for name, column in after[table].items() if has_a_value(column)
        }
        assert narrower == set(), table


def columns_of(database: Database) -> dict[str, dict[str, Any]]:
    """By table and name what the database says of its columns."""
    found = inspect(database.engine)
    return {
        table: {column["name"]: column for column in found.get_columns(table)}
        for table in found.get_table_names()
    }


def has_a_value(column: Any) -> bool:
    """Whether a row may be written that says nothing of it."""
    return column["nullable"] or column["default"] is not None


def test_checks_and_triggers_equal_those_of_the_models(empty: Database) -> None:
    """What the comparison above does not look at, and SQLite's migrations write anew."""
    upgrade(empty.engine)
    with empty.engine.begin() as connection:
        migrated = kept_by(connection)
        Base.metadata.drop_all(connection)
        Base.metadata.create_all(connection)

        assert kept_by(connection) == migrated


def kept_by(connection: Connection) -> dict[str, set[tuple[str, ...]]]:
    """By table the names of its checks with the values that they list; and what its triggers do."""
    found = inspect(connection)
    kept = {
        table: {
            (str(check["name"]), *sorted(re.findall(r"'([^']*)'", check["sqltext"])))
            for check in found.get_check_constraints(table)
        }
        for table in found.get_table_names()
        if table != "alembic_version"
    }
    triggers = "SELECT sql FROM sqlite_master WHERE type = 'trigger'"
    if connection.dialect.name == "postgresql":
        triggers = "SELECT prosrc FROM pg_proc WHERE proname = 'journal_keep'"
    return kept | {"": {(" ".join(sql.split()),) for sql in connection.scalars(text(triggers))}}


@pytest.mark.long
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
        assert fits(session.connection())
