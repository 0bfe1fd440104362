"""What holds for every answer."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import anyio
import httpx2
import pytest
import uvicorn
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from app.db import Base, connect
from app.hardening import MAX_BODY_BYTES, Gate
from app.main import create_app
from app.settings import Settings
from tests.factories import make_token, make_user

T = TypeVar("T")


def test_every_answer_carries_the_headers(anonymous: TestClient) -> None:
    for path in ("/healthz", "/sign-in", "/nowhere", "/api/v1/openapi.json"):
        headers = anonymous.get(path).headers

        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


def test_a_body_that_says_it_is_too_large_is_refused_unread(client: TestClient) -> None:
    response = client.post("/api/v1/tokens", content=b"x" * (MAX_BODY_BYTES + 1))

    assert response.status_code == 413
    assert "at most 2 MB" in response.json()["detail"]


def test_a_body_that_grows_past_the_limit_is_refused(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b"x" * 65536

    response = client.post("/api/v1/tokens", content=chunks(), headers={"content-type": "application/json"})

    assert response.status_code == 413


def test_a_request_id_is_given_back_unless_it_could_forge_a_log_line(anonymous: TestClient) -> None:
    assert anonymous.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    forged = anonymous.get("/healthz", headers={"x-request-id": "a b=c"}).headers["x-request-id"]
    assert forged != "a b=c"


class TestGate:
    def test_a_crowd_is_answered_quickly_and_without_errors(self, crowded: tuple[str, str]) -> None:
        url, token = crowded
        people, each = 100, 3
        start = threading.Barrier(people)

        def ask(n: int) -> list[int]:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=50) as client:
                start.wait()
                return [
                    client.post("/api/v1/tokens", json={"name": f"{n}-{turn}"}).status_code
                    for turn in range(each)
                ]

        started = time.monotonic()
        with ThreadPoolExecutor(people) as threads:
            statuses = [status for part in threads.map(ask, range(people)) for status in part]

        assert set(statuses) <= {201, 503}
        assert statuses.count(201) >= people
        assert time.monotonic() - started < 40  # locked up, they were answered after a minute

    def test_annotators_whose_json_goes_by_another_name_lock_nobody_up(
        self, crowded: tuple[str, str]
    ) -> None:
        url, token = crowded
        people = 64
        start = threading.Barrier(people)

        def ask(n: int) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=50) as client:
                start.wait()
                if n % 2:
                    return client.post("/api/v1/tokens", json={"name": f"{n}"}).status_code
                named = {
                    "content-type": "application/vnd.clarinet+json"
                }  # the framework reads it, in threads
                path = f"/api/v1/campaigns/{uuid4()}/questions"
                return client.post(path, content=b'{"count": 1}', headers=named).status_code

        started = time.monotonic()
        with ThreadPoolExecutor(people) as threads:
            statuses = set(threads.map(ask, range(people)))

        assert statuses <= {201, 404, 503}
        assert {201, 404} <= statuses
        assert time.monotonic() - started < 40

    def test_who_finds_no_place_is_told_to_come_again(self) -> None:
        statuses, problem = _in_a_loop_of_its_own(_knock_while_full)

        assert statuses == [503, 200]
        assert problem["title"] == "Service Unavailable"
        assert "Try again" in problem["detail"]
        assert problem["retry-after"] == "1"

    def test_a_body_that_arrives_slowly_takes_no_place_nor_does_its_answer(self) -> None:
        assert _in_a_loop_of_its_own(_free_places_while_waiting) == [2, 1, 2, 2, 1, 2]


def _in_a_loop_of_its_own(work: Callable[[], Awaitable[T]]) -> T:
    """Run it in a thread: the main thread's loop belongs to the browser's driver once a browser test ran."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, work).result()


