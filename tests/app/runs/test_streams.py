"""The event stream over a real server: live, holding no connection, gone at shutdown."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from app.claims import Claim
from app.db import Base, Database, connect
from app.main import create_app
from app.runs import trials
from app.runs.models import Run
from app.settings import Settings
from app.storage import Storage
from clarinet.recipes.doing import Doing
from tests.factories import NOW, make_run, make_token, make_user

SERVE = """
import sys
import uvicorn
from app.main import create_app
uvicorn.run(create_app(), port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=20, ws="none")
"""


@pytest.fixture
def own_app(tmp_path: Path) -> Iterator[FastAPI]:
    """The application over a database that several threads may use."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)
    yield create_app(settings, database=database, publish=lambda _: None)
    database.dispose()


@pytest.fixture
def server(own_app: FastAPI) -> Iterator[uvicorn.Server]:
    """The application behind uvicorn, on a free port."""
    server = uvicorn.Server(
        uvicorn.Config(own_app, port=0, log_level="error", timeout_graceful_shutdown=5, ws="none")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def run(own_app: FastAPI) -> Run:
    """A run of one trial that waits."""
    database: Database = own_app.state.database
    with database.write.begin() as session:
        return make_run(session, Storage(own_app.state.settings.artefact_dir), train=2)


@pytest.fixture
def browser(own_app: FastAPI, server: uvicorn.Server) -> Iterator[httpx2.Client]:
    """An admin's client."""
    with own_app.state.database.write() as session:
        token = make_token(session, make_user(session, role="admin"))
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{port}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20
    ) as client:
        yield client


def test_changes_arrive_while_the_stream_is_open_and_it_ends_with_the_run(
    own_app: FastAPI, browser: httpx2.Client, run: Run
) -> None:
    database: Database = own_app.state.database
    seen = []
    claim: Claim | None = None
    with browser.stream("GET", f"/runs/{run.id}/events") as response:
        for line in response.iter_lines():
            if line.startswith("event:"):
                seen.append(line.removeprefix("event: "))
            if line.startswith("data:") and '"queued"' in line:
                assert database.read.kw["bind"].pool.checkedout() == 0
                with database.write.begin() as session:
                    claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
            if line.startswith("data:") and '"running"' in line:
                assert claim is not None
                with database.write.begin() as session:
                    if '"features"' in line:
                        trials.end_cancelled(session, claim, now=NOW)
                    else:
                        trials.record_doing(session, claim, Doing("features", 64, 280))

    assert seen == ["update", "update", "update", "update", "end"]
    assert own_app.state.streams.open == 0


@pytest.mark.long
def test_an_open_stream_does_not_keep_a_server_process_from_ending(own_app: FastAPI, run: Run) -> None:
    with own_app.state.database.write() as session:
        token = make_token(session, make_user(session, role="admin"))
    data_dir: Path = own_app.state.settings.data_dir
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], env=os.environ | {"CLARINET_DATA_DIR": str(data_dir)}
    )
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx2.get(f"{url}/healthz")
            except httpx2.TransportError:
                assert server.poll() is None
                time.sleep(0.05)
            else:
                break
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.stream("GET", f"{url}/api/v1/runs/{run.id}/events", headers=headers) as response:
            next(response.iter_lines())
            server.send_signal(signal.SIGTERM)
            started = time.monotonic()
            server.wait(20)
    finally:
        server.kill()
        server.wait()

    assert time.monotonic() - started < 8  # long before the 20 s after which uvicorn would cut it off
