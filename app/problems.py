"""The only map from errors to HTTP: problem+json (RFC 9457) for programs, a page for people."""

import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import iter_route_contexts
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.accounts.errors import NotSignedIn, SecondFactorNeeded
from app.deps import SAFE_METHODS, identify
from app.errors import (
    AppError,
    Conflict,
    Forbidden,
    NotFound,
    TooMany,
    Unauthenticated,
    Unavailable,
    Unprocessable,
    Uses,
)
from app.languages import gettext, translatable
from app.outages import Outage, OutOfService, outage_of
from app.pages import address_of, as_sentence, render, wants_fragment, wants_page
from app.spelling import MISSPELT, worded
from clarinet.recipes.counting import there_are

log = structlog.get_logger()

STATUS = {
    NotFound: 404,
    Forbidden: 403,
    Conflict: 409,
    Unprocessable: 422,
    Unauthenticated: 401,
    TooMany: 429,
    Unavailable: 503,
}
SERVER_ERROR = 500
GONE = 499  # as nginx has it: who asked went away; nobody reads the answer
NOTHING = Uses()
NO_METHOD = 405
NO_ROUTE = (404, NO_METHOD)
# What the framework says of a body that it cannot read, such as numbers of thousands of digits.
UNREADABLE, UNREADABLE_BODY = 400, "There was an error parsing the body"
NO_JSON = {"type": "json_invalid", "loc": ("body",), "msg": "This is no JSON"}
UNAVAILABLE = 503
COME_AGAIN_S = (4, 5, 6)  # not all at the same moment
KEPT_NOTHING = translatable("Nothing was changed. Try again soon.")
# A transaction is whole, but nobody can know of one whose last word was lost whether it was kept.
KEPT_ALL_OR_NOTHING = translatable(
    "What was sent was kept as a whole or not at all, most likely not. Try again soon; look first, where it "
    "must not happen twice."
)
MOST_ERRORS = 20  # of a request's shape that are told
MOST_LETTERS = 200  # of each of them
_ID = re.compile(r"[0-9a-fA-F-]+")
# Of what the framework refuses; the others stay in English.
PHRASES = (translatable("Not Found"), translatable("Method Not Allowed"), translatable("Service Unavailable"))


def status_of(error: AppError) -> int:
    """The HTTP status of an error's family."""
    return next(status for family, status in STATUS.items() if isinstance(error, family))


