"""Signing in and out, and the pages behind one-time links."""

from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask

from app.access import public, signed_in
from app.accounts import schemas, service
from app.accounts.errors import (
    EmailNotMeant,
    EmailTaken,
    WeakPassword,
    WrongCode,
    WrongCredentials,
)
from app.accounts.forgetting import send_password_link
from app.accounts.models import Invitation, Purpose, User
from app.accounts.organisation import service as organisation
from app.accounts.organisation.errors import PasswordsOff
from app.accounts.signing import drop_cookie, go_on_signed_in, own_path, prove
from app.addresses import address_of
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, cookie_of
from app.journal import writing as journal
from app.journal.models import Action
from app.pages import read_form, render, see_other
from app.settings import Settings
from app.spelling import refuse_unknown_fields

router = APIRouter(include_in_schema=False)


@router.get("/", name="home")
@public
def home(request: Request) -> Response:
    """Where this person's work is."""
    user: User | None = request.state.user
    name = "sign_in" if user is None else "list_campaigns" if user.may_review else "list_annotation"
    return see_other(request, name)


@router.get("/sign-in", name="sign_in")
@public
def show_sign_in(request: Request, next: str = "", password: str = "", left: str = "") -> Response:
    """The sign-in form; `password=changed`: another one was just chosen; `left`: of whom one signed out."""
    if request.state.user is not None:
        return RedirectResponse(own_path(next), 303)
    return render(
        request,
        "accounts/sign_in.html",
        email="",
        next=own_path(next),
        errors={},
        has_new_password=password == "changed",
        left_organisation=left == "organisation",
    )


