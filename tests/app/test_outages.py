"""What is away is told as away: 503, when to come again, what was kept, and one line in the log."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app import health
from app.db import Base, connect
from app.lateness import Lateness
from app.main import create_app
from app.migrate import upgrade
from app.outages import AWAY, BUSY, DISK_FULL, LATE, READ_ONLY, outage_of
from app.settings import Settings
from tests.conftest import postgres_database
from tests.middleware import part_of

HEADERS = {"Authorization": "Bearer nobody's"}


def settings_of(tmp_path: Path, url: str) -> Settings:
    return Settings(environment="test", data_dir=tmp_path, database_url=url, _env_file=None)


@contextmanager
def asked(settings: Settings) -> Iterator[TestClient]:
    app = create_app(settings, publish=lambda _: None)
    with TestClient(app, headers=HEADERS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def hanging() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        taken: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    taken.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        for connection in taken:
            connection.close()


@pytest.fixture
def nobody() -> int:
    """A port where nothing listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
    return port


class TestADatabaseThatIsAway:
    def test_is_told_to_programs_and_people(
        self, tmp_path: Path, nobody: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with asked(settings_of(tmp_path, f"postgresql+psycopg://a:b@127.0.0.1:{nobody}/c")) as client:
            read, alive = client.get("/api/v1/me"), client.get("/healthz")
            ready = client.get("/readyz")
            written = client.post("/api/v1/campaigns", json={})
            page = client.get("/campaigns", headers={"accept": "text/html"})
        log = capsys.readouterr().err

        assert [answer.status_code for answer in (read, ready, written, page)] == [503] * 4
        assert read.json()["type"] == "/problems/out-of-service"
        assert read.json()["outage"] == "database-away"
        assert read.json()["detail"] == "The database does not answer. Nothing was changed. Try again soon."
        assert "as a whole or not at all" in written.json()["detail"]
        assert all(int(answer.headers["retry-after"]) in (4, 5, 6) for answer in (read, written, page))
        assert "The database does not answer." in page.text
        assert alive.json() == {"status": "ok"}
        assert ready.json()["database"] == "The database does not answer."
        assert "Traceback" not in log
        assert log.count("request.outage") == 3

    def test_readiness_waits_for_no_host_that_hangs(self, tmp_path: Path, hanging: int) -> None:
        with asked(settings_of(tmp_path, f"postgresql+psycopg://a:b@127.0.0.1:{hanging}/c")) as client:
            started = time.monotonic()
            answers = [client.get("/readyz"), client.get("/readyz")]
            took = time.monotonic() - started
            asking = [thread for thread in threading.enumerate() if thread.name == "question"]
            alive = client.get("/healthz")

        assert [answer.status_code for answer in answers] == [503, 503]
        assert answers[0].json()["database"] == f"no answer within {health.WITHIN_S} s"
        assert answers[0].json()["disk"] == "ok"
        assert took < 15
        assert len(asking) == 1  # what hangs is not asked again
        assert alive.status_code == 200

    def test_a_request_gives_up_a_host_that_hangs(self, tmp_path: Path, hanging: int) -> None:
        url = f"postgresql+psycopg://a:b@127.0.0.1:{hanging}/c?connect_timeout=2"
        with asked(settings_of(tmp_path, url)) as client:
            answer = client.get("/api/v1/me")

        assert answer.status_code == 503
        assert "retry-after" in answer.headers


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readiness waits for what comes at once on a machine that has nothing else to do."""
    monkeypatch.setattr(health, "WITHIN_S", 20)


@pytest.mark.usefixtures("patient")
def test_a_database_that_can_only_be_read(tmp_path: Path) -> None:
    with postgres_database() as postgres_url:
        database = connect(postgres_url)
        upgrade(database.engine)
        database.dispose()
        mark = "&" if "?" in postgres_url else "?"
        url = f"{postgres_url}{mark}options=-c%20default_transaction_read_only%3Don"
        with asked(settings_of(tmp_path, url)) as client:
            ready = client.get("/readyz")
            written = client.post("/sign-in", data={"email": "a@example.org", "password": "wrong"})

    assert ready.status_code == 503
    assert ready.json()["database"] == "The database can only be read."
    assert written.status_code == 503


@pytest.mark.usefixtures("patient")
def test_what_only_delays_work_is_a_warning(tmp_path: Path, nobody: int) -> None:
    settings = settings_of(tmp_path, "").model_copy(
        update={
            "broker_url": f"redis://127.0.0.1:{nobody}/0",
            "database_url": f"sqlite:///{tmp_path / 'a.db'}",
        }
    )
    database = connect(settings.sqlalchemy_url)
    upgrade(database.engine)
    database.dispose()
    with asked(settings) as client:
        answer = client.get("/readyz")

    assert answer.status_code == 200
    told = answer.json()
    assert (told["status"], told["database"], told["migrations"]) == ("ok", "ok", "ok")
    assert told["warnings"]["workers"] == "none for: io, gpu"
    assert "upkeep" in told["warnings"]
    assert told["warnings"]["broker"].startswith("does not answer")


def test_a_request_that_hangs_is_answered_and_what_comes_later_dropped(tmp_path: Path) -> None:
    with postgres_database() as url:
        database = connect(url)
        Base.metadata.create_all(database.engine)
        app = create_app(settings_of(tmp_path, url), publish=lambda _: None)
        with TestClient(app, headers=HEADERS, raise_server_exceptions=False) as client:
            client.get("/healthz")
            part_of(app, Lateness).late_s = 0.5
            with closing(database.write()) as other:
                other.execute(text('LOCK TABLE "user" IN ACCESS EXCLUSIVE MODE'))
                # This client waits until the thread has ended; one behind a socket has its answer before.
                free = threading.Timer(1.5, other.rollback)
                free.start()
                late = client.post("/sign-in", data={"email": "a@example.org", "password": "wrong"})
                free.join()
            part_of(app, Lateness).late_s = 30
            next_one = client.get("/api/v1/me")
        database.dispose()

    assert late.status_code == 503
    assert "retry-after" in late.headers
    assert "The server took too long." in late.text
    assert next_one.status_code == 401


class TestOutageOf:
    def test_a_full_disk(self, tmp_path: Path) -> None:
        with (
            pytest.raises(OSError, match="No space") as of_file,
            Path("/dev/full").open("wb", buffering=0) as file,
        ):
            file.write(b"x")
        database = connect(f"sqlite:///{tmp_path / 'a.db'}")
        with database.write.begin() as session:
            session.execute(text("PRAGMA max_page_count = 2"))
            session.execute(text("CREATE TABLE a (b)"))
            with pytest.raises(DBAPIError) as of_a_database:
                session.execute(text("INSERT INTO a VALUES (zeroblob(100000))"))
        database.dispose()

        assert outage_of(of_file.value) == DISK_FULL
        assert outage_of(of_a_database.value) == DISK_FULL

    def test_a_file_that_can_only_be_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        sqlite3.connect(path).close()
        database = connect(f"sqlite:///file:{path}?mode=ro&uri=true")
        with pytest.raises(DBAPIError) as refused, database.write.begin() as session:
            session.execute(text("CREATE TABLE a (b)"))
        database.dispose()

        assert outage_of(refused.value) == READ_ONLY

    def test_a_statement_that_takes_too_long(self, postgres_url: str) -> None:
        database = connect(postgres_url, statement_timeout_s=1)
        with pytest.raises(DBAPIError) as late, database.read.begin() as session:
            session.execute(text("SELECT pg_sleep(5)"))
        database.dispose()

        assert outage_of(late.value) == LATE

    def test_a_connection_that_was_ended(self, postgres_url: str) -> None:
        database = connect(postgres_url)
        with pytest.raises(DBAPIError) as lost, database.write.begin() as session:
            session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        database.dispose()

        assert outage_of(lost.value) == AWAY

    def test_a_row_that_others_hold(self, postgres_url: str) -> None:
        database = connect(postgres_url)
        with database.write.begin() as holding, database.write.begin() as waiting:
            holding.execute(text("SELECT pg_advisory_xact_lock(7)"))
            waiting.execute(text("SET LOCAL lock_timeout = 10"))
            with pytest.raises(DBAPIError) as busy:
                waiting.execute(text("SELECT pg_advisory_xact_lock(7)"))
        database.dispose()

        assert outage_of(busy.value) == BUSY

    @pytest.mark.parametrize("statement", ["SELECT * FROM nowhere", "SELEC 1"])
    def test_our_own_mistakes_are_none(self, tmp_path: Path, postgres_url: str, statement: str) -> None:
        for url in (f"sqlite:///{tmp_path / 'a.db'}", postgres_url):
            database = connect(url)
            with pytest.raises(DBAPIError) as mistaken, database.read.begin() as session:
                session.execute(text(statement))
            database.dispose()
            assert outage_of(mistaken.value) is None
        assert outage_of(OSError(os.EX_OSERR, "another")) is None