def slug_of(kind: type[AppError]) -> str:
    """TooFewLabels -> too-few-labels: the last part of the problem's address."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def problem_types() -> dict[str, type[AppError]]:
    """Every error that has a page under /problems, by its slug."""
    found: dict[str, type[AppError]] = {}
    waiting: list[type[AppError]] = list(STATUS)
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind not in STATUS:
            found[slug_of(kind)] = kind
    return dict(sorted(found.items()))


def _answer(
    request: Request,
    status: int,
    *,
    type_: str,
    title: str,
    detail: str,
    headers: dict[str, str] | None = None,
    instead: str = "",
    used_by: Uses = NOTHING,
    **facts: Any,
) -> Response:
    """The problem, or a page about it.

    `instead`: an address that a person may go on with; `used_by`: what stands in the way.
    """
    title = gettext(title)
    problem = {
        "type": type_,
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.scope["path"],
    }
    if wants_page(request) or wants_fragment(request):
        page = render(
            request,
            "error.html",
            fragment="_error.html",
            status=status,
            title=title,
            detail=detail,
            error_status=status,
            instead=instead,
            used_by=[(use, address_of(request, "show", use)) for use in used_by.named],
            left_out=used_by.left_out,
            request_id=getattr(request.state, "request_id", ""),
        )
        page.headers.update(headers or {})
        return page
    if used_by:
        facts["used_by"] = [
            {"kind": use.kind, "id": str(use.id), "name": use.name, "url": address_of(request, "read", use)}
            for use in used_by.named
        ]
        facts["used_by_left_out"] = used_by.left_out
    return JSONResponse(
        problem | facts,
        status,
        media_type="application/problem+json",
        headers={"Cache-Control": "no-store"} | (headers or {}),
    )


def on_app_error(request: Request, error: AppError) -> Response:
    """What the user did cannot be done."""
    if isinstance(error, NotSignedIn) and request.method == "GET" and wants_page(request):
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope["path"] + (f"?{query}" if query else "")
        return RedirectResponse(request.app.url_path_for("sign_in") + f"?next={quote(path, safe='')}", 303)
    if isinstance(error, SecondFactorNeeded) and request.method == "GET" and wants_page(request):
        return RedirectResponse(request.app.url_path_for("second_factor"), 303)
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.facts.get("retry_after_s", 60))
    return _answer(
        request,
        status_of(error),
        type_=f"/problems/{slug_of(type(error))}",
        title=error.title,
        detail=error.detail,
        headers=headers,
        instead="",
        used_by=error.used_by,
        **error.facts,
    )


def on_malformed(request: Request, error: RequestValidationError) -> Response:
    """The input is not of the shape that the route takes."""
    field = getattr(request.scope.get("route"), "body_field", None)
    return malformed(request, error, field.field_info.annotation if field else None)


def malformed(request: Request, error: RequestValidationError, body: Any) -> Response:
    """The same where a body is of this type, which says what its fields are called."""
    found = [NO_JSON if item.get("type") == NO_JSON["type"] else item for item in error.errors()]
    if wants_page(request) or wants_fragment(request):
        parts = {item["loc"][0] for item in found}
        if "path" in parts:
            return on_http_error(request, HTTPException(404))
        if parts == {"query"}:
            return _unknown_values(request, found)
    errors = [
        {
            "pointer": _shorten("/".join(map(str, item["loc"]))),
            "detail": _shorten(as_sentence(worded(item, body, item["loc"][1:]))),
        }
        for item in found[:MOST_ERRORS]
    ]
    named = "; ".join(f"{item['pointer']}: {item['detail']}" for item in errors[:3])
    left_out = len(found) - len(errors)
    told = there_are(left_out, "more error").capitalize()
    more = f" {told} than the {MOST_ERRORS} told here." if left_out else ""
    return _answer(
        request,
        422,
        type_="/problems/malformed-request",
        title="Malformed request",
        detail=f"The request does not fit what this address takes. {named}{more}",
        errors=errors,
        errors_left_out=left_out,
    )


def _unknown_values(request: Request, found: Sequence[Mapping[str, Any]]) -> Response:
    """A page whose address carries names or values that it cannot read, as after a slip of the hand."""
    values = request.query_params
    names = dict.fromkeys(str(item["loc"][1]) for item in found)
    told = ", ".join(_shorten(f"{name}={values.get(name, '')}") for name in names)
    misspelt = "".join(f" {as_sentence(item['msg'])}" for item in found if item["type"] == MISSPELT)
    return _answer(
        request,
        422,
        type_="/problems/malformed-request",
        title=translatable("Address not understood"),
        detail=gettext("The address says {values}, which this page cannot read. Nothing was changed.").format(
            values=told
        )
        + misspelt,
        instead=request.scope["path"] if request.method == "GET" else "",
    )


def _shorten(words: str) -> str:
    """What may hold a part of the input, at a length that a person reads."""
    return words if len(words) <= MOST_LETTERS else words[: MOST_LETTERS - 1] + "…"


def on_http_error(request: Request, error: HTTPException) -> Response:
    """Unknown addresses, wrong methods and whatever else the framework refuses."""
    path = request.scope["path"]
    if error.status_code == UNREADABLE and error.detail == UNREADABLE_BODY:
        return on_malformed(request, RequestValidationError([NO_JSON]))
    headers = dict(error.headers or {})
    if error.status_code == NO_METHOD:
        headers["Allow"] = ", ".join(methods_at(request.app, path))
    if error.status_code in NO_ROUTE and wants_page(request) and not path.startswith("/static/"):
        with suppress(SQLAlchemyError):
            identify(request)  # no route did, and the page says who is signed in
    title = HTTPStatus(error.status_code).phrase
    detail = {
        404: gettext("There is nothing at this address."),
        405: gettext("This address does not take that method."),
    }.get(error.status_code, str(error.detail))
    return _answer(
        request,
        error.status_code,
        type_="about:blank",
        title=title,
        detail=detail,
        headers=headers,
    )


def methods_at(app: FastAPI, path: str) -> list[str]:
    """What may be done at a path, by all routes that lead there; the framework names those of the first."""
    found: set[str] = set()
    of_no_id: set[str] = set()
    for route in iter_route_contexts(app.routes):
        pattern = getattr(route, "path_regex", None)
        if pattern is not None and (match := pattern.match(path)):
            (found if _has_ids(match.groupdict()) else of_no_id).update(route.methods or {"GET"})
    found = found or of_no_id
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _has_ids(values: Mapping[str, str]) -> bool:
    """Whether what a path has in the place of ids may be such: "/runs/compare" is no run."""
    return all(_ID.fullmatch(value) for name, value in values.items() if name.endswith("_id"))


def on_outage(request: Request, outage: Outage, error: Exception) -> Response:
    """Nobody's mistake: one line in the log, and when to come again."""
    log.warning("request.outage", outage=outage.name, error=type(error).__name__)
    kept = KEPT_NOTHING if request.method in SAFE_METHODS else KEPT_ALL_OR_NOTHING
    return _answer(
        request,
        UNAVAILABLE,
        type_=f"/problems/{slug_of(OutOfService)}",
        title=OutOfService.title,
        outage=outage.name,
        detail=f"{gettext(outage.words)} {gettext(kept)}",
        headers={"Retry-After": str(random.choice(COME_AGAIN_S))},
        request_id=getattr(request.state, "request_id", ""),
    )


