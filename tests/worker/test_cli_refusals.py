"""Every `clarinet` command tells bad input in a sentence: status 2, or 1 for what was tried and failed."""

import os
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from typer.main import get_command

from app.db import connect
from app.migrate import upgrade
from tests.live import clarinet
from worker.cli.main import app as cli

SQLITE = "sqlite:///{}"
FOLDERS = ("/dev/null/here", "FILE")  # what no folder of data can be: below a file, and a file

REMOTE = [
    "simulate c",
    "audit c",
    "dataset add FILE",
    "dataset grow d FILE",
    "dataset list",
    "campaign create c --dataset d",
    "campaign open c",
    "campaign ask-further c",
    "campaign pause c",
    "campaign close c",
    "campaign import c FILE",
    "campaign list",
    "run start c --target d",
    "run list",
    "run cancel 1",
    "run metrics 1",
    "run mlflow 1",
    "run show 1",
    "model list",
    "model show 1",
    "model get 1",
    "model predict 1 --images FOLDER --out OUT",
    "bench predict 1",
    "bench comparison --data FOLDER",
]
"""Ask a server."""

LOCAL = [
    "user add a@example.org --link",
    "user reset a@example.org",
    "user rename a@example.org Ada",
    "user role a@example.org admin",
    "user unlink a@example.org",
    "user erase a@example.org --name Ada",
    "token add a@example.org script",
    "alive io",
    "backup OUT",
    "db upgrade",
    "leftovers",
]
"""Open the database."""

STAYING = ["serve --port PORT", "worker", "upkeep", "up --port PORT", "demo --port PORT --data-dir OUT"]

