"""Signing in and out, invitations, people, one's own account."""

from datetime import timedelta
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session, sessionmaker

from app.access import admin_only, public, signed_in
from app.accounts import schemas, service
from app.accounts.errors import EmailTaken, WrongCredentials
from app.accounts.models import Role, User
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, session_cookie
from app.languages import gettext as _
from app.pages import read_form, render, see_other
from app.settings import Settings

router = APIRouter(include_in_schema=False)


def own_path(target: str) -> str:
    """The address to go on to, if it is a path of ours; else the home page.

    Browsers drop tabs and newlines and take backslashes for slashes, so "/\\t/evil" is another host.
    """
    is_ours = target.startswith("/") and not target.startswith("//") and "\\" not in target
    return target if is_ours and target.isprintable() else "/"


def _go_on_signed_in(
    request: Request, session: Session, settings: Settings, user: User, target: str
) -> Response:
    """Start a session with a new id, drop the one the browser came with, and go on."""
    name = session_cookie(settings)
    if old := request.cookies.get(name):
        service.sign_out(session, old)
    secret = service.start_session(session, user, now=utc_now())
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


@router.get("/", name="home")
@public
def home(request: Request) -> Response:
    """Where this person's work is."""
    user: User | None = request.state.user
    name = "sign_in" if user is None else "list_campaigns" if user.is_admin else "list_annotation"
    return see_other(request, name)


@router.get("/sign-in", name="sign_in")
@public
def show_sign_in(request: Request, next: str = "") -> Response:
    """The sign-in form."""
    if request.state.user is not None:
        return RedirectResponse(own_path(next), 303)
    return render(request, "accounts/sign_in.html", email="", next=own_path(next), errors={})


def _prove(request: Request, reading: sessionmaker[Session], email: str, password: str) -> User:
    """Whose e-mail and password these are, while no writer waits; counts the attempts."""
    limit = request.app.state.sign_in_limit
    address = request.client.host if request.client else ""
    limit.count(address=address, email=email)
    with reading.begin() as looking:
        user = service.check_credentials(looking, email, password)
    limit.forgive(address=address, email=email)
    return user