async def _knock_while_full() -> tuple[list[int], dict[str, str]]:
    """Two requests through a gate with no place, then with one; gives statuses and the first answer."""
    gate = Gate(JSONResponse({}), places=1, patience_s=0.05)
    transport = httpx2.ASGITransport(gate)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        gate.others.places.acquire_nowait()
        refused = await client.post("/api/v1/tokens")
        gate.others.places.release()
        served = await client.post("/api/v1/tokens")
    assert gate.others.places.value == 1
    problem = refused.json() | {"retry-after": refused.headers["retry-after"]}
    return [refused.status_code, served.status_code], problem


def test_annotators_have_places_of_their_own() -> None:
    assert _in_a_loop_of_its_own(_knock_in_both_rooms) == [503, 200, 200, 503]


def test_a_long_queue_of_annotators_is_told_to_come_again_at_once() -> None:
    assert _in_a_loop_of_its_own(_queue_up) == [503, 200, 200]


async def _queue_up() -> list[int]:
    """Three answers while the only place is taken and two may wait; the last one is told first."""
    gate = Gate(JSONResponse({}), places=1, patience_s=10)
    gate.answering.longest_queue = 2
    transport = httpx2.ASGITransport(gate)
    seen: list[int] = []

    async def knock(client: httpx2.AsyncClient) -> None:
        seen.append((await client.post("/api/v1/campaigns/1/answers")).status_code)

    gate.answering.places.acquire_nowait()
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://test") as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(3):
            tasks.start_soon(knock, client)
        while not seen:
            await anyio.sleep(0.01)
        gate.answering.places.release()
    return seen


async def _knock_in_both_rooms() -> list[int]:
    """A page and an answer while all pages' places are taken; then both while all annotators' are."""
    gate = Gate(JSONResponse({}), places=1, patience_s=0.05)
    transport = httpx2.ASGITransport(gate)
    answers, page = "/api/v1/campaigns/1/answers", "/campaigns/1"
    seen = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        for room in (gate.others, gate.answering):
            room.places.acquire_nowait()
            seen += [(await client.get(page)).status_code, (await client.post(answers)).status_code]
            room.places.release()
        # Downloads of answers are slow, and no annotator's.
        gate.answering.places.acquire_nowait()
        assert (await client.get(answers)).status_code == 200
    return seen


async def _free_places_while_waiting() -> list[int]:
    """Free places of two: at waits for the body and between them, with all of it, and while answering."""
    seen: list[int] = []
    waiting = iter([True, True, False])

    async def receive() -> Message:
        seen.append(gate.others.places.value)
        return {"type": "http.request", "body": b"x", "more_body": next(waiting)}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            seen.append(gate.others.places.value)

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        seen.append(gate.others.places.value)
        await receive()
        await receive()
        seen.append(gate.others.places.value)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(app, places=2)
    await gate({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    assert gate.others.places.value == 2
    return seen


@pytest.fixture(params=["sqlite", "postgresql"])
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A real server over each database, and an admin's token."""
    settings = Settings(environment="test", data_dir=tmp_path, _env_file=None)
    is_sqlite = request.param == "sqlite"
    database = connect(settings.sqlalchemy_url if is_sqlite else request.getfixturevalue("postgres_url"))
    Base.metadata.create_all(database.engine)
    with database.write() as session:
        token = make_token(session, make_user(session, role="admin"))
    app = create_app(settings, database=database, publish=lambda _: None)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", token
    server.should_exit = True
    thread.join(10)
    with database.write.begin() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(table.delete())
    database.dispose()


def test_versioned_files_are_kept_and_others_are_checked(anonymous: TestClient) -> None:
    versioned = anonymous.get("/static/css/base.css", params={"v": "1"})
    plain = anonymous.get("/static/css/base.css")

    assert "immutable" in versioned.headers["cache-control"]
    assert plain.headers["cache-control"] == "no-cache"
    assert (
        anonymous.get("/static/css/base.css", headers={"if-none-match": plain.headers["etag"]}).status_code
        == 304
    )
