"""A span for each request, by the route that served it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.logs import QUIET_PATHS
from app.metrics import route_of
from app.tracing import spans

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "_OTHER"  # OpenTelemetry's name for what a stranger may make up
BROKEN = 500  # the first status that tells a fault of ours


class TracedRequests:
    """Tells of each request, but of what nobody waits for: files, and looks whether this process is well.

    A caller may say of which trace it is. Nothing is told of who called, of the address or of the body.
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["path"].startswith(QUIET_PATHS):
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})  # which layers that copy the scope share
        given = dict(scope["headers"]).get(b"traceparent", b"").decode("latin-1")
        status = BROKEN

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else OTHER
        with spans.span(
            method, asked_by=given or None, kind="server", statements=True, method=method
        ) as part:
            try:
                await self.app(scope, receive, note)
            finally:
                route = route_of(scope, self.prefix)
                if part is not None:
                    part.call(method if route is None else f"{method} {route}")
                    part.note(route=route, status=status, request_id=state.get("request_id"))
                    if status >= BROKEN:
                        part.fail(str(status))
