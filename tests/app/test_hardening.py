"""What holds for every answer."""

import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import anyio
import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session
from starlette.types import Message, Receive, Scope, Send

from app.accounts.models import User
from app.db import Base, Database, connect
from app.fast.layer import FastLayer
from app.gate import Gate
from app.hardening import MAX_BODY_BYTES
from app.main import create_app
from app.pages import asset
from app.settings import Settings
from tests.factories import make_token, make_user
from tests.middleware import part_of

T = TypeVar("T")


def test_every_answer_carries_the_headers(anonymous: TestClient) -> None:
    for path in ("/healthz", "/sign-in", "/nowhere", "/api/v1/openapi.json"):
        headers = anonymous.get(path).headers

        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


def test_a_body_that_says_it_is_too_large_is_refused_unread(client: TestClient) -> None:
    response = client.post("/api/v1/simulated-annotators", content=b"x" * (MAX_BODY_BYTES + 1))

    assert response.status_code == 413
    assert "at most 2 MB" in response.json()["detail"]


def test_a_body_that_grows_past_the_limit_is_refused(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b"x" * 65536

    response = client.post(
        "/api/v1/simulated-annotators", content=chunks(), headers={"content-type": "application/json"}
    )

    assert response.status_code == 413


def json_of(size: int) -> bytes:
    """Answers that fit, and as many bytes of them."""
    item = b'{"question_id": 1, "value": "no", "key": "00000000-0000-4000-8000-000000000000"}'
    return b'{"answers": [' + b", ".join([item] * (size // (len(item) + 2))) + b"]}"


JSON = {"content-type": "application/json"}
ANSWERS = f"/api/v1/campaigns/{UUID(int=7)}/answers"  # fixed: each test process names its cases alike
OF_ANSWERS = (ANSWERS, "/api/v1/campaigns/xx/leases/renew")


class TestNobodyIsParsed:
    """Who is not known makes us read little, and parse nothing of answers."""

    @pytest.fixture
    def plain(self, settings: Settings, database: Database) -> Iterator[TestClient]:
        """Nobody's client of a server whose answers the framework serves."""
        app = create_app(settings, database=database, publish=lambda _: None, answering="plain")
        with TestClient(app, raise_server_exceptions=False) as client:
            yield client

    @pytest.fixture
    def parsed(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """What was handed to a JSON parser."""
        seen: list[object] = []

        def parse(_: Any, body: bytes, /, **__: object) -> None:
            seen.append(body)
            raise AssertionError("parsed")

        monkeypatch.setattr("pydantic.BaseModel.model_validate_json", classmethod(parse))
        monkeypatch.setattr("starlette.requests.Request.json", lambda request: parse(request, b""))
        return seen

    @pytest.mark.parametrize("path", [ANSWERS, "/api/v1/campaigns", "/api/v1/simulated-annotators"])
    def test_of_two_megabytes(self, anonymous: TestClient, parsed: list[object], path: str) -> None:
        response = anonymous.post(path, content=json_of(1_900_000), headers=JSON)

        assert response.status_code == (413 if path == ANSWERS else 401)
        assert response.headers["content-type"] == "application/problem+json"
        assert len(response.content) < 1_000
        assert parsed == []

    def test_nor_where_it_does_not_say_how_much(self, anonymous: TestClient, parsed: list[object]) -> None:
        pieces = (b" " * 65_536 for _ in range(20))

        response = anonymous.post("/api/v1/simulated-annotators", content=pieces, headers=JSON)

        assert (response.status_code, parsed) == (401, [])

    @pytest.mark.parametrize("path", OF_ANSWERS)
    def test_nor_a_small_one_of_answers(
        self, anonymous: TestClient, plain: TestClient, parsed: list[object], path: str
    ) -> None:
        """Neither where the address has no campaign, with which the framework deals, nor in the plain way."""
        for client in (anonymous, plain):
            response = client.post(path, content=b"{" * 1_000, headers=JSON)

            assert (response.status_code, response.json()["type"]) == (401, "/problems/not-signed-in")
            assert parsed == []
            assert client.post(path, content=b"{}").status_code == 401

    @pytest.mark.parametrize("path", OF_ANSWERS)
    def test_known_people_are_told_alike_what_is_wrong(
        self, client: TestClient, plain: TestClient, session: Session, annotator: User, path: str
    ) -> None:
        headers = {"Authorization": f"Bearer {make_token(session, annotator)}"}
        of_text = headers | {"content-type": "text/plain"}

        for served in (client, plain):
            for untold in (headers, of_text):
                assert served.post(path, content=b"{}", headers=untold).status_code == 415
            assert served.post(path, content=b"{", headers=headers | JSON).status_code == 422
            assert served.post(path, content=json_of(70_000), headers=headers | JSON).status_code == 413

    def test_known_people_may_send_more_elsewhere(self, client: TestClient) -> None:
        body = b'{"name": "' + b"x" * 100_000 + b'"}'

        assert client.post("/api/v1/simulated-annotators", content=body, headers=JSON).status_code == 422
        assert client.post(ANSWERS, content=body, headers=JSON).status_code == 413


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (ANSWERS, {"answers": [{}] * 200}),  # in the fast way
        (ANSWERS, {"answers": [{}] * 5_000, "x" * 5_000: 1}),
        ("/api/v1/simulated-annotators", dict.fromkeys(map(str, range(40)), "x" * 100)),
        ("/api/v1/simulated-annotators", dict.fromkeys(map(str, range(5_000)), "x" * 100)),
    ],
)
def test_of_many_errors_a_few_are_told(client: TestClient, path: str, wrong: dict[str, object]) -> None:
    response = client.post(path, json=wrong)
    problem = response.json()
    left_out = problem["errors_left_out"]

    assert response.status_code == 422
    assert len(problem["errors"]) <= 20
    assert len(response.content) < 8_000
    assert bool(left_out) == (f"{left_out:,} more errors" in problem["detail"])
    assert left_out == 0 or len(problem["errors"]) == 20
    # What has more fields than anything takes has one error: that it has too many.
    assert (left_out == 0) == (len(wrong) > 1_000 or "x" * 5_000 in wrong)


def test_answers_by_another_name_than_json_are_refused_in_words(client: TestClient) -> None:
    response = client.post(ANSWERS, content=b"{}", headers={"content-type": "text/plain"})

    assert (response.status_code, "application/json" in response.json()["detail"]) == (415, True)


@pytest.mark.parametrize("path", ["/api/v1/campaigns/{}/answers", "/api/v1/simulated-annotators"])
def test_who_sends_a_byte_now_and_then_is_not_waited_for(
    crowded: tuple[str, str], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("app.fast.layer.READ_S", 0.4)
    monkeypatch.setattr("app.hardening.PAUSE_S", 0.4)
    url, token = crowded
    address = urlsplit(url)
    head = (
        f"POST {path.format(uuid4())} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=20) as slow:
        slow.sendall(head.encode() + b'{"ans')
        answer = b""
        while piece := slow.recv(65_536):  # until the server closes
            answer += piece

    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive in time" in answer


def test_a_request_id_is_given_back_unless_it_could_forge_a_log_line(anonymous: TestClient) -> None:
    assert anonymous.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    forged = anonymous.get("/healthz", headers={"x-request-id": "a b=c"}).headers["x-request-id"]
    assert forged != "a b=c"


class TestGate:
    @pytest.mark.long
    def test_a_crowd_is_answered_quickly_and_without_errors(self, crowded: tuple[str, str]) -> None:
        url, token = crowded
        people, each = 100, 2
        start = threading.Barrier(people)

        def ask(n: int) -> list[int]:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=50) as client:
                start.wait()
                return [
                    client.post("/api/v1/simulated-annotators", json={"name": f"{n}-{turn}"}).status_code
                    for turn in range(each)
                ]

        started = time.monotonic()
        with ThreadPoolExecutor(people) as threads:
            statuses = [status for part in threads.map(ask, range(people)) for status in part]

        assert set(statuses) <= {201, 503}
        assert statuses.count(201) >= people
        assert time.monotonic() - started < 40  # locked up, they were answered after a minute

    @pytest.mark.long
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
                    return client.post("/api/v1/simulated-annotators", json={"name": f"{n}"}).status_code
                named = {"content-type": "application/vnd.clarinet+json"}
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
        assert problem["retry-after"] in {"1", "2", "3"}

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
        gate.places.acquire_nowait()
        refused = await client.post("/api/v1/simulated-annotators")
        gate.places.release()
        served = await client.post("/api/v1/simulated-annotators")
    assert gate.places.value == 1
    problem = refused.json() | {"retry-after": refused.headers["retry-after"]}
    return [refused.status_code, served.status_code], problem


def test_annotators_pass_by_the_pages_queue(app: FastAPI, client: TestClient) -> None:
    client.get("/healthz")
    gate = part_of(app, Gate)
    gate.places, gate.patience_s = anyio.Semaphore(0), 0.05
    campaign = f"/api/v1/campaigns/{uuid4()}"

    assert client.get("/api/v1/me").status_code == 503
    assert client.get(f"{campaign}/answers").status_code == 503  # a download, which is slow
    assert client.post(f"{campaign}/questions", json={"count": 1}).status_code == 404


def test_annotators_in_a_long_line_are_told_to_come_again_and_pages_are_served(
    app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get("/healthz")
    monkeypatch.setattr(part_of(app, FastLayer).writer, "is_full", lambda: True)

    refused = client.post(f"/api/v1/campaigns/{uuid4()}/questions", json={"count": 1})

    assert refused.status_code == 503
    assert refused.json()["detail"].endswith("nothing was changed. Try again soon.")
    assert refused.headers["retry-after"] in {"1", "2", "3"}
    assert "x-request-id" in refused.headers
    assert "content-security-policy" in refused.headers
    assert client.get("/api/v1/me").status_code == 200


async def _free_places_while_waiting() -> list[int]:
    """Free places of two: at waits for the body and between them, with all of it, and while answering."""
    seen: list[int] = []
    waiting = iter([True, True, False])

    async def receive() -> Message:
        seen.append(gate.places.value)
        return {"type": "http.request", "body": b"x", "more_body": next(waiting)}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            seen.append(gate.places.value)

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        seen.append(gate.places.value)
        await receive()
        await receive()
        seen.append(gate.places.value)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(app, places=2)
    await gate({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    assert gate.places.value == 2
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
    thread.join(300)
    # Anew, for the journal lets nobody delete its lines.
    Base.metadata.drop_all(database.engine)
    Base.metadata.create_all(database.engine)
    database.dispose()


def test_versioned_files_are_kept_and_others_are_checked(anonymous: TestClient) -> None:
    versioned = anonymous.get(asset("css/base.css"))
    other = anonymous.get("/static/0123456789ab/css/base.css")
    missing = anonymous.get(asset("css/none.css"))
    plain = anonymous.get("/static/css/base.css")

    assert "immutable" in versioned.headers["cache-control"]
    assert plain.headers["cache-control"] == other.headers["cache-control"] == "no-cache"
    assert plain.content == versioned.content == other.content
    assert (missing.status_code, missing.headers.get("cache-control")) != (
        404,
        versioned.headers["cache-control"],
    )
    assert (
        anonymous.get("/static/css/base.css", headers={"if-none-match": plain.headers["etag"]}).status_code
        == 304
    )