SINGLE: list[tuple[str, int]] = [
    ("dataset add MISSING", 2),
    ("dataset add FOLDER", 2),
    ("dataset grow d MISSING", 2),
    ("campaign import c FOLDER", 2),
    ("simulate c --confusion MISSING", 2),
    ("simulate c --pace fast", 2),
    ("run mlflow 1 --to FILE", 2),
    ("run start c --target d --processes many", 2),
    ("model predict 1 --images MISSING --out OUT", 2),
    ("user role a@example.org king", 2),
    ("user add nobody --link", 2),
    ("user reset nobody@example.org", 1),
    ("token add nobody@example.org script --days 0", 2),
    ("alive nothing", 1),
    ("backup FILE", 2),
    ("backup /dev/null/here", 2),
    ("restore FOLDER", 1),
    ("restore MISSING", 1),
    ("restore FILE", 1),
    ("db upgrade nothing", 2),
    ("serve --port TAKEN", 2),
    ("serve --port 70000", 2),
    ("serve --host 192.0.2.1", 2),
    ("up --port TAKEN", 2),
    ("demo --port TAKEN --data-dir OUT", 2),
    ("worker --queues nothing", 2),
    ("worker --once nothing", 2),
    ("worker --concurrency 0", 2),
    ("train --source FILE --target MISSING", 1),
    ("train --source FOLDER --target FOLDER", 1),
    ("predict --model MISSING --images FOLDER --out OUT", 1),
    ("predict --model FILE --images FOLDER --out OUT", 1),
    ("evaluate --model MISSING --images FOLDER", 1),
    ("reproduce nothing", 1),
    ("make-syn-digits /dev/null/here --count 1", 1),
    ("bench step --nothing", 2),
    ("bench active --nothing", 2),
    ("bench scale --database-url nonsense", 2),
    ("bench serve --database-url nonsense", 2),
    ("bench live --viewers 0", 2),
    ("bench order --classes 1", 2),
    ("bench runs --database-url nonsense", 2),
    ("bench workers --case nothing", 2),
    ("bench comparison --data FOLDER --set epoch=3", 2),
    ("bench faults --folder FILE", 2),
    ("nothing", 2),
    ("user nothing", 2),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands for the words in capitals."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "file").write_text("neither a zip nor a database nor a model\n" * 20)
    (folder / "folder").mkdir()
    database = connect(SQLITE.format(folder / "good.db"))
    upgrade(database.engine)
    database.dispose()
    shutil.copy(folder / "good.db", folder / "newer.db")
    database = connect(SQLITE.format(folder / "newer.db"))
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.dispose()
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as probe:
        free = str(probe.getsockname()[1])
        probe.close()
        yield {
            "FILE": str(folder / "file"),
            "FOLDER": str(folder / "folder"),
            "MISSING": str(folder / "missing"),
            "OUT": str(folder / "out"),
            "TAKEN": str(taken.getsockname()[1]),
            "PORT": free,
            "GOOD": SQLITE.format(folder / "good.db"),
            "NEWER": SQLITE.format(folder / "newer.db"),
            "NO_DATABASE": SQLITE.format(folder / "file"),
            "DATA": str(folder / "data"),
        }


def refusal(places: dict[str, str], command: str, status: int, **settings: str) -> str:
    """What the command says: one sentence of ours, or the usage with what is wrong in it."""
    given = {"DATA_DIR": "DATA", "DATABASE_URL": "GOOD", "URL": "http://127.0.0.1:9", "TOKEN": "t"} | settings
    environment = {f"CLARINET_{name}": places.get(value, value) for name, value in given.items()}

    done = clarinet(os.environ | environment, *(places.get(word, word) for word in command.split()))

    told = f"{command} {settings}: {done.returncode} {done.stdout} {done.stderr}"
    assert done.returncode == status, told
    assert "Traceback" not in done.stderr, told
    if "usage" not in done.stderr.lower():
        assert done.stderr.splitlines()[-1].startswith("clarinet: "), told
        assert done.stderr.count("clarinet: ") == 1, told
    return done.stderr


@pytest.mark.parametrize(("command", "status"), SINGLE, ids=[command for command, _ in SINGLE])
def test_what_was_typed(places: dict[str, str], command: str, status: int) -> None:
    assert refusal(places, command, status)


@pytest.mark.parametrize("command", REMOTE)
def test_a_server_that_cannot_be(places: dict[str, str], command: str) -> None:
    for address in ("nonsense", "ftp://here", "http://", "http://127.0.0.1:port", "http://[::1"):
        assert "is no address of a server" in refusal(places, command, 2, URL=address)
    assert "is no token" in refusal(places, command, 2, TOKEN="with é")
    assert "Give a token" in refusal(places, command, 1, TOKEN="")


@pytest.mark.parametrize("command", LOCAL)
def test_a_database_that_cannot_be(places: dict[str, str], command: str) -> None:
    for address in ("nonsense", "mysql://here/name"):
        assert "CLARINET_DATABASE_URL" in refusal(places, command, 2, DATABASE_URL=address)
    assert "no database of SQLite" in refusal(places, command, 2, DATABASE_URL="NO_DATABASE")
    assert "does not answer" in refusal(places, command, 1, DATABASE_URL="postgresql://127.0.0.1:1/name")
    for folder in FOLDERS:
        assert "cannot be used" in refusal(places, command, 2, DATA_DIR=folder, DATABASE_URL="")


def test_a_newer_schema(places: dict[str, str]) -> None:
    assert "schema is newer" in refusal(places, "backup OUT", 1, DATABASE_URL="NEWER")


@pytest.mark.parametrize("command", STAYING)
def test_settings_under_which_nothing_can_stay(places: dict[str, str], command: str) -> None:
    assert "BROKER_URL" in refusal(places, command, 2, BROKER_URL="rabbit://here")
    assert "DEVICE" in refusal(places, command, 2, DEVICE="gpu")
    assert "LAUNCHER" in refusal(places, command, 2, LAUNCHER="slurm")
    if "--data-dir" not in command:
        for folder in FOLDERS:
            assert "cannot be" in refusal(places, command, 2, DATA_DIR=folder, DATABASE_URL="")


def test_every_command_is_in_a_table() -> None:
    found = set()
    waiting: list[tuple[str, Any]] = [("", get_command(cli))]
    while waiting:
        path, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{path} {name}".strip(), each) for name, each in command.commands.items()]
        else:
            found.add(path)
    tables = [*REMOTE, *LOCAL, *STAYING, *(command for command, _ in SINGLE)]
    named = {path for path in found for command in tables if f"{command} ".startswith(f"{path} ")}
    assert found - named == {"doctor"}  # which tells what is wrong, and has a test of its own
