"""One's own account: password, tokens, where one is signed in, the second factor."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.access import in_person, signed_in
from app.accounts import schemas, service
from app.accounts.callers import digest
from app.accounts.errors import ProofNeeded, TooManyTokens, WeakPassword, WrongCode, WrongCredentials
from app.accounts.models import Scope, User
from app.accounts.organisation import service as organisation
from app.accounts.signing import prove, prove_again
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, cookie_of
from app.idempotency import FormOnceDep
from app.languages import gettext as _
from app.pages import read_form, render, see_other
from app.settings import Settings
from app.spelling import refuse_unknown_fields

router = APIRouter(include_in_schema=False)


def proof_error(error: ProofNeeded | WrongCredentials, user: User) -> dict[str, str]:
    """What stands beside the field for one's own password; above the form, where they have none."""
    if user.password_hash is None:
        return {"": _("Prove once more who you are to do this: your last sign-in is too long ago.")}
    wrong = _("This is not your present password.")
    return {"current": error.detail if isinstance(error, ProofNeeded) else wrong}


def _account(
    request: Request,
    session: Session,
    settings: Settings,
    user: User,
    *,
    status: int = 200,
    secret: str = "",
    token_form: object = None,
    token_errors: dict[str, str] | None = None,
    password_errors: dict[str, str] | None = None,
) -> HTMLResponse:
    now, cookie = utc_now(), cookie_of(request)
    sessions = session.scalars(service.sessions_of(user, now=now, idle_since=now - settings.session_idle))
    return render(
        request,
        "accounts/account.html",
        status=status,
        tokens=session.scalars(service.tokens_of(user, now=now)).all(),
        sessions=sessions.all(),
        here=digest(cookie) if cookie else "",
        is_proved=bool(cookie) and service.is_proved(session, cookie, now=now),
        scopes=[
            (Scope.READ, _("Look at what I may look at")),
            (Scope.ANNOTATE, _("Answer questions")),
            (Scope.MANAGE, _("Do all that I may, but tokens and passwords")),
        ],
        lives=[(days, _("{days} days").format(days=days)) for days in (7, 30, 90, 365)],
        linked=organisation.linked(session, user, settings),
        secret=secret,
        token_form=token_form or {},
        token_errors=token_errors or {},
        password_errors=password_errors or {},
    )


@router.get("/account", name="account")
@signed_in
def show_account(request: Request, user: CurrentUser, session: SessionDep, settings: SettingsDep) -> Response:
    """One's own password, tokens and sessions; an outside worker has none of them."""
    if user.is_outside:
        return see_other(request, "list_annotation")
    return _account(request, session, settings, user)


