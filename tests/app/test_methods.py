"""HEAD, methods that an address does not take, and requests that trickle."""

import re
import socket
import threading
import time
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.stores.folder import FolderStorage
from tests.app.test_access import address, routes_of
from tests.app.test_hardening import crowded  # noqa: F401  # a fixture
from tests.factories import make_campaign, make_run
from worker.local.patience import PatientHttp


def test_head_is_get_without_a_body(app: FastAPI, client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    there = {"{campaign_id}": str(campaign.id), "{dataset_id}": str(campaign.dataset_id)}
    asked = 0
    for method, path, _ in routes_of(app):
        if method != "GET" or path.endswith("/readyz"):
            continue
        here = re.sub(r"\{\w+\}", lambda name: there.get(name[0], str(uuid4())), path)
        got, head = client.get(here), client.head(here)
        asked += 1

        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert head.headers.get("content-type") == got.headers.get("content-type"), path
        if "content-length" in got.headers and "text/html" not in got.headers.get("content-type", ""):
            assert abs(int(head.headers["content-length"]) - int(got.headers["content-length"])) < 50, path

    assert asked > 50


def test_a_look_at_a_download_is_none(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    session.commit()
    path = f"/api/v1/campaigns/{campaign.id}/labels"

    def downloads() -> int:
        lines = client.get("/api/v1/journal").json()["items"]
        return sum(line["action"] == "labels-downloaded" for line in lines)

    assert (client.head(path).status_code, downloads()) == (200, 0)
    assert (client.get(path).status_code, downloads()) == (200, 1)


def test_head_of_a_stream_ends(client: TestClient, session: Session, storage: FolderStorage) -> None:
    run = make_run(session, storage)
    session.commit()

    head = client.head(f"/api/v1/runs/{run.id}/events")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def test_a_method_that_is_not_taken_is_told_which_are(app: FastAPI, client: TestClient) -> None:
    allowed: dict[str, set[str]] = {}
    for method, path, _ in routes_of(app):
        allowed.setdefault(path, set()).update({method, "HEAD"} if method == "GET" else {method})
    for path, methods in allowed.items():
        answer = client.request("TRACE", address(path))

        assert answer.status_code == 405, path
        assert methods <= set(answer.headers["allow"].split(", ")), path

    of_list = client.put("/api/v1/campaigns").headers["allow"]
    assert of_list == "GET, HEAD, POST"
    assert client.put("/api/v1/runs/compare").headers["allow"] == "GET, HEAD"
    of_run = client.put(f"/api/v1/runs/{uuid4()}").headers["allow"]
    assert {"DELETE", "GET", "PATCH"} <= set(of_run.split(", "))


def test_a_body_that_trickles_is_not_waited_for(
    crowded: tuple[str, str],  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece comes in time, and all of them would take an hour."""
    monkeypatch.setattr("app.hardening.GRACE_S", 0.5)
    monkeypatch.setattr("app.hardening.SLOWEST", 1000)
    url, token = crowded
    address_ = urlsplit(url)
    head = (
        f"POST /api/v1/tokens HTTP/1.1\r\nHost: {address_.netloc}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    with socket.create_connection((address_.hostname, address_.port), timeout=20) as slow:
        slow.sendall(head.encode())
        began, answer = time.monotonic(), b""
        slow.settimeout(0.1)
        while not answer and time.monotonic() - began < 50:
            slow.sendall(b" ")
            try:
                answer = slow.recv(65_536)
            except TimeoutError:
                continue

    assert answer.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 45


def test_a_head_that_trickles_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.local.patience.HEAD_S", 0.4)
    config = uvicorn.Config(
        JSONResponse({}), port=0, log_level="error", ws="none", http=PatientHttp, lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        for first in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):  # also behind a request that was served
            with socket.create_connection((host, port), timeout=60) as slow:
                if first:
                    slow.sendall(first)
                    answer = b""
                    while not answer.endswith(b"{}"):
                        answer += slow.recv(65_536)
                slow.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
                began = time.monotonic()
                assert slow.recv(1) == b""  # the server closes
                assert time.monotonic() - began < 45
    finally:
        server.should_exit = True
        thread.join(300)
