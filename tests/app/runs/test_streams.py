"""The event stream over a real server: live, holding no connection, gone at shutdown."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

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
from app.stores.folder import FolderStorage
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
    thread.join(300)
    assert not thread.is_alive()


@pytest.fixture
def run(own_app: FastAPI) -> Run:
    """A run of one trial that waits."""
    database: Database = own_app.state.database
    with database.write.begin() as session:
        return make_run(session, FolderStorage(own_app.state.settings.artefact_dir), train=2)


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


def report(epoch: int) -> trials.Report:
    return trials.Report(
        epoch=epoch,
        epochs=9,
        step=epoch,
        seconds=float(epoch),
        losses={"complementary": 1.0},
        target_accuracy=0.5,
        source_estimate=None,
    )


def blocks(text: str) -> list[str]:
    return text.strip().split("\r\n\r\n")


def blocks_of(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, value = line.split(": ", 1)
            block[name] = value
        elif block:
            yield block
            block = {}


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


def test_a_program_goes_on_behind_the_last_event_that_it_has(
    own_app: FastAPI, browser: httpx2.Client
) -> None:
    with own_app.state.database.write.begin() as session:
        run = make_run(session, FolderStorage(own_app.state.settings.artefact_dir), seeds=(0, 1), train=2)
        first, second = (trials.claim_trial(session, one.id, by="worker", now=NOW) for one in run.trials)
        assert first is not None
        assert second is not None
        for epoch in (1, 2, 3):
            trials.record_epoch(session, first, report(epoch), now=NOW)
        trials.record_epoch(session, second, report(1), now=NOW)
        trials.record_epoch(session, first, report(2), now=NOW)  # it was lost, and went on from epoch 1
        for claim in (first, second):
            trials.end_cancelled(session, claim, now=NOW)

    def told(since: str, **headers: str) -> list[tuple[int, int]]:
        answer = browser.get(f"/runs/{run.id}/events", params={"since": since}, headers=headers)
        events = [dict(part.split(": ", 1) for part in one.split("\r\n")) for one in blocks(answer.text)]
        assert events[-1]["id"] == "2-1"
        figures = [json.loads(one["data"]) for one in events if one["event"] == "epoch"]
        return sorted((one["seed"], one["epoch"]) for one in figures)

    assert told("0-0") == [(0, 1), (0, 2), (1, 1)]
    assert told("1-1") == [(0, 2)]
    assert told("3-1") == [(0, 2)]  # what it has of the third epoch was taken back
    assert told("2-1") == []
    assert told("0-0", **{"Last-Event-ID": "2-0"}) == [(1, 1)]


def test_all_pages_of_a_browser_are_told_what_changed_by_one_stream(
    own_app: FastAPI, browser: httpx2.Client, run: Run
) -> None:
    database: Database = own_app.state.database
    with database.write.begin() as session:
        other = make_run(
            session, FolderStorage(own_app.state.settings.artefact_dir), train=2, state="succeeded"
        )
        claim = trials.claim_trial(session, run.trials[0].id, by="worker", now=NOW)
    assert claim is not None
    ids = [str(run.id), str(other.id), str(uuid4())]
    seen: list[tuple[str, dict[str, Any]]] = []
    with browser.stream(
        "GET", f"http://127.0.0.1:{browser.base_url.port}/live", params={"run": ids}
    ) as response:
        for block in blocks_of(response.iter_lines()):
            seen.append((block["event"], json.loads(block["data"])))
            if len(seen) == 4:  # both pages, and the ends of the two that will not change
                with database.write.begin() as session:
                    trials.record_epoch(session, claim, report(1), now=NOW)
            if len(seen) == 5:
                with database.write.begin() as session:
                    trials.end_cancelled(session, claim, now=NOW)

    assert [(kind, ids.index(data["run"])) for kind, data in seen] == [
        ("pieces", 0),
        ("pieces", 1),
        ("end", 1),
        ("end", 2),
        ("pieces", 0),
        ("pieces", 0),
        ("end", 0),
    ]
    whole, changes = seen[0][1]["pieces"], seen[4][1]["pieces"]
    assert all(whole)
    assert len(changes) == len(whole)
    changed = [piece for piece in changes if piece is not None]
    assert 0 < len(changed) < len(whole)
    assert "1 of 9" in "".join(changed)
    assert "Labels it rests on" not in "".join(changed)
    assert 'name="csrf_token" value=""' in "".join(whole)  # the same for everybody
    assert not own_app.state.streams.pages


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
            server.wait(300)
    finally:
        server.kill()
        server.wait()

    assert time.monotonic() - started < 18  # before the 20 s after which uvicorn would cut it off
