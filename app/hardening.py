"""Headers and limits that hold for every answer, whatever the route does."""

import random
import re

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounts.errors import NotSignedIn
from app.deps import identify
from app.languages import gettext
from app.problems import on_http_error

# Everything comes from us; nothing inline, nothing framed, forms only to us.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
MAX_BODY_BYTES = 2 * 1024 * 1024
SMALL_BODY_BYTES = 64 * 1024  # more is read only from somebody we know
PAUSE_S = 30.0  # between two pieces of a body
TOO_SLOW, TOO_LARGE, UNAUTHENTICATED = 408, 413, 401
BUSY = 503
DIGITS = 12  # of a length; Python reads no number of thousands of them
PLACES = 32  # anyio has 40 threads; the rest serve files and spool uploads
PATIENCE_S = 4.0
# Not all of them at the same moment, or the same crowd is there again.
COME_AGAIN_S = (1, 2, 3)
UNGATED_PATHS = ("/static/", "/healthz")  # need no database


class SecurityHeaders:
    """Add the headers that browsers act on."""

    def __init__(self, app: ASGIApp, *, is_secure: bool) -> None:
        self.app = app
        self.is_secure = is_secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if self.is_secure:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class BodyTooLarge(HTTPException):
    """The body is, or grew while it was read, past its limit."""

    def __init__(self, limit: int) -> None:
        size = f"{limit // 1024**2} MB" if limit >= 1024**2 else f"{limit // 1024} KB"
        detail = f"This address takes at most {size}; nothing was stored."
        super().__init__(TOO_LARGE, detail, headers={"Connection": "close"})


class BodyTooSlow(HTTPException):
    """The body stopped arriving."""

    def __init__(self) -> None:
        detail = "The request did not arrive in time; nothing was stored. Send it again."
        super().__init__(TOO_SLOW, detail, headers={"Connection": "close"})


class _Unknown(HTTPException):
    """As `NotSignedIn`; the framework lets nothing else through from where it reads a body."""

    def __init__(self) -> None:
        headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
        super().__init__(UNAUTHENTICATED, NotSignedIn().detail, headers=headers)


def declared_length(scope: Scope) -> int | None:
    """Bytes of the body by its header; None where there is none.

    Raises:
        BodyTooLarge: it is no number, or one of more digits than any body has bytes.
    """
    declared = dict(scope["headers"]).get(b"content-length")
    if declared is None:
        return None
    if not declared.isdigit() or len(declared) > DIGITS:
        raise BodyTooLarge(MAX_BODY_BYTES)
    return int(declared)


async def read_small_body(scope: Scope, receive: Receive, *, seconds: float) -> bytes | None:
    """The whole body, which nobody has looked into; None where the client went away.

    Raises:
        BodyTooLarge: more than SMALL_BODY_BYTES.
        BodyTooSlow: the last of it did not arrive within so many seconds.
    """
    if (declared_length(scope) or 0) > SMALL_BODY_BYTES:
        raise BodyTooLarge(SMALL_BODY_BYTES)
    body: bytes = b""
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > SMALL_BODY_BYTES:
                raise BodyTooLarge(SMALL_BODY_BYTES)
            if not message.get("more_body"):
                return body
    raise BodyTooSlow


async def _receive_in_time(receive: Receive) -> Message:
    with anyio.move_on_after(PAUSE_S):
        return await receive()
    raise BodyTooSlow


class BodyLimit:
    """Refuse bodies above a limit, counted while they arrive; uploads have a larger one, answers a smaller.

    The framework reads and parses a body before it asks who calls. So of nobody in particular it gets to see
    no more than SMALL_BODY_BYTES.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        upload_paths: re.Pattern[str],
        small_paths: re.Pattern[str],
        max_upload_bytes: int,
    ) -> None:
        self.app = app
        self.small_paths = small_paths
        self.upload_paths = upload_paths
        self.max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self._limit_of(scope["path"].rstrip("/"))
        seen, is_known = 0, False

        async def count() -> Message:
            # An HTTP error from here passes through the framework's own reading of bodies unchanged.
            nonlocal seen, is_known
            message = await receive()
            seen += len(message.get("body", b""))
            size = max(seen, declared_length(scope) or 0)
            if size > limit:
                raise BodyTooLarge(limit)
            if size > SMALL_BODY_BYTES and not is_known:
                await _require_known(scope)
                is_known = True
            return message

        await self.app(scope, count, send)

    def _limit_of(self, path: str) -> int:
        if self.upload_paths.fullmatch(path):
            return self.max_upload_bytes
        return SMALL_BODY_BYTES if self.small_paths.fullmatch(path) else MAX_BODY_BYTES


async def _require_known(scope: Scope) -> None:
    request = Request(scope)
    await anyio.to_thread.run_sync(identify, request)
    if request.state.user is None:
        raise _Unknown


class Gate:
    """Let in fewer requests at once than there are threads to serve them; the others wait, in order.

    A request keeps its database connection from one step in a thread to the next. Were all threads taken by
    requests that wait for a connection, those that hold one would never get a thread to finish in.

    Who waits for the network needs no thread and no place: a body is awaited outside, and once an answer of
    known length or an event stream begins, its database session is over. (A download written row by row has
    neither and keeps its place.)
    """

    def __init__(self, app: ASGIApp, *, places: int = PLACES, patience_s: float = PATIENCE_S) -> None:
        self.app = app
        self.places = anyio.Semaphore(places, fast_acquire=True)
        self.patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer that there is too much to do."""
        if scope["type"] != "http" or scope["path"].startswith(UNGATED_PATHS):
            await self.app(scope, receive, send)
            return
        try:
            first = await _receive_in_time(receive)
        except BodyTooSlow as error:
            await on_http_error(Request(scope), error)(scope, receive, send)
            return
        if not await self._has_place():
            await on_http_error(Request(scope), Busy())(scope, receive, send)
            return
        visit = _Visit(self.places, first, receive, send)
        try:
            await self.app(scope, visit.receive, visit.send)
        finally:
            visit.leave()

    async def _has_place(self) -> bool:
        """Take a place, waiting for it if need be."""
        try:
            self.places.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self.patience_s):
                await self.places.acquire()
                return True
            return False
        return True


class Busy(HTTPException):
    """There is no place among those that are served at once, and there will be none for a while."""

    def __init__(self) -> None:
        detail = gettext(
            "The server has more to do than it can at this moment; nothing was changed. Try again soon."
        )
        super().__init__(BUSY, detail, headers={"Retry-After": str(random.choice(COME_AGAIN_S))})


class _Visit:
    """One request, which is inside with a place of its own, or waits outside for its network."""

    def __init__(self, places: anyio.Semaphore, first: Message, receive: Receive, send: Send) -> None:
        self._places = places
        self._first: Message | None = first
        self._has_more: bool = first.get("more_body", False)
        self._receive = receive
        self._send = send
        self._is_inside = True

    def leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._places.release()

    async def receive(self) -> Message:
        if self._first is not None:
            message, self._first = self._first, None
            return message
        if not self._has_more:
            return await self._receive()  # waits for the client to go away
        self.leave()
        message = await _receive_in_time(self._receive)
        self._has_more = message.get("more_body", False)
        if not self._has_more:
            await self._places.acquire()  # without a limit: what was sent, perhaps for minutes, is served
            self._is_inside = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(scope=message)
            if "content-length" in headers or headers.get("content-type", "").startswith("text/event-stream"):
                self.leave()
        await self._send(message)
