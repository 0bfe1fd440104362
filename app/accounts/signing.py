"""How a request proves who sends it: by password, by the password once more, and by a cookie set or taken."""

from collections.abc import Mapping
from datetime import timedelta

from fastapi import Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session, sessionmaker
from starlette.responses import Response

from app.accounts import service
from app.accounts.errors import InPersonOnly, NotSignedIn, WrongCredentials
from app.accounts.limits import SignInLimit
from app.accounts.models import User
from app.addresses import address_of
from app.clock import utc_now
from app.db import unit_of_work
from app.deps import cookie_of, session_cookie
from app.journal import writing as journal
from app.journal.models import Action
from app.settings import Settings

LONGEST_BROWSER = 60  # characters of how a browser calls itself that we do not know
# In this order: most claim to be those below them as well.
BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "FxiOS": "Firefox", "Chrome": "Chrome"}
BROWSERS |= {"CriOS": "Chrome", "Safari": "Safari"}
SYSTEMS = {"iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows"}
SYSTEMS |= {"Mac OS X": "macOS", "CrOS": "ChromeOS", "Linux": "Linux"}


def own_path(target: str) -> str:
    """The address to go on to, if it is a path of ours; else the home page.

    Browsers drop tabs and newlines and take backslashes for slashes, so "/\\t/evil" is another host.
    """
    is_ours = target.startswith("/") and not target.startswith("//") and "\\" not in target
    return target if is_ours and target.isprintable() else "/"


def prove(request: Request, reading: sessionmaker[Session], email: str, password: str) -> User:
    """Whose e-mail and password these are; counts failures. Holds no connection while it waits.

    Call it before anything is written: a refusal is kept in a transaction of its own.

    Raises:
        WrongCredentials: they do not belong together, which is written into the journal.
        TooManySignIns: that was so too often.
    """
    limit: SignInLimit = request.app.state.sign_in_limit
    address = address_of(request)
    limit.check(address=address, email=email)  # whoever is refused anyway need not wait
    with reading.begin() as looking:
        user = service.user_with_email(looking, email)
    try:
        proved = service.check_credentials(
            user, password, before=lambda: limit.check(address=address, email=email)
        )
    except WrongCredentials:
        limit.note_failure(address=address, email=email)
        # Of an address that is nobody's no more is kept: people type passwords there.
        facts = journal.naming(user) if user else {"account": "unknown"}
        note_refusal(request, facts)
        raise
    limit.note_success(address=address, email=email)
    return proved


def note_refusal(request: Request, facts: Mapping[str, str]) -> None:
    """Write into the journal that somebody was not let in, whatever becomes of the request."""
    state = request.app.state
    with unit_of_work(state.database.write, state.publish) as session:
        session.info[journal.ADDRESS] = address_of(request)
        journal.write(session, Action.SIGN_IN_REFUSED, by=None, details=facts)


def prove_again(
    request: Request, session: Session, reading: sessionmaker[Session], user: User, password: str
) -> None:
    """Let only somebody go on whose password was given in this browser lately, or is given now.

    Raises:
        InPersonOnly: a token has no password.
        ProofNeeded: neither.
        WrongCredentials, TooManySignIns: as `prove`.
        NotSignedIn: the session has ended meanwhile.
    """
    if request.state.by_token:
        raise InPersonOnly
    secret = cookie_of(request)
    if password:
        proved = prove(request, reading, user.email, password)
        if proved.id != user.id:
            raise NotSignedIn
        service.note_proof(session, secret, now=utc_now())
    service.require_proof(session, user, secret, now=utc_now())


def go_on_signed_in(
    request: Request,
    session: Session,
    settings: Settings,
    user: User,
    target: str,
    *,
    is_proved: bool = True,
    by: str = "",
) -> Response:
    """Start a session with a new id, drop the one the browser came with, and go on.

    `is_proved` and `by` are as `start_session` takes them.
    """
    name = session_cookie(settings)
    if old := request.cookies.get(name):
        service.sign_out(session, old)
    secret = service.start_session(
        session,
        user,
        now=utc_now(),
        address=address_of(request),
        browser=browser_of(request.headers.get("user-agent", "")),
        is_proved=is_proved,
        by=by,
    )
    response = RedirectResponse(target, 303)
    response.set_cookie(
        name,
        secret,
        max_age=service.SESSION_LIFE // timedelta(seconds=1),
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


def browser_of(user_agent: str) -> str:
    """What a person calls the browser and the system that this header names; else how it calls itself."""
    browser = next((name for sign, name in BROWSERS.items() if f"{sign}/" in user_agent), "")
    system = next((name for sign, name in SYSTEMS.items() if sign in user_agent), "")
    if browser and system:
        return f"{browser}, {system}"
    return "".join(letter for letter in user_agent if letter.isprintable())[:LONGEST_BROWSER]


def drop_cookie(response: Response, settings: Settings) -> None:
    """Let the browser forget the session."""
    response.delete_cookie(
        session_cookie(settings), path="/", secure=settings.is_secure, httponly=True, samesite="lax"
    )
    # Pages of the person who left must not come back with the back button.
    response.headers["Clear-Site-Data"] = '"cache"'