@router.post("/account/tokens", name="create_own_token")
@in_person
@signed_in
def create_own_token(
    *,
    request: Request,
    form: FormDep,
    once: FormOnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> HTMLResponse:
    """Make a token; the answer shows it, because nothing but its digest is kept."""
    given, errors = read_form(form, schemas.TokenForm)
    secret = ""
    if given is not None:
        try:
            prove_again(request, session, reading, user, given.current)
            once.begin_form(session)
            _token, secret = service.create_token(
                session, user, given.name, now=utc_now(), scope=given.scope, life=given.life
            )
        except (ProofNeeded, WrongCredentials) as error:
            errors = proof_error(error, user)
        except TooManyTokens as error:
            errors = {"": error.detail}
    return _account(
        request,
        session,
        settings,
        user,
        status=422 if errors else 201,
        secret=secret,
        token_form=form if errors else None,
        token_errors=errors,
    )


@router.post("/account/tokens/{token_id}/revoke", name="revoke_own_token")
@in_person
@signed_in
def revoke_own_token(request: Request, token_id: UUID, user: CurrentUser, session: SessionDep) -> Response:
    """Make a token useless."""
    service.revoke_token(session, token_id, by=user, now=utc_now())
    return see_other(request, "account")


@router.post("/account/sessions/{session_id}/end", name="end_own_session")
@in_person
@signed_in
def end_own_session(request: Request, session_id: str, user: CurrentUser, session: SessionDep) -> Response:
    """Sign another browser out."""
    service.end_session(session, session_id, by=user)
    return see_other(request, "account")


@router.post("/account/password", name="change_password")
@in_person
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
    """Set a new password; every other browser is signed out, and tokens end."""
    given, errors = read_form(form, schemas.PasswordChange)
    if given is not None:
        try:
            proved = prove(request, reading, user.email, given.current)
            with reading.begin() as looking:
                context = user.name, user.email, *service.names_here(looking)
            password_hash = service.hash_if_strong(given.password, context)
            service.change_password(
                session,
                user,
                proved=proved,
                password_hash=password_hash,
                keep=cookie_of(request),
                now=utc_now(),
            )
        except WrongCredentials as error:
            errors = proof_error(error, user)
        except WeakPassword as error:
            errors = {"password": error.detail}
        else:
            return see_other(request, "account")
    return _account(request, session, settings, user, status=422, password_errors=errors)


def _second_factor(
    request: Request,
    user: User,
    *,
    status: int = 200,
    secret: str = "",
    is_proved: bool,
    errors: dict[str, str] | None = None,
) -> HTMLResponse:
    return render(
        request,
        "accounts/second_factor.html",
        status=status,
        has_second_factor=user.has_second_factor,
        secret=" ".join(secret[place : place + 4] for place in range(0, len(secret), 4)),
        key_address=service.key_address(user, secret) if secret else "",
        key_picture=Markup(service.key_picture(user, secret)) if secret else "",  # of our making
        is_proved=is_proved,
        errors=errors or {},
    )


@router.get("/account/second-factor", name="second_factor")
@signed_in
def show_second_factor(request: Request, user: CurrentUser, session: SessionDep) -> HTMLResponse:
    """Whether one has a second factor, and how to get one."""
    is_proved = service.is_proved(session, cookie_of(request), now=utc_now())
    return _second_factor(request, user, is_proved=is_proved)


@router.post("/account/second-factor", name="begin_second_factor")
@in_person
@signed_in
def begin_second_factor(
    request: Request, form: FormDep, user: CurrentUser, session: SessionDep, reading: ReadingDep
) -> Response:
    """Show a secret for an authenticator; nothing is asked for before its first code has come back."""
    refuse_unknown_fields(form, schemas.ProofForm.model_fields)
    given, errors = read_form(form, schemas.ProofForm)
    if given is None or user.has_second_factor:
        return see_other(request, "second_factor")
    try:
        prove_again(request, session, reading, user, given.current)
    except (ProofNeeded, WrongCredentials) as error:
        errors = proof_error(error, user)
        return _second_factor(request, user, status=422, is_proved=False, errors=errors)
    secret = service.begin_second_factor(session, user)
    return _second_factor(request, user, secret=secret, is_proved=True)


@router.post("/account/second-factor/confirm", name="confirm_second_factor")
@in_person
@signed_in
def confirm_second_factor(
    request: Request, form: FormDep, user: CurrentUser, session: SessionDep, reading: ReadingDep
) -> Response:
    """Turn it on by a first code. The password is fresh, for a wrong code shows the secret again."""
    refuse_unknown_fields(form, schemas.FirstCode.model_fields)
    given, errors = read_form(form, schemas.FirstCode)
    if not user.totp_secret or user.has_second_factor:
        return see_other(request, "second_factor")
    prove_again(request, session, reading, user, "")
    limit = request.app.state.sign_in_limit
    if given is not None:
        limit.count_code(email=user.email)
        try:
            service.confirm_second_factor(session, user, given.code, now=utc_now(), keep=cookie_of(request))
        except WrongCode as error:
            errors = {"code": error.detail}
        else:
            limit.forgive_code(email=user.email)
            return see_other(request, "second_factor")
    return _second_factor(request, user, status=422, secret=user.totp_secret, is_proved=True, errors=errors)


@router.post("/account/second-factor/off", name="turn_off_second_factor")
@in_person
@signed_in
def turn_off_second_factor(
    request: Request, form: FormDep, user: CurrentUser, session: SessionDep, reading: ReadingDep
) -> Response:
    """Sign in without a code again."""
    refuse_unknown_fields(form, schemas.ProofForm.model_fields)
    given, errors = read_form(form, schemas.ProofForm)
    if given is None:
        return see_other(request, "second_factor")
    try:
        prove_again(request, session, reading, user, given.current)
    except (ProofNeeded, WrongCredentials) as error:
        errors = proof_error(error, user)
        return _second_factor(request, user, status=422, is_proved=False, errors=errors)
    service.turn_off_second_factor(session, user.id, by=user)
    return see_other(request, "second_factor")
