"""What hundreds of people call at once: each request is served in one thread, in one transaction.

Otherwise the framework passes a request from layer to layer and from dependency to dependency, some of them
in threads, and that costs more than what the request is for. Here the whole of it, from finding out who calls
to the bytes of the response, is one function; on SQLite those that arrived meanwhile are one transaction.

What is out of the ordinary goes the framework's way, which words the errors.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, get_type_hints
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy.orm import Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounts.errors import BadCsrfToken
from app.deps import identify_in, is_csrf_token, needs_csrf_token, require_access
from app.errors import AppError
from app.hardening import MAX_BODY_BYTES, Busy
from app.problems import on_app_error, on_http_error
from app.writing import Writer

JSON = "application/json"
DIGITS = 10  # of a length; Python reads no number of thousands of them
OF_CAMPAIGN = "/campaigns/{campaign_id}/"


class _Route(NamedTuple):
    endpoint: Callable[..., BaseModel | None]
    body: type[BaseModel]
    status: int


class OneThread:
    """Serves the POST routes of a router.

    Their endpoints take `request`, `campaign_id`, `body`, `user` and `session`.
    """

    def __init__(self, app: ASGIApp, *, router: APIRouter, prefix: str, writer: Writer) -> None:
        self.app = app
        self.writer = writer
        self.before, _, _ = (prefix + OF_CAMPAIGN).partition("{")
        self.routes = {
            route.path.removeprefix(OF_CAMPAIGN): _Route(
                route.endpoint, get_type_hints(route.endpoint)["body"], route.status_code or 200
            )
            for route in router.routes
            if isinstance(route, APIRoute) and route.methods == {"POST"}
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or pass it on."""
        found = self._find(scope)
        if found is None:
            await self.app(scope, receive, send)
            return
        if self.writer.is_full():
            await on_http_error(Request(scope), Busy())(scope, receive, send)
            return
        route, campaign_id = found
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        if messages[-1]["type"] == "http.disconnect":
            await Response(status_code=400)(scope, receive, send)  # nobody reads it; for the log
            return
        try:
            body = route.body.model_validate_json(b"".join(message.get("body", b"") for message in messages))
        except ValidationError:
            await self.app(scope, _again(messages, receive), send)
            return
        response = await self._respond(scope, route, campaign_id, body)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, route: _Route, campaign_id: UUID, body: BaseModel) -> Response:
        work = partial(_serve, scope, route, campaign_id, body)
        try:
            return await self.writer.run(work)
        except AppError as error:
            return on_app_error(Request(scope), error)
        except Busy as error:
            return on_http_error(Request(scope), error)

    def _find(self, scope: Scope) -> tuple[_Route, UUID] | None:
        """Whose request it is, if there is nothing unusual about it."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(self.before):
            return None
        campaign, _, rest = scope["path"][len(self.before) :].partition("/")
        route = self.routes.get(rest)
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        is_short = length.isdigit() and len(length) < DIGITS and int(length) <= MAX_BODY_BYTES
        if route is None or kind != JSON.encode() or not is_short or b"transfer-encoding" in headers:
            return None
        try:
            return route, UUID(campaign)
        except ValueError:
            return None


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Messages that were received, and then those to come."""
    received = iter(messages)

    async def receive_again() -> Message:
        message = next(received, None)
        return await receive() if message is None else message

    return receive_again


def _serve(scope: Scope, route: _Route, campaign_id: UUID, body: BaseModel, session: Session) -> Response:
    request = Request(scope)
    identify_in(session, request)
    require_access(request, route.endpoint)
    if needs_csrf_token(request) and not is_csrf_token(request, request.headers.get("x-csrf-token")):
        raise BadCsrfToken
    answer = route.endpoint(
        request=request, campaign_id=campaign_id, body=body, user=request.state.user, session=session
    )
    content = None if answer is None else answer.model_dump_json()
    return Response(content, route.status, media_type=JSON if content else None)
