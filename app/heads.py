"""HEAD wherever there is GET: the same answer without its body."""

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadOfGet:
    """Let routes answer HEAD as they answer GET, and keep the body back.

    A stream of events ends where it would begin: it has no end of its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})["is_head"] = True
        with anyio.CancelScope() as work:

            async def send_start(message: Message) -> None:
                if message["type"] != "http.response.start":
                    return
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                if Headers(scope=message).get("content-type", "").startswith("text/event-stream"):
                    work.cancel()

            await self.app(dict(scope, method="GET"), receive, send_start)


def wants_body(request: Request) -> bool:
    """Whether what a GET answers will be read; what is only looked at is no download."""
    return not getattr(request.state, "is_head", False)
