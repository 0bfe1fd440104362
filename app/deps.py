"""FastAPI dependencies as Annotated aliases: the session, who calls, and whether they may."""

import hmac
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Annotated, Protocol, TypeVar
from urllib.parse import urlsplit

from anyio import to_thread
from fastapi import Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Connection, event
from sqlalchemy.orm import Session, SessionTransaction, sessionmaker
from starlette.datastructures import FormData

from app.access import Access, access_of, changes_nothing, is_in_person
from app.accounts import callers
from app.accounts import service as accounts
from app.accounts.callers import Caller
from app.accounts.errors import (
    BadCsrfToken,
    InPersonOnly,
    NotAllowed,
    NotSignedIn,
    SecondFactorNeeded,
    TokenTooNarrow,
)
from app.accounts.models import Scope, User
from app.accounts.uses import Uses
from app.addresses import address_of, is_this_machine
from app.clock import utc_now
from app.db import unit_of_work
from app.journal.writing import ADDRESS
from app.languages import SOURCE, current_language, speak
from app.settings import Settings
from app.spelling import (
    reads_body,
    refuse_fields,
    refuse_twice,
    refuse_unknown_fields,
    refuse_unknown_query,
    taken_by,
)
from app.storage import Storage

ROUTE = "route"  # in `request.state`: the path of what serves a request, as the framework calls it
ENDPOINT = "endpoint"  # there, too: what says who may call it
STILL_S = 1.0
LARGE_BYTES = 64 * 1024  # of a body; one of 2 MB takes 0.2 s to look through, for which all would wait
From_contra = TypeVar("From_contra", Session, Connection, contravariant=True)  # what asks the database
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def get_session(request: Request) -> Iterator[Session]:
    """One transaction per request; a GET gets one that only reads."""
    state = request.app.state
    if request.method in SAFE_METHODS:
        with state.database.read.begin() as session:
            yield session
        return
    with unit_of_work(state.database.write, state.publish) as session:
        session.info[ADDRESS] = address_of(request)
        authenticate_again(session, request)
        yield session


# scope="function": commit before the response leaves. With the default scope the client
# is told 202 and only then does the commit run, and possibly fail.
SessionDep = Annotated[Session, Depends(get_session, scope="function")]


UnitOfWork = Callable[[], AbstractContextManager[Session]]


async def get_unit_of_work(request: Request) -> UnitOfWork:
    """One transaction for a route to open and close itself, in the thread it runs in.

    For what many people do at once. A session from `get_session` is held while the event loop passes the
    request from one dependency to the next. On SQLite nobody else writes meanwhile.
    """
    state = request.app.state

    @contextmanager
    def work() -> Iterator[Session]:
        with unit_of_work(state.database.write, state.publish) as session:
            session.info[ADDRESS] = address_of(request)
            authenticate_again(session, request)
            yield session

    return work


UnitOfWorkDep = Annotated[UnitOfWork, Depends(get_unit_of_work)]


# What only looks something up is async: anything else would be sent to a thread and back.
async def get_reading(request: Request) -> sessionmaker[Session]:
    """Sessions that only look, also in a POST: for slow checks during which no writer may wait."""
    reading: sessionmaker[Session] = request.app.state.database.read
    return reading


ReadingDep = Annotated[sessionmaker[Session], Depends(get_reading)]


async def get_settings(request: Request) -> Settings:
    """The settings this process was started with."""
    settings: Settings = request.app.state.settings
    return settings


async def get_storage(request: Request) -> Storage:
    """Where images and checkpoints lie."""
    storage: Storage = request.app.state.storage
    return storage


SettingsDep = Annotated[Settings, Depends(get_settings)]
StorageDep = Annotated[Storage, Depends(get_storage)]


def reached_at(request: Request, settings: Settings) -> str:
    """Where links begin that an admin hands on: at the address that the operator chose.

    Where that leads to this machine, and the admin sits at it, their browser knows better at which port
    people come: a proxy or a container may have another. No other host of a request is believed.
    """
    here = str(request.base_url)
    return here if is_this_machine(settings.public_url) and is_this_machine(here) else settings.public_url


def session_cookie(settings: Settings) -> str:
    """Name of the cookie; browsers tie the __Host- prefix to https and this very host."""
    return "__Host-clarinet" if settings.is_secure else "clarinet"


