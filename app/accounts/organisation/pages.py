"""To the provider and back: to sign in, to link two accounts, and to prove who one is once more."""

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from app.access import in_person, public, signed_in
from app.accounts import schemas
from app.accounts import service as accounts
from app.accounts.callers import digest
from app.accounts.errors import EmailTaken, NotSignedIn, TooManySignIns
from app.accounts.models import User
from app.accounts.organisation import flow as flows
from app.accounts.organisation import service
from app.accounts.organisation.claims import Person
from app.accounts.organisation.errors import (
    AddressHasAccount,
    AddressNotVerified,
    NoOrganisation,
    NotOfOrganisation,
    NotProvedThere,
    OtherAccountLinked,
    SignInDenied,
    SignInNotBegun,
    SignInNotTrusted,
)
from app.accounts.organisation.flow import LEEWAY, LIFE, Flow, Purpose
from app.accounts.signing import go_on_signed_in, note_refusal, own_path, prove_again
from app.addresses import address_of
from app.clock import utc_now
from app.deps import (
    CurrentUser,
    FormDep,
    ReadingDep,
    SessionDep,
    SettingsDep,
    UnitOfWork,
    UnitOfWorkDep,
    cookie_of,
)
from app.errors import AppError, TooMany
from app.organisation_settings import BACK
from app.pages import read_form, render, see_other
from app.problems import status_of
from app.settings import Settings
from app.spelling import refuse_unknown_fields

if TYPE_CHECKING:
    from app.accounts.organisation.provider import Provider

router = APIRouter(include_in_schema=False)
CROSS_SITE = "cross-site"


def provider_in(request: Request) -> "Provider":
    """What talks to the provider.

    Raises:
        NoOrganisation: there is none.
    """
    provider: Provider | None = request.app.state.organisation
    if provider is None:
        raise NoOrganisation
    return provider


def flow_cookie(settings: Settings) -> str:
    """Name of the cookie; browsers tie the __Host- prefix to https and this very host."""
    return "__Host-clarinet-organisation" if settings.is_secure else "clarinet-organisation"


