"""Requests that no client library would send, straight to the application."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio
from fastapi import FastAPI
from starlette.types import Message


@dataclass
class Answer:
    """What the application sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def ask(
    app: FastAPI,
    method: str,
    path: str,
    headers: Iterable[tuple[str, bytes]] = (),
    *,
    query: bytes = b"",
    body: bytes = b"",
) -> Answer:
    """Send a request with any bytes; gives the answer, or raises what the application raised."""
    answer = Answer()
    pieces = [body]

    async def receive() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        await anyio.sleep(20)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]
            }
        else:
            answer.body += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": query,
        "root_path": "",
        "headers": [(name.encode(), value) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    anyio.run(app, scope, receive, send)
    return answer