# Only so that the OpenAPI document says how programs sign in; `identify` reads the header.
Bearer = Security(HTTPBearer(auto_error=False, description="A token from the account page."))


def authenticate(request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Bearer]) -> None:
    """Find out who calls, refuse whom the route does not name, and leave the result in `request.state`.

    Runs for every route. A route without an access mark refuses everybody.
    """
    setattr(request.state, ROUTE, getattr(request.scope.get("route"), "path", ""))
    if not getattr(request.state, "is_identified", False):  # where a body waits unread, that was done already
        identify(request)
    require_access(request, request.scope.get("endpoint"))


def authenticate_again(session: Session, request: Request) -> None:
    """Refuse who may not do any more what they began, as the first thing in the transaction that stores it.

    A form is read after it is known who calls, and arrives for minutes: meanwhile somebody may have been
    disabled or erased, or have lost their role, their session or their token. The transaction begins when the
    route first asks for something, so that nobody holds it while a password is hashed.
    """
    endpoint = getattr(request.state, ENDPOINT, None)
    if request.method in SAFE_METHODS or access_of(endpoint) is Access.PUBLIC:
        return

    def look(_session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
        identify_in(connection, request)
        require_access(request, endpoint)

    event.listen(session, "after_begin", look, once=True)


def require_access_still(request: Request) -> None:
    """The same for what stores nothing, where the look is older than STILL_S; waits for the database."""
    if time.monotonic() - request.state.identified_s > STILL_S:
        identify(request)
        require_access(request, getattr(request.state, ENDPOINT, None))


def require_access(request: Request, endpoint: object) -> None:
    """Refuse whom the route does not name, once it is known who calls."""
    setattr(request.state, ENDPOINT, endpoint)
    user: User | None = request.state.user
    access = access_of(endpoint)
    if access is Access.PUBLIC:
        return
    if user is None:
        raise NotSignedIn
    if request.state.scope is not None:
        _require_scope(request.state.scope, request.method, endpoint)
    if access is None or (access is Access.ADMIN and not user.is_admin):
        raise NotAllowed
    if access is Access.REVIEWER:
        accounts.require_reviewer(user)
    settings: Settings = request.app.state.settings
    if not access.is_for_annotators and settings.require_second_factor and not user.has_second_factor:
        raise SecondFactorNeeded


def _require_scope(scope: Scope, method: str, endpoint: object) -> None:
    """Refuse a token what its scope, or any token, may not do."""
    if is_in_person(endpoint):
        raise InPersonOnly
    is_too_narrow = {
        Scope.READ: method not in SAFE_METHODS and not changes_nothing(endpoint),
        Scope.ANNOTATE: access_of(endpoint) in (Access.REVIEWER, Access.ADMIN),
        Scope.MANAGE: False,
    }
    if is_too_narrow[scope]:
        raise TokenTooNarrow(scope)


class ByCookie(Protocol[From_contra]):
    """Finds who is signed in with a cookie."""

    def __call__(
        self, session: From_contra, secret: str, *, now: datetime, idle_since: datetime
    ) -> Caller | None: ...


class ByToken(Protocol[From_contra]):
    """Finds whose token this is."""

    def __call__(self, session: From_contra, secret: str, *, now: datetime) -> Caller | None: ...


def identify(request: Request) -> None:
    """Leave in `request.state` who calls, None if nobody known, and how; waits for the database."""
    # A look in the request's own transaction would begin it. On SQLite a begun transaction keeps every other
    # writer waiting: perhaps for minutes while an upload arrives, or while labels are frozen.
    with request.app.state.database.read.begin() as looking:
        identify_in(looking, request)


def identify_in(
    session: From_contra,
    request: Request,
    *,
    by_token: ByToken[From_contra] = callers.caller_by_token,
    by_cookie: ByCookie[From_contra] = callers.caller_by_cookie,
) -> None:
    """The same in a transaction that has begun, or may begin now; by these two, that look somebody up."""
    settings: Settings = request.app.state.settings
    uses: Uses = request.app.state.uses
    request.state.identified_s = time.monotonic()
    bearer, cookie, now = bearer_of(request), cookie_of(request), utc_now()
    caller: Caller | None = None
    request.state.csrf_token = ""
    request.state.by_cookie = request.state.by_token = False
    if bearer:
        caller = by_token(session, bearer, now=now)
        request.state.by_token = caller is not None
        if caller:
            uses.note_token(callers.digest(bearer), now=now)
    elif cookie:
        caller = by_cookie(session, cookie, now=now, idle_since=now - settings.session_idle)
        request.state.by_cookie = caller is not None
        if caller:
            uses.note_session(callers.digest(cookie), now=now)
            request.state.csrf_token = callers.csrf_token(settings.signing_secret(), cookie)
    request.state.user = caller.user if caller else None
    request.state.scope = caller.scope if caller else None


def bearer_of(request: Request) -> str:
    """The secret of the token that a program sent; "" where it sent none."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else ""


def cookie_of(request: Request) -> str:
    """The secret of the session that a browser sent; "" where it sent none."""
    return request.cookies.get(session_cookie(request.app.state.settings), "")


async def speak_english_to_managers(request: Request, _: Annotated[None, Depends(authenticate)]) -> None:
    """Pages that annotators cannot open are in English alone, and so is what is said of a form on them.

    In the request's own task, and not in a thread: what is said later is said in the same language.
    """
    access = access_of(getattr(request.state, ENDPOINT, None))
    if access is not None and not access.is_for_annotators and not request.url.path.startswith("/api/"):
        request.state.chosen_language = current_language()
        speak(SOURCE)


async def check_csrf(request: Request, _: Annotated[None, Depends(speak_english_to_managers)]) -> None:
    """A write that rides on a cookie must carry the token of our own pages.

    A write by nobody in particular (signing in, accepting an invitation) must at least not come from another
    site's page. That page could sign its visitors in as somebody else. Runs after authentication, so that
    nobody unknown makes us read a large form.
    """
    if not needs_csrf_token(request):
        return
    given = request.headers.get("x-csrf-token")
    if given is None and request.headers.get("content-type", "").startswith(FORM_TYPES):
        value = (await request.form()).get("csrf_token")
        given = value if isinstance(value, str) else None
    if not is_csrf_token(request, given):
        await request.close()  # the files of a form that nobody will read
        raise BadCsrfToken


async def refuse_unknown(request: Request, _: Annotated[None, Depends(check_csrf)]) -> None:
    """Answer a misspelt parameter or field, known callers alone: the API is the same for all of them."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    taken = taken_by(route)
    refuse_unknown_query(request, taken.parameters, several=taken.several)
    if request.method in SAFE_METHODS:
        return
    is_form = request.headers.get("content-type", "").startswith(FORM_TYPES)
    if route.body_field is not None and not is_form:
        body = await request.body()
        if len(body) > LARGE_BYTES:
            await to_thread.run_sync(refuse_twice, body)
        else:
            refuse_twice(body)
    if taken.body:
        return
    if is_form:
        refuse_unknown_fields(await request.form(), ())
    else:
        refuse_fields(await request.body())


def needs_csrf_token(request: Request) -> bool:
    """Whether this is a write that rides on a cookie; refuses what another site's page wants written."""
    if request.method in SAFE_METHODS or request.state.by_token:
        return False
    if not _is_from_us(request):
        raise BadCsrfToken
    return bool(request.state.by_cookie)


def is_csrf_token(request: Request, given: str | None) -> bool:
    """Whether this is the token that our pages have."""
    expected: str = request.state.csrf_token
    return given is not None and hmac.compare_digest(callers.unmasked(given).encode(), expected.encode())


def _is_from_us(request: Request) -> bool:
    """Whether the browser says that one of our pages sent this; a program says nothing of the kind."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    # Browsers send Sec-Fetch-Site only over https or to this machine itself; Origin comes with every POST.
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:  # no address at all, such as "http://[::1"
        return False


Guard = Depends(refuse_unknown)


async def get_user(request: Request) -> User:
    """Who calls; only in routes that are not public."""
    user: User | None = request.state.user
    if user is None:
        raise NotSignedIn
    return user


CurrentUser = Annotated[User, Depends(get_user)]


@reads_body
async def get_form(request: Request) -> AsyncIterator[FormData]:
    """The form of a page; its CSRF token has been checked. Its files are closed after the response."""
    async with request.form() as form:
        yield form


FormDep = Annotated[FormData, Depends(get_form)]
