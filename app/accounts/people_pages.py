"""People: the list, one person, and links for those who are to come."""

from collections.abc import Sequence
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.accounts import schemas, service
from app.accounts.errors import (
    AccountDisabled,
    AccountErased,
    AccountOfProgram,
    AccountOfWorker,
    BadAddresses,
    EmailTaken,
    NotAllowed,
    ProofNeeded,
    WrongCredentials,
)
from app.accounts.granting import Granting
from app.accounts.models import Role, User
from app.accounts.own_pages import proof_error
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, ReadingDep, SessionDep, SettingsDep, cookie_of, reached_at
from app.given import arrivals_of, given_by
from app.idempotency import FormOnceDep, Once
from app.pages import address_of, read_form, render, see_other
from app.settings import Settings
from app.uses import made_by

router = APIRouter(include_in_schema=False)

ROLES = [
    (Role.ANNOTATOR, "Annotator: answers questions"),
    (Role.REVIEWER, "Reviewer: settles disagreements, downloads labels"),
    (Role.ADMIN, "Admin: may do everything"),
]


def _people(
    request: Request,
    session: Session,
    *,
    status: int = 200,
    link: str = "",
    links: Sequence[str] = (),
    form: object = None,
    errors: dict[str, str] | None = None,
    several: object = None,
    several_errors: dict[str, str] | None = None,
) -> HTMLResponse:
    now = utc_now()
    return render(
        request,
        "accounts/people.html",
        status=status,
        people=session.scalars(service.people()).all(),
        invitations=session.scalars(service.open_invitations(now)).all(),
        roles=ROLES,
        link=link,
        links=links,
        form=form or {},
        is_proved=service.is_proved(session, cookie_of(request), now=now),
        errors=errors or {},
        several=several or {},
        several_errors=several_errors or {},
    )


@router.get("/people", name="people")
@admin_only
def list_people(request: Request, session: SessionDep) -> HTMLResponse:
    """Everybody with an account, and the links that nobody has used yet."""
    return _people(request, session)


