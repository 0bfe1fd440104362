"""Headers and limits that hold for every answer, whatever the route does."""

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
TOO_LARGE = 413


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
        super().__init__(TOO_LARGE, f"This address takes at most {limit // 1024**2} MB; nothing was stored.")


class BodyLimit:
    """Refuse bodies above a limit, counted while they arrive; the upload routes have a larger one."""

    def __init__(self, app: ASGIApp, *, upload_paths: tuple[str, ...], max_upload_bytes: int) -> None:
        self.app = app
        self.upload_paths = upload_paths
        self.max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.max_upload_bytes if scope["path"].rstrip("/") in self.upload_paths else MAX_BODY_BYTES
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        seen = 0

        async def count() -> Message:
            # An HTTP error from here passes through the framework's own reading of bodies unchanged.
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit or not declared.isdigit() or int(declared) > limit:
                raise BodyTooLarge(limit)
            return message

        await self.app(scope, count, send)