def _remember(response: Response, settings: Settings, flow: Flow) -> Response:
    response.set_cookie(
        flow_cookie(settings),
        flows.sealed(settings.signing_secret(), flow),
        max_age=int(LIFE.total_seconds()),
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",  # it must come along as the provider sends the browser back
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _forget(response: Response, settings: Settings) -> Response:
    response.delete_cookie(
        flow_cookie(settings), path="/", secure=settings.is_secure, httponly=True, samesite="lax"
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _count(request: Request) -> None:
    request.app.state.sign_in_limit.count_trip(address=address_of(request))


def _refused(request: Request, error: AppError, target: str) -> Response:
    """The sign-in page with what went wrong: a password is still a way in, where there are any."""
    response = render(
        request,
        "accounts/sign_in.html",
        status=status_of(error),
        email="",
        next=target,
        errors={},
        has_new_password=False,
        organisation_fault=error.detail,
    )
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.facts.get("retry_after_s", 60))
    return response


@router.get("/sign-in/organisation", name="organisation_sign_in")
@public
def go_there(request: Request, settings: SettingsDep, next: str = "") -> Response:
    """Send a browser to the provider; another site's page cannot, but only to our sign-in page."""
    provider, target = provider_in(request), own_path(next)
    if request.state.user is not None:
        return RedirectResponse(target, 303)
    if request.headers.get("sec-fetch-site") == CROSS_SITE:
        return RedirectResponse(f"{request.app.url_path_for('sign_in')}?next={quote(target, safe='')}", 303)
    now = utc_now()
    flow = flows.begin(Purpose.SIGN_IN, target=target, now=now)
    try:
        _count(request)
        url = provider.way_there(flow, now=now)
    except AppError as error:
        return _refused(request, error, target)
    return _remember(RedirectResponse(url, 303), settings, flow)


@router.get(BACK, name="organisation_back")
@public
def come_back(
    *,
    request: Request,
    settings: SettingsDep,
    work: UnitOfWorkDep,
    state: str = "",
    code: str = "",
    iss: str = "",
    error: str = "",
) -> Response:
    """Take what the provider says of this browser's person."""
    provider, now = provider_in(request), utc_now()
    flow: Flow | None = None
    try:
        _count(request)
        cookie = request.cookies.get(flow_cookie(settings), "")
        flow = flows.came_back(settings.signing_secret(), cookie, state, now=now)
        with work() as session:
            service.use_state(session, state, until=flow.begun_at + LIFE, now=now)
        person = _person(provider, settings, flow, code=code, iss=iss, error=error, now=now)
        response = _finish(request, settings, work, flow, person, now=now)
    except AppError as failure:
        response = _failed(request, flow, failure)
        if flow is None:  # another's answer: a sign-in that this browser is about may still come back
            response.headers["Cache-Control"] = "no-store"
            return response
    return _forget(response, settings)


def _person(
    provider: "Provider", settings: Settings, flow: Flow, *, code: str, iss: str, error: str, now: datetime
) -> Person:
    """Raises SignInDenied or SignInNotTrusted, or as `Provider.person`."""
    if iss and iss != settings.oidc_issuer:  # RFC 9207: the answer of another provider
        raise SignInNotTrusted(provider.name, "iss")
    if error:
        plain = (
            error[:60] if error.replace("_", "").isascii() and error.replace("_", "").isalnum() else "error"
        )
        raise SignInDenied(provider.name, plain)
    if not code:
        raise SignInNotTrusted(provider.name, "no_code")
    if not iss and provider.told(now).facts.get("authorization_response_iss_parameter_supported") is True:
        raise SignInNotTrusted(provider.name, "no_iss")
    return provider.person(code, flow, now=now)


def _failed(request: Request, flow: Flow | None, error: AppError) -> Response:
    """What to show, and a line of the journal where it is the sign-in of somebody that failed."""
    if flow is not None and flow.purpose is not Purpose.SIGN_IN:
        raise error
    is_noted = isinstance(error, NotOfOrganisation | AddressNotVerified)  # with the account, by `turn_away`
    if flow is not None and not is_noted and not isinstance(error, SignInNotBegun | TooManySignIns):
        note_refusal(request, {"at": "organisation", "why": error.title})
    return _refused(request, error, flow.target if flow else "/")


def _finish(
    request: Request, settings: Settings, work: UnitOfWork, flow: Flow, person: Person, *, now: datetime
) -> Response:
    if flow.purpose is Purpose.SIGN_IN:
        return _sign_in(request, settings, work, flow, person, now=now)
    user, secret = request.state.user, cookie_of(request)
    if user is None or not request.state.by_cookie or digest(secret) != flow.session_hash:
        raise NotSignedIn
    with work() as session:
        if flow.purpose is Purpose.LINK:
            accounts.require_proof(session, user, secret, now=now)
            service.require_welcome(person, settings)
            service.link(session, user, person, settings=settings, now=now, how="account page")
        else:
            identity = service.identity_of(session, person)
            if identity is None or identity.user_id != user.id:
                raise OtherAccountLinked(settings.organisation)
            if not _is_proved(person, flow):
                raise NotProvedThere(settings.organisation)
            accounts.note_proof(session, secret, now=now)
    return see_other(request, "account", place="organisation")


def _is_proved(person: Person, flow: Flow) -> bool:
    """Whether they typed their password there for this; to be signed in there proves not who sits here."""
    return person.proved_at is not None and person.proved_at >= flow.begun_at - LEEWAY


def _sign_in(
    request: Request, settings: Settings, work: UnitOfWork, flow: Flow, person: Person, *, now: datetime
) -> Response:
    try:
        try:
            return _signed_in(request, settings, work, flow, person, now=now)
        # Two first sign-ins at once: the other one made the account, perhaps between two looks of this one.
        except (OtherAccountLinked, EmailTaken, AddressHasAccount):
            return _signed_in(request, settings, work, flow, person, now=now)
    except (NotOfOrganisation, AddressNotVerified):
        with work() as session:
            service.turn_away(session, person, now=now)
        raise


def _signed_in(
    request: Request, settings: Settings, work: UnitOfWork, flow: Flow, person: Person, *, now: datetime
) -> Response:
    """Start a session. A code of ours is asked of whoever has turned that on, as after a password."""
    with work() as session:
        user = service.sign_in(session, person, settings=settings, now=now)
        is_proved = _is_proved(person, flow)
        if user.has_second_factor:
            ticket = accounts.ticket_for(
                settings.signing_secret(),
                session,
                user,
                now=now,
                way=accounts.Way.ORGANISATION,
                is_proved=is_proved,
            )
            return render(request, "accounts/second_step.html", ticket=ticket, next=flow.target, errors={})
        return go_on_signed_in(
            request, session, settings, user, flow.target, is_proved=is_proved, by=settings.organisation
        )


@router.post("/account/organisation/link", name="link_organisation")
@in_person
@signed_in
def link(
    *,
    request: Request,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Go to the provider to link an account there with one's own; the password is fresh."""
    provider_in(request).told(utc_now())  # before a transaction begins, in which it must not be waited for
    accounts.require_of_person(user)
    _prove(request, form, session, reading, user)
    return _go_from_here(request, settings, Purpose.LINK)


@router.post("/account/organisation/prove", name="prove_by_organisation")
@in_person
@signed_in
def prove(request: Request, user: CurrentUser, session: SessionDep, settings: SettingsDep) -> Response:
    """Go to the provider to type the password there once more, where ours is asked for."""
    provider_in(request).told(utc_now())
    if service.linked(session, user, settings) is None:
        raise NoOrganisation
    return _go_from_here(request, settings, Purpose.PROVE)


@router.post("/account/organisation/unlink", name="unlink_organisation")
@in_person
@signed_in
def unlink(
    *,
    request: Request,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Sign in with the password alone from now on."""
    _prove(request, form, session, reading, user)
    service.unlink(session, user, settings, by=user)
    return see_other(request, "account", place="organisation")


def _prove(request: Request, form: FormData, session: Session, reading: ReadingDep, user: User) -> None:
    refuse_unknown_fields(form, schemas.ProofForm.model_fields)
    given, _errors = read_form(form, schemas.ProofForm)
    prove_again(request, session, reading, user, given.current if given else "")


def _go_from_here(request: Request, settings: Settings, purpose: Purpose) -> Response:
    """A page that leads on: our pages' forms go to us alone, and browsers hold to that where we lead them."""
    now = utc_now()
    _count(request)
    flow = flows.begin(purpose, target="/account", now=now, session_hash=digest(cookie_of(request)))
    url = provider_in(request).way_there(flow, now=now)
    page = render(request, "accounts/organisation_go.html", url=url)
    page.headers["Refresh"] = f"0; url={url}"
    return _remember(page, settings, flow)


@router.get("/sign-out/organisation", name="organisation_sign_out")
@public
def leave(request: Request) -> Response:
    """Sign out at the provider as well, where it offers that."""
    url = provider_in(request).way_out(utc_now())
    if url is None:
        raise NoOrganisation
    return RedirectResponse(url, 303)