@router.post("/sign-in")
@public
def sign_in(
    request: Request,
    form: FormDep,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Start a session."""
    given, errors = read_form(form, schemas.SignIn)
    if given is not None:
        try:
            user = _prove(request, reading, given.email, given.password)
        except WrongCredentials as error:
            errors = {"": error.detail}
        else:
            return _go_on_signed_in(request, session, settings, user, own_path(given.next))
    return render(
        request,
        "accounts/sign_in.html",
        status=422,
        email=str(form.get("email", "")),
        next=own_path(str(form.get("next", ""))),
        errors=errors,
    )


@router.post("/sign-out", name="sign_out")
@signed_in
def sign_out(request: Request, session: SessionDep, settings: SettingsDep) -> Response:
    """End this browser's session."""
    name = session_cookie(settings)
    if secret := request.cookies.get(name):
        service.sign_out(session, secret)
    response = see_other(request, "sign_in")
    response.delete_cookie(name, path="/", secure=settings.is_secure, httponly=True, samesite="lax")
    # Pages of the person who left must not come back with the back button.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@router.get("/invitations/{token}", name="accept_invitation")
@public
def show_invitation(request: Request, token: str, session: SessionDep) -> HTMLResponse:
    """Ask an invited person for a name, an e-mail and a password."""
    invitation = service.find_invitation(session, token, now=utc_now())
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
    given, errors = read_form(form, schemas.InvitationAccept)
    if given is not None:
        # Before anything is written: hashing takes a while, and other writers need not wait for it.
        password_hash = service.hash_if_strong(given.password)
        try:
            user = service.accept_invitation(
                session, token, email=given.email, name=given.name, password_hash=password_hash, now=now
            )
        except EmailTaken as error:
            errors = {"email": error.detail}
        else:
            return _go_on_signed_in(request, session, settings, user, "/")
    return render(
        request,
        "accounts/accept_invitation.html",
        status=422,
        invitation=invitation,
        token=token,
        form=form,
        errors=errors,
    )


def _people(
    request: Request, session: Session, *, status: int = 200, link: str = "", errors: dict[str, str]
) -> HTMLResponse:
    return render(
        request,
        "accounts/people.html",
        status=status,
        people=session.scalars(service.people()).all(),
        invitations=session.scalars(service.open_invitations(utc_now())).all(),
        roles=[(Role.ANNOTATOR, "Annotator: answers questions"), (Role.ADMIN, "Admin: may do everything")],
        link=link,
        errors=errors,
    )


@router.get("/people", name="people")
@admin_only
def list_people(request: Request, session: SessionDep) -> HTMLResponse:
    """Everybody with an account, and the links that nobody has used yet."""
    return _people(request, session, errors={})


@router.post("/people/invitations", name="create_invitation")
@admin_only
def create_invitation(
    request: Request, form: FormDep, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> HTMLResponse:
    """Make a link; the answer shows it, because nothing but its digest is kept."""
    given, errors = read_form(form, schemas.InvitationCreate)
    if given is None:
        return _people(request, session, status=422, errors=errors)
    _, secret = service.invite(session, role=given.role, note=given.note, by=user, now=utc_now())
    link = service.invitation_url(settings.public_url, secret)
    return _people(request, session, status=201, link=link, errors={})


@router.post("/people/invitations/{invitation_id}/withdraw", name="withdraw_invitation")
@admin_only
def withdraw_invitation(
    request: Request, invitation_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make an open link useless."""
    service.withdraw_invitation(session, invitation_id, by=user, now=utc_now())
    return see_other(request, "people")


@router.post("/people/{user_id}/disable", name="disable_user")
@admin_only
def disable_user(request: Request, user_id: UUID, user: CurrentUser, session: SessionDep) -> Response:
    """Lock somebody out; their answers stay."""
    service.set_disabled(session, user_id, disabled=True, by=user, now=utc_now())
    return see_other(request, "people")


@router.post("/people/{user_id}/enable", name="enable_user")
@admin_only
def enable_user(request: Request, user_id: UUID, user: CurrentUser, session: SessionDep) -> Response:
    """Let somebody in again."""
    service.set_disabled(session, user_id, disabled=False, by=user, now=utc_now())
    return see_other(request, "people")


def _account(
    request: Request,
    session: Session,
    user: User,
    *,
    status: int = 200,
    secret: str = "",
    token_errors: dict[str, str] | None = None,
    password_errors: dict[str, str] | None = None,
) -> HTMLResponse:
    return render(
        request,
        "accounts/account.html",
        status=status,
        tokens=session.scalars(service.tokens_of(user)).all(),
        secret=secret,
        token_errors=token_errors or {},
        password_errors=password_errors or {},
    )


@router.get("/account", name="account")
@signed_in
def show_account(request: Request, user: CurrentUser, session: SessionDep) -> HTMLResponse:
    """One's own password and tokens."""
    return _account(request, session, user)


@router.post("/account/tokens", name="create_own_token")
@signed_in
def create_own_token(request: Request, form: FormDep, user: CurrentUser, session: SessionDep) -> HTMLResponse:
    """Make a token; the answer shows it, because nothing but its digest is kept."""
    given, errors = read_form(form, schemas.TokenCreate)
    if given is None:
        return _account(request, session, user, status=422, token_errors=errors)
    _, secret = service.create_token(session, user, given.name, now=utc_now())
    return _account(request, session, user, status=201, secret=secret)


@router.post("/account/tokens/{token_id}/revoke", name="revoke_own_token")
@signed_in
def revoke_own_token(request: Request, token_id: UUID, user: CurrentUser, session: SessionDep) -> Response:
    """Make a token useless."""
    service.revoke_token(session, token_id, by=user, now=utc_now())
    return see_other(request, "account")


@router.post("/account/password", name="change_password")
@signed_in
def change_password(
    *,
    request: Request,
    form: FormDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """Set a new password; every other browser is signed out."""
    given, errors = read_form(form, schemas.PasswordChange)
    if given is not None:
        try:
            proved = _prove(request, reading, user.email, given.current)
            password_hash = service.hash_if_strong(given.password)
            keep = request.cookies.get(session_cookie(settings), "")
            service.change_password(session, user, proved=proved, password_hash=password_hash, keep=keep)
        except WrongCredentials:
            errors = {"current": _("This is not your present password.")}
        else:
            return see_other(request, "account")
    return _account(request, session, user, status=422, password_errors=errors)