def on_unexpected(request: Request, error: Exception) -> Response:
    """Our own mistake: logged once, answered with an id to quote and nothing else."""
    if outage := outage_of(error):
        return on_outage(request, outage, error)
    log.error("request.failed", exc_info=error)
    return _answer(
        request,
        SERVER_ERROR,
        type_="about:blank",
        title=translatable("Internal error"),
        detail=gettext("Something went wrong on our side. Nothing was changed; please try again."),
        request_id=getattr(request.state, "request_id", ""),
    )


class UnexpectedErrors:
    """Answer our own mistakes inside the other middleware; the framework would answer outside of it.

    There the answer would lack the request's id and the security headers.

    Who goes away before all of a request has arrived makes no mistake of ours, and reads no answer. Logs and
    metrics have GONE for it, whatever the framework makes of half a body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = is_gone = False
        has_more = True

        async def watch() -> Message:
            nonlocal has_more, is_gone
            message = await receive()
            is_gone = is_gone or (has_more and message["type"] == "http.disconnect")
            has_more = has_more and message.get("more_body", False)
            return message

        async def note(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if is_gone:
                    message["status"] = GONE
            await send(message)

        try:
            await self.app(scope, watch, note)
        except ClientDisconnect:
            if not started:
                await Response(status_code=GONE)(scope, receive, send)
        except Exception as error:
            # The edge of the process. An answer that has begun cannot be replaced.
            if started:
                raise
            await on_unexpected(Request(scope, receive), error)(scope, receive, send)


def install(app: FastAPI) -> None:
    """Register the handlers. Called after BodyLimit was added, which must see its own exception first."""
    app.add_exception_handler(AppError, on_app_error)  # type: ignore[arg-type]  # narrower than the protocol
    app.add_exception_handler(RequestValidationError, on_malformed)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, on_http_error)  # type: ignore[arg-type]
    app.add_middleware(UnexpectedErrors)
