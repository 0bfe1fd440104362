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
    body: bytes | Iterable[bytes] = b"",
    is_cut_off: bool = False,
) -> Answer:
    """Send a request with any bytes; gives the answer, or raises what the application raised.

    A body in pieces is asked for one by one: what the iterable does in between happens while it arrives.
    Where it is cut off, its sender goes away behind the last of them.
    """
    answer = Answer()
    pieces = iter([body] if isinstance(body, bytes) else body)
    is_over = False

    async def receive() -> Message:
        nonlocal is_over
        if is_over:
            await anyio.sleep(0 if is_cut_off else 20)
            return {"type": "http.disconnect"}
        piece = next(pieces, None)
        is_over = piece is None or (isinstance(body, bytes) and not is_cut_off)
        if piece is None and is_cut_off:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece or b"", "more_body": not is_over}

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
