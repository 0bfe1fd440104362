"""Structured logs, and the request id that ties them together."""

import logging
import re
import sys
import time
from uuid import uuid4

import structlog
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import Processor

from app.addresses import address_of
from app.lines import beneath, leave_out, take_in
from app.settings import Settings
from app.sink import Sink
from app.tracing.spans import add_ids

log = structlog.get_logger()

# A caller may name its request, in characters that cannot forge a log line.
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# The rest of such a path is a password for whoever reads the log.
SECRET_PATH = re.compile(r"^(/invitations/|/join/|/password/).+", re.DOTALL)
QUIET_PATHS = ("/static/", "/healthz", "/readyz", "/metrics")


def configure_logs(settings: Settings) -> None:
    """JSON lines in production, of packages as well; readable lines elsewhere. To standard error."""
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if settings.traces:
        before.append(add_ids)
    at_the_end: list[Processor] = [
        # No local variables in tracebacks: they hold passwords and tokens.
        structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
        structlog.processors.JSONRenderer(),
    ]
    sink = Sink(beneath(sys.stderr))
    if settings.logs_json:
        take_in(sink, before, at_the_end)
    else:
        leave_out()
        at_the_end = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr is not None and sys.stderr.isatty(),
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    structlog.configure(
        processors=[*before, *at_the_end],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: sink,
        cache_logger_on_first_use=False,
    )


def _who(scope: Scope) -> dict[str, str]:
    """Who called, where that was found out, and from where."""
    user = scope.get("state", {}).get("user")
    named = {} if user is None else {"user": str(user.id)}
    return named | {"address": address_of(HTTPConnection(scope))}


class RequestLog:
    """Give each request an id, bind it to the logs, and log the request once when it is over."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        request_id = given.decode() if REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started, status = time.perf_counter(), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            if not scope["path"].startswith(QUIET_PATHS):
                log.info(
                    "request.finished",
                    method=scope["method"],
                    path=SECRET_PATH.sub(r"\1...", scope["path"]),
                    status=status,
                    ms=round((time.perf_counter() - started) * 1000, 1),
                    **_who(scope),
                )
