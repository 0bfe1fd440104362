"""Compressed answers: pages, scripts, styles and text downloads, to browsers and programs that take gzip."""

import zlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 500  # below, a packet is a packet
LEVEL = 5  # a page of 100 KB in 2 ms
GZIP = 16 + zlib.MAX_WBITS
KINDS = ("text/", "application/json", "application/problem+json", "application/x-ndjson", "image/svg+xml")
EXCEPT = "text/event-stream"  # each event must leave at once


class Compressed:
    """Compress what GET answers, where it is text and of some length.

    Answers to POST stay as they are: annotators' are small, and there are thousands a second.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        wanted = scope["type"] == "http" and scope["method"] == "GET" and takes_gzip(Headers(scope=scope))
        await self.app(scope, receive, _Answer(send).send if wanted else send)


def takes_gzip(headers: Headers) -> bool:
    """Whether the client lists gzip, and not with the weight of nothing."""
    for part in headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.replace(" ", "").partition(";q=")
        if coding in {"gzip", "*"}:
            return weight.strip("0.") != "" or not weight
    return False


class _Answer:
    """One answer, whose head waits for the first piece of its body."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._packs = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] != "http.response.body":
            await self._flush_start()
            await self._send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._start is not None:
            self._packs = _is_worth_it(self._start, body, more=more)
        if self._packs:
            body = self._packer.compress(body)
            body += self._packer.flush(zlib.Z_SYNC_FLUSH if more else zlib.Z_FINISH)
            self._rewrite_start(None if more else len(body))
        await self._flush_start()
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def _rewrite_start(self, length: int | None) -> None:
        if self._start is None:
            return
        headers = MutableHeaders(scope=self._start)
        headers["Content-Encoding"] = "gzip"
        headers.add_vary_header("Accept-Encoding")
        if "etag" in headers and not headers["etag"].startswith("W/"):
            headers["ETag"] = f"W/{headers['etag']}"  # the same content in other bytes
        del headers["Content-Length"]
        if length is not None:
            headers["Content-Length"] = str(length)

    async def _flush_start(self) -> None:
        if self._start is not None:
            await self._send(self._start)
            self._start = None


def _is_worth_it(start: Message, body: bytes, *, more: bool) -> bool:
    headers = Headers(scope=start)
    kind = headers.get("content-type", "")
    return (
        kind.startswith(KINDS)
        and not kind.startswith(EXCEPT)
        and "content-encoding" not in headers
        and "content-range" not in headers
        and (more or len(body) >= LEAST_BYTES)
    )