@router.post("/sign-in")
@public
def sign_in(
    request: Request,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Start a session, or ask for the second factor's code."""
    given, errors = read_form(form, schemas.SignIn)
    if not settings.password_sign_in:
        raise PasswordsOff(settings.organisation)
    if given is not None:
        try:
            user = prove(request, reading, given.email, given.password)
        except WrongCredentials as error:
            errors = {"": error.detail}
        else:
            target = own_path(given.next)
            if user.has_second_factor:
                ticket = service.ticket_for(settings.signing_secret(), session, user, now=utc_now())
                return _second_step(request, ticket, target)
            return go_on_signed_in(request, session, settings, user, target)
    return render(
        request,
        "accounts/sign_in.html",
        status=422,
        email=str(form.get("email", "")),
        next=own_path(str(form.get("next", ""))),
        errors=errors,
        has_new_password=False,
    )


def _second_step(
    request: Request, ticket: str, target: str, *, status: int = 200, errors: dict[str, str] | None = None
) -> HTMLResponse:
    return render(
        request,
        "accounts/second_step.html",
        status=status,
        ticket=ticket,
        next=target,
        errors=errors or {},
    )


@router.post("/sign-in/code", name="give_code")
@public
def give_code(request: Request, form: FormDep, session: SessionDep, settings: SettingsDep) -> Response:
    """Start a session for somebody who has shown a first factor, by the second factor's code."""
    given, errors = read_form(form, schemas.SecondStep)
    now = utc_now()
    ticket = str(form.get("ticket", ""))
    shown = service.read_ticket(settings.signing_secret(), session, ticket, now=now)
    if shown is None:
        return see_other(request, "sign_in")
    user = shown.user
    target = own_path(str(form.get("next", "")))
    if given is not None:
        limit = request.app.state.sign_in_limit
        limit.count_code(email=user.email)
        try:
            service.use_code(session, user, given.code, now=now)
        except WrongCode as error:
            facts = {**journal.naming(user), "at": "code"}
            journal.write(session, Action.SIGN_IN_REFUSED, by=None, details=facts)
            errors = {"code": error.detail}
        else:
            limit.forgive_code(email=user.email)
            by = {service.Way.ORGANISATION: settings.organisation, service.Way.LINK: "link"}
            return go_on_signed_in(
                request,
                session,
                settings,
                user,
                target,
                is_proved=shown.is_proved,
                by=by.get(shown.way, ""),
            )
    return _second_step(request, ticket, target, status=422, errors=errors)


@router.post("/sign-out", name="sign_out")
@signed_in
def sign_out(request: Request, user: CurrentUser, session: SessionDep, settings: SettingsDep) -> Response:
    """End this browser's session."""
    service.sign_out(session, cookie_of(request))
    journal.write(session, Action.SIGNED_OUT, by=user)
    # The provider is left by a link of the next page: a form's answer may lead to nobody but us.
    is_theirs = bool(settings.oidc_issuer) and organisation.linked(session, user, settings) is not None
    page = str(request.app.url_path_for("sign_in")) + ("?left=organisation" if is_theirs else "")
    response = RedirectResponse(page, 303)
    drop_cookie(response, settings)
    return response


@router.get("/forgotten-password", name="forgotten")
@public
def show_forgotten(request: Request, settings: SettingsDep) -> HTMLResponse:
    """Whom to ask for another password, or where to send a link."""
    return _forgotten(request, settings)


def _forgotten(
    request: Request,
    settings: Settings,
    *,
    status: int = 200,
    email: str = "",
    sent: bool = False,
    errors: dict[str, str] | None = None,
) -> HTMLResponse:
    return render(
        request,
        "accounts/forgotten.html",
        status=status,
        sends_mail=settings.sends_mail and settings.password_sign_in,
        contact=settings.contact,
        email=email,
        sent=sent,
        errors=errors or {},
    )


@router.post("/forgotten-password")
@public
def ask_for_password_link(
    request: Request, form: FormDep, reading: ReadingDep, settings: SettingsDep
) -> HTMLResponse:
    """Send a link, if there is such an account and a mail server; the answer is the same either way."""
    refuse_unknown_fields(form, schemas.Forgotten.model_fields)
    given, errors = read_form(form, schemas.Forgotten)
    if given is None or not (settings.sends_mail and settings.password_sign_in):
        return _forgotten(request, settings, status=422, email=str(form.get("email", "")), errors=errors)
    request.app.state.sign_in_limit.count_mail(address=address_of(request), email=given.email)
    with reading.begin() as looking:
        user = service.user_with_email(looking, given.email)
    answer = _forgotten(request, settings, sent=True)
    # After the answer, and the writing, too: how long it takes must not tell who has an account.
    if user is not None and user.disabled_at is None and not user.is_simulated:
        answer.background = BackgroundTask(
            send_password_link,
            request.app.state.database,
            settings,
            user.id,
            address=address_of(request),
            now=utc_now(),
        )
    return answer


def _require_usable(settings: Settings, link: Invitation) -> None:
    """Where nobody has a password, only links of whoever holds the database work: the way back in."""
    is_operators = link.purpose is Purpose.FIRST_ADMIN or link.invited_by_id is None
    if not settings.password_sign_in and not is_operators:
        raise PasswordsOff(settings.organisation)


@router.get("/password/{token}", name="choose_password")
@public
def show_password_link(
    request: Request, token: str, session: SessionDep, settings: SettingsDep
) -> HTMLResponse:
    """Ask for another password."""
    link, user = service.find_password_link(session, token, now=utc_now())
    _require_usable(settings, link)
    return render(request, "accounts/choose_password.html", token=token, email=user.email, errors={})


@router.post("/password/{token}")
@public
def choose_password(
    *,
    request: Request,
    token: str,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Set another password, and lead to signing in with it; or in, where no page asks for one."""
    now = utc_now()
    with reading.begin() as looking:
        link, user = service.find_password_link(looking, token, now=now)
        context = user.name, user.email, *service.names_here(looking)
    _require_usable(settings, link)
    given, errors = read_form(form, schemas.NewPasswordOnly)
    if given is not None:
        try:
            password_hash = service.hash_if_strong(given.password, context)
        except WeakPassword as error:
            errors = {"password": error.detail}
        else:
            user = service.choose_password(session, token, password_hash=password_hash, now=now)
            if not settings.password_sign_in:
                if user.has_second_factor:
                    ticket = service.ticket_for(
                        settings.signing_secret(), session, user, now=now, way=service.Way.LINK
                    )
                    return _second_step(request, ticket, "/")
                return go_on_signed_in(request, session, settings, user, "/", by="link")
            return RedirectResponse(request.app.url_path_for("sign_in") + "?password=changed", 303)
    return render(
        request, "accounts/choose_password.html", status=422, token=token, email=user.email, errors=errors
    )


@router.get("/invitations/{token}", name="accept_invitation")
@public
def show_invitation(request: Request, token: str, session: SessionDep, settings: SettingsDep) -> HTMLResponse:
    """Ask an invited person for a name, an e-mail and a password."""
    invitation = service.find_invitation(session, token, now=utc_now())
    _require_usable(settings, invitation)
    return render(
        request, "accounts/accept_invitation.html", invitation=invitation, token=token, form={}, errors={}
    )


@router.post("/invitations/{token}")
@public
def accept_invitation(
    *,
    request: Request,
    token: str,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Make the account and sign in."""
    now = utc_now()
    with reading.begin() as looking:
        invitation = service.find_invitation(looking, token, now=now)
        names = service.names_here(looking)
    _require_usable(settings, invitation)
    given, errors = read_form(form, schemas.InvitationAccept)
    if given is not None:
        try:
            user = _join(session, token, given, names, now=now)
        except (EmailTaken, EmailNotMeant) as error:
            errors = {"email": error.detail}
        except WeakPassword as error:
            errors = {"password": error.detail}
        else:
            limit = request.app.state.sign_in_limit
            limit.note_success(address=address_of(request), email=user.email)
            return go_on_signed_in(request, session, settings, user, "/")
    return render(
        request,
        "accounts/accept_invitation.html",
        status=422,
        invitation=invitation,
        token=token,
        form=form,
        errors=errors,
    )


def _join(
    session: Session, token: str, given: schemas.InvitationAccept, names: list[str], *, now: datetime
) -> User:
    # Before anything is written: hashing takes a while, and other writers need not wait for it.
    password_hash = service.hash_if_strong(given.password, (given.name, given.email, *names))
    return service.accept_invitation(
        session, token, email=given.email, name=given.name, password_hash=password_hash, now=now
    )
