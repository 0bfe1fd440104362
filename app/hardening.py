"""Headers and limits that hold for every answer, whatever the route does."""

import re

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounts.errors import NotSignedIn
from app.deps import identify
from app.problems import on_app_error, on_http_error

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
GRACE_S = 60.0  # for a body of any size; beyond it
SLOWEST = 2048  # bytes a second, on average: a phone on a slow network sends 5 KB
TOO_SLOW, TOO_LARGE, NOT_JSON, UNAUTHENTICATED = 408, 413, 415, 401
# Types of text, and the charset they name: some of Python's codecs make of bytes what no text holds.
_TEXT_TYPES = re.compile(r"\s*(multipart/|text/|application/(x-www-form-urlencoded|([\w.-]+\+)?json))", re.I)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\";,\s]*)", re.IGNORECASE)
_UTF8 = {"utf-8", "utf8", "us-ascii", "ascii"}
_JSON_TYPES = re.compile(r"\s*application/([\w.-]+\+)?json\s*(;.*)?", re.IGNORECASE)
DIGITS = 12  # of a length; Python reads no number of thousands of them


class SecurityHeaders:
    """Add the headers that browsers act on, and let redirects to ourselves name no host."""

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
                if "location" in headers:
                    headers["location"] = _without_host(headers["location"], scope)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def _without_host(address: str, scope: Scope) -> str:
    """An address within us as a path: the framework begins it with what the caller says we are called."""
    here = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}"
    path = address.removeprefix(here)
    return path if path.startswith("/") and not path.startswith("//") else address


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


class NotJson(HTTPException):
    """A body that is no JSON by its own word."""

    def __init__(self) -> None:
        super().__init__(NOT_JSON, "This address takes application/json.")


class NotUtf8(HTTPException):
    """Text in another charset, by its own word."""

    def __init__(self) -> None:
        super().__init__(NOT_JSON, "This address takes text in UTF-8. Send it so; nothing was stored.")


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


class Arrival:
    """How long a body may keep us waiting: a pause has a limit, and so has all of it, by what has come."""

    def __init__(self) -> None:
        self._left_s = GRACE_S

    async def next(self, receive: Receive) -> Message:
        """The next piece.

        Raises:
            BodyTooSlow: none arrived for PAUSE_S, or all of it comes slower than SLOWEST.
        """
        began = anyio.current_time()
        with anyio.move_on_after(min(PAUSE_S, self._left_s)):
            message = await receive()
            self._left_s += len(message.get("body", b"")) / SLOWEST - (anyio.current_time() - began)
            return message
        raise BodyTooSlow


class BodyLimit:
    """Refuse bodies above a limit, counted while they arrive; uploads have a larger one, answers a smaller.

    The framework reads and parses a body before it asks who calls. So of nobody in particular it gets to see
    no more than SMALL_BODY_BYTES, and nothing of answers, of which hundreds come at once.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        upload_paths: re.Pattern[str],
        picture_paths: re.Pattern[str],
        small_paths: re.Pattern[str],
        max_upload_bytes: int,
        max_picture_bytes: int,
    ) -> None:
        self.app = app
        self.picture_paths = picture_paths
        self.max_picture_bytes = max_picture_bytes
        self.small_paths = small_paths
        self.upload_paths = upload_paths
        self.max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        if scope["method"] == "POST" and self.small_paths.fullmatch(path):
            refused = await _refused_unread(Request(scope))
            if refused is not None:
                await refused(scope, receive, send)
                return
        limit = self._limit_of(path)
        try:
            require_utf8(Request(scope))
            if (declared_length(scope) or 0) > limit:
                raise BodyTooLarge(limit)
        except HTTPException as error:
            await on_http_error(Request(scope), error)(scope, receive, send)
            return
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
        if self.picture_paths.fullmatch(path):
            return self.max_picture_bytes
        return SMALL_BODY_BYTES if self.small_paths.fullmatch(path) else MAX_BODY_BYTES


def require_utf8(request: Request) -> None:
    """Raises NotUtf8 where text names another charset."""
    kind = request.headers.get("content-type", "")
    named = _CHARSET.findall(kind) if _TEXT_TYPES.match(kind) else []
    if any(charset.lower() not in _UTF8 for charset in named):
        raise NotUtf8


def require_json(request: Request) -> None:
    """Raises NotJson where the body goes by another name, NotUtf8 where it is in another charset."""
    require_utf8(request)
    if not _JSON_TYPES.fullmatch(request.headers.get("content-type", "")):
        raise NotJson


async def _refused_unread(request: Request) -> Response | None:
    """What answers that nobody known sent, or that are no JSON, are told; None lets them in."""
    await anyio.to_thread.run_sync(identify, request)
    if request.state.user is None:
        return on_app_error(request, NotSignedIn())
    request.state.is_identified = True
    try:
        require_json(request)
    except (NotJson, NotUtf8) as error:
        return on_http_error(request, error)
    return None


async def _require_known(scope: Scope) -> None:
    request = Request(scope)
    await anyio.to_thread.run_sync(identify, request)
    if request.state.user is None:
        raise _Unknown
