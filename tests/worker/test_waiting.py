"""Servers of one installation start in any order: they wait for the database, and say what for."""

import socket
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from app.db import connect
from app.migrate import Schema, fits, schema_of, upgrade
from app.settings import Settings
from worker.local import waiting
from worker.local.waiting import NEWER, OLDER, wait_for_database


class Waiting:
    """A server that is about to start."""

    def __init__(self, url: str, data_dir: Path, *, needs_schema: bool = True) -> None:
        settings = Settings(environment="test", data_dir=data_dir, database_url=url, _env_file=None)
        self.said: list[str] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(
            target=wait_for_database,
            args=(settings,),
            kwargs={"needs_schema": needs_schema, "say": self.said.append, "ended": self.ended},
        )
        self.thread.start()

    def is_over(self, within_s: float = 20.0) -> bool:
        self.thread.join(within_s)
        return not self.thread.is_alive()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST_PAUSE_S", 0.2)
    monkeypatch.setattr(waiting, "FIRST_PAUSE_S", 0.1)


def pass_on(server: socket.socket, host: str, port: int) -> None:
    """Give every connection on to another address."""

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve(one: socket.socket) -> None:
        with one, socket.create_connection((host, port)) as other:
            back = threading.Thread(target=pump, args=(other, one))
            back.start()
            pump(one, other)
            back.join()

    with suppress(OSError):
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def test_for_a_server_that_starts_later(postgres_url: str, tmp_path: Path) -> None:
    there = make_url(postgres_url)
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    url = there.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    starting = Waiting(url, tmp_path, needs_schema=False)
    assert not starting.is_over(1.0)

    with closing(socket.create_server(("127.0.0.1", port))) as server:
        target = server, there.host or "127.0.0.1", there.port or 5432
        threading.Thread(target=pass_on, args=target, daemon=True).start()
        assert starting.is_over()

    [said] = starting.said
    assert said.startswith(f"The database does not answer. Waiting for it at 127.0.0.1:{port}/")
    assert "refused" in said
    assert there.password is None or there.password not in said


def test_for_a_schema_that_fits(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    database = connect(url)
    upgrade(database.engine, "0001")
    starting = Waiting(url, tmp_path)
    time.sleep(1)

    assert (starting.thread.is_alive(), starting.said) == (True, [OLDER])
    assert upgrade(database.engine) is Schema.OLDER
    assert starting.is_over()
    database.dispose()


def test_not_for_a_newer_one_which_stays_as_it_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    database = connect(url)
    upgrade(database.engine)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    starting = Waiting(url, tmp_path)

    assert starting.is_over()
    assert starting.said == [NEWER]
    assert upgrade(database.engine) is Schema.NEWER
    with database.engine.connect() as connection:
        assert (schema_of(connection), fits(connection)) == (Schema.NEWER, True)
    database.dispose()


def test_no_longer_than_people_want(tmp_path: Path) -> None:
    starting = Waiting("postgresql+psycopg://a:b@127.0.0.1:1/c", tmp_path)
    time.sleep(0.3)
    starting.ended.set()

    assert starting.is_over()
    assert len(starting.said) == 1