@router.post("/people/invitations", name="create_invitation")
@admin_only
def create_invitation(
    *,
    request: Request,
    form: FormDep,
    once: FormOnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> HTMLResponse:
    """Make a link; the answer shows it, because nothing but its digest is kept."""
    given, errors = read_form(form, schemas.InvitationForm)
    if given is not None:
        granting = Granting(request, session, reading, by=user, now=utc_now(), password=given.current)
        try:
            _link, secret = granting.invite(role=given.role, note=given.note, email=given.email, once=once)
        except EmailTaken as error:
            errors = {"email": error.detail}
        except (ProofNeeded, WrongCredentials) as error:
            errors = proof_error(error, user)
        else:
            link = service.invitation_url(reached_at(request, settings), secret)
            return _people(request, session, status=201, link=link)
    return _people(request, session, status=422, form=form, errors=errors)


@router.post("/people/invitations/several", name="create_invitations")
@admin_only
def create_invitations(
    *,
    request: Request,
    form: FormDep,
    once: FormOnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> HTMLResponse:
    """Make a link for each address, or tell the lines that are in the way; the answer shows the links."""
    given, errors = read_form(form, schemas.InvitationsForm)
    if given is not None:
        granting = Granting(request, session, reading, by=user, now=utc_now(), password=given.current)
        try:
            made = granting.invite_several(given.addresses.splitlines(), role=given.role, once=once)
        except BadAddresses as error:
            errors = {"addresses": error.detail}
        except (ProofNeeded, WrongCredentials) as error:
            errors = proof_error(error, user)
        else:
            begin = reached_at(request, settings)
            links = [f"{item.email} {service.invitation_url(begin, secret)}" for item, secret in made]
            return _people(request, session, status=201, links=links)
    return _people(request, session, status=422, several=form, several_errors=errors)


@router.post("/people/invitations/{invitation_id}/withdraw", name="withdraw_invitation")
@admin_only
def withdraw_invitation(
    request: Request, invitation_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make an open link useless."""
    service.withdraw_invitation(session, invitation_id, by=user, now=utc_now())
    return see_other(request, "people")


def person_page(
    request: Request,
    session: Session,
    settings: Settings,
    person: User,
    *,
    status: int = 200,
    link: str = "",
    errors: dict[str, str] | None = None,
    erase_errors: dict[str, str] | None = None,
) -> HTMLResponse:
    """A person's page, with what was wrong beside its fields."""
    now = utc_now()
    made, others = made_by(session, person.id)
    answered_count, given = given_by(session, person.id)
    return render(
        request,
        "accounts/person.html",
        status=status,
        person=person,
        tokens=session.scalars(service.tokens_of(person, now=now)).all(),
        sessions=session.scalars(
            service.sessions_of(person, now=now, idle_since=now - settings.session_idle)
        ).all(),
        roles=ROLES,
        link=link,
        is_proved=service.is_proved(session, cookie_of(request), now=now),
        made=[(use, address_of(request, "show", use)) for use in made.named],
        made_left_out=made.left_out,
        made_counts=made.counts | others,
        answered_count=answered_count,
        given=given,
        arrivals=arrivals_of(session, person.id),
        errors=errors or {},
        erase_errors=erase_errors or {},
    )


@router.get("/people/{user_id}", name="show_person")
@admin_only
def show_person(
    request: Request, user_id: UUID, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> HTMLResponse:
    """One person: role, state, tokens, where they are signed in."""
    return person_page(request, session, settings, service.get_person(session, user_id, by=user))


@router.post("/people/{user_id}/change", name="change_person")
@admin_only
def change_person(
    *,
    request: Request,
    user_id: UUID,
    form: FormDep,
    once: FormOnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
) -> Response:
    """What the buttons of a person's page do; `act` says which, and admins need one's own password."""
    given, errors = read_form(form, schemas.PersonForm)
    if given is not None and given.act is schemas.PersonAct.RENAME and given.name is None:
        given, errors = None, {"name": "Please fill this in."}
    link = ""
    if given is not None:
        granting = Granting(request, session, reading, by=user, now=utc_now(), password=given.current)
        try:
            link = _act(granting, given, user_id, reached_at(request, settings), once)
        except (ProofNeeded, WrongCredentials) as error:
            errors = proof_error(error, user)
        except (NotAllowed, AccountOfProgram, AccountOfWorker, AccountErased, AccountDisabled) as error:
            errors = {"": error.detail}
    if given is not None and not errors and not link:
        return see_other(request, "show_person", user_id=user_id)
    person = service.get_person(session, user_id, by=user)
    status = 422 if errors or given is None else 201
    return person_page(request, session, settings, person, status=status, link=link, errors=errors)


def _act(granting: Granting, given: schemas.PersonForm, user_id: UUID, begin: str, once: Once) -> str:
    """Do it; gives the link, if that is what was asked for: `begin` is how links do."""
    match given.act:
        case schemas.PersonAct.ADMIN:
            granting.set_role(user_id, Role.ADMIN)
        case schemas.PersonAct.REVIEWER:
            granting.set_role(user_id, Role.REVIEWER)
        case schemas.PersonAct.RENAME:
            granting.rename(user_id, given.name or "")
        case schemas.PersonAct.ANNOTATOR:
            granting.set_role(user_id, Role.ANNOTATOR)
        case schemas.PersonAct.DISABLE:
            granting.set_disabled(user_id, disabled=True)
        case schemas.PersonAct.ENABLE:
            granting.set_disabled(user_id, disabled=False)
        case schemas.PersonAct.NO_SECOND_FACTOR:
            granting.turn_off_second_factor(user_id)
        case schemas.PersonAct.SIGN_OUT:
            granting.end_sessions(user_id)
        case schemas.PersonAct.PASSWORD_LINK:
            return service.password_url(begin, granting.make_password_link(user_id, once=once)[1])
    return ""


@router.post("/people/{user_id}/tokens/{token_id}/revoke", name="revoke_token_of")
@admin_only
def revoke_token_of(
    request: Request, user_id: UUID, token_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make anybody's token useless."""
    service.revoke_token(session, token_id, by=user, now=utc_now())
    return see_other(request, "show_person", user_id=user_id)
