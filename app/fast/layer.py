"""What hundreds of people call at once: each request is served in one thread, in one transaction.

The framework passes a request from layer to layer and from dependency to dependency, some of them in threads,
and that costs more than what the request is for. Here the whole of it, from finding out who calls to the
bytes of the response, is one function; on SQLite those that arrived meanwhile are one transaction.

A body is read with a limit and a clock, and parsed once it is known who sent it and that they may.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple, get_type_hints
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from app.accounts import callers
from app.accounts.callers import Caller
from app.accounts.errors import BadCsrfToken
from app.accounts.models import User
from app.annotation import api, schemas
from app.deps import ROUTE, identify_in, is_csrf_token, needs_csrf_token, require_access
from app.errors import AppError
from app.fast import queue
from app.fast.answering import FAST
from app.fast.prepared import Prepared
from app.fast.writing import Writer
from app.gate import Busy
from app.hardening import read_small_body, require_json
from app.problems import GONE, malformed, on_app_error, on_http_error
from app.spelling import refuse_twice, refuse_unknown_query, taken_by

JSON = "application/json"
READ_S = 15.0  # for a body of 64 KB at most; a phone on a slow network sends 5 KB a second
OF_CAMPAIGN = "/campaigns/{campaign_id}/"
# Who calls, as `app.accounts.callers` finds out.
_OF_COOKIE = Prepared(callers.as_caller, callers.OF_COOKIE)
_OF_TOKEN = Prepared(callers.as_caller, callers.OF_TOKEN)

Endpoint = Callable[..., BaseModel | None]


def release(request: Request, campaign_id: UUID, body: schemas.Empty, user: User, session: Session) -> None:
    """As `api.release_leases`, and what was given back is found at once."""
    queue.forget_free_from(campaign_id)
    api.release_leases(request, campaign_id, body, user, session)


ENDPOINTS: dict[Callable[..., object], Endpoint] = {
    api.lease_questions: partial(api.lease_by, FAST),
    api.submit_answers: partial(api.submit_by, FAST),
    api.release_leases: release,
}


class _Route(NamedTuple):
    marked: Callable[..., object]  # the endpoint that the framework would call, and that says who may
    endpoint: Endpoint
    body: type[BaseModel]
    status: int
    parameters: frozenset[str]  # that the address may have
    path: str  # as the framework calls it


class FastLayer:
    """Serves the POST routes of a router.

    Their endpoints take `request`, `campaign_id`, `body`, `user` and `session`.
    """

    def __init__(self, app: ASGIApp, *, router: APIRouter, prefix: str, writer: Writer) -> None:
        self.app = app
        self.writer = writer
        self.before, _, _ = (prefix + OF_CAMPAIGN).partition("{")
        self.routes = {
            route.path.removeprefix(OF_CAMPAIGN): _Route(
                route.endpoint,
                ENDPOINTS.get(route.endpoint, route.endpoint),
                get_type_hints(route.endpoint)["body"],
                route.status_code or 200,
                taken_by(route).parameters,
                prefix + route.path,
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
        scope["state"][ROUTE] = found[0].path
        try:
            if self.writer.is_full():
                raise Busy
            body = await read_small_body(scope, receive, seconds=READ_S)
            if body is None:  # nobody reads the answer; for the log
                response = Response(status_code=GONE)
            else:
                response = await self.writer.run(partial(_serve, scope, *found, body))
        except AppError as error:
            response = on_app_error(Request(scope), error)
        except RequestValidationError as error:
            response = malformed(Request(scope), error, None)
        except HTTPException as error:
            response = on_http_error(Request(scope), error)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> tuple[_Route, UUID] | None:
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(self.before):
            return None
        campaign, _, rest = scope["path"][len(self.before) :].partition("/")
        route = self.routes.get(rest)
        try:
            return None if route is None else (route, UUID(campaign))
        except ValueError:
            return None


def _serve(scope: Scope, route: _Route, campaign_id: UUID, body: bytes, session: Session) -> Response:
    """One request, in the thread and the transaction that it has; nothing of it is parsed for nobody."""
    request = Request(scope)
    identify_in(
        session,
        request,
        by_token=_by_token,
        by_cookie=_by_cookie,
    )
    require_access(request, route.marked)
    if needs_csrf_token(request) and not is_csrf_token(request, request.headers.get("x-csrf-token")):
        raise BadCsrfToken
    require_json(request)
    try:
        read = route.body.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        if found[0]["type"] != "json_invalid":  # as the framework: what is no JSON is told first
            refuse_unknown_query(request, route.parameters)
        return malformed(request, RequestValidationError([_in_body(item) for item in found]), route.body)
    refuse_unknown_query(request, route.parameters)
    refuse_twice(body)
    answer = route.endpoint(
        request=request, campaign_id=campaign_id, body=read, user=request.state.user, session=session
    )
    content = None if answer is None else answer.model_dump_json()
    return Response(content, route.status, media_type=JSON if content else None)


def _in_body(error: ErrorDetails) -> dict[str, object]:
    return {"type": error["type"], "loc": ("body", *error["loc"]), "msg": error["msg"]}


def _by_cookie(session: Session, secret: str, *, now: datetime, idle_since: datetime) -> Caller | None:
    found = _OF_COOKIE.run(session, hash=callers.digest(secret), now=now, idle_since=idle_since)
    return next(iter(found), None)


def _by_token(session: Session, secret: str, *, now: datetime) -> Caller | None:
    return next(iter(_OF_TOKEN.run(session, hash=callers.digest(secret), now=now)), None)
