"""JSON routes: who I am, my tokens and sessions, people and invitations."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, status
from sqlalchemy.orm import Session

from app.access import admin_only, in_person, signed_in
from app.accounts import schemas, service
from app.accounts.callers import digest
from app.accounts.errors import TokenTooNarrow
from app.accounts.granting import Granting
from app.accounts.models import ApiToken, Invitation, Scope, User
from app.accounts.signing import prove_again
from app.clock import utc_now
from app.deps import CurrentUser, ReadingDep, SessionDep, SettingsDep, bearer_of, cookie_of, reached_at
from app.idempotency import OnceDep
from app.pages import address_of
from app.uses import made_by

router = APIRouter(tags=["accounts"])
Limit = Annotated[int, Query(ge=1, le=200)]


async def _granting(
    request: Request, session: SessionDep, reading: ReadingDep, user: CurrentUser
) -> Granting:
    return Granting(request, session, reading, by=user, now=utc_now())


GrantingDep = Annotated[Granting, Depends(_granting)]


@router.get("/me", response_model=schemas.UserRead)
@signed_in
def show_me(user: CurrentUser) -> User:
    """The account this request is made with."""
    return user


@router.post("/me/proof", status_code=status.HTTP_204_NO_CONTENT)
@in_person
@signed_in
def prove_myself(
    request: Request, body: schemas.Proof, user: CurrentUser, session: SessionDep, reading: ReadingDep
) -> None:
    """Give the password once more. For ten minutes this browser may then make tokens and admins."""
    prove_again(request, session, reading, user, body.password)


@router.get("/sessions")
@signed_in
def list_sessions(
    request: Request, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> schemas.SessionPage:
    """Where I am signed in, last used first."""
    now = utc_now()
    here = digest(cookie_of(request))
    found = session.scalars(service.sessions_of(user, now=now, idle_since=now - settings.session_idle))
    return schemas.SessionPage(
        items=[
            schemas.SessionRead(
                id=item.id_hash,
                created_at=item.created_at,
                expires_at=item.expires_at,
                seen_at=item.seen_at,
                address=item.address,
                browser=item.browser,
                is_this=item.id_hash == here,
            )
            for item in found
        ]
    )


@router.delete("/sessions/{session_id}", status_code=status.HTTP_204_NO_CONTENT)
@in_person
@signed_in
def end_session(session_id: str, user: CurrentUser, session: SessionDep) -> None:
    """Sign one of my browsers out."""
    service.end_session(session, session_id, by=user)


@router.get("/tokens")
@signed_in
def list_tokens(user: CurrentUser, session: SessionDep) -> schemas.TokenPage:
    """My tokens that still work, newest first."""
    return _tokens_of(session, user)


def _tokens_of(session: Session, user: User) -> schemas.TokenPage:
    found = session.scalars(service.tokens_of(user, now=utc_now()))
    return schemas.TokenPage(items=[schemas.TokenRead.model_validate(token) for token in found])


@router.post("/tokens", status_code=status.HTTP_201_CREATED)
@in_person
@signed_in
def create_token(
    request: Request,
    *,
    body: schemas.TokenCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    reading: ReadingDep,
) -> schemas.TokenCreated:
    """Make a bearer token for a program of mine. Its secret is shown this once."""
    once.begin_secret(session)
    prove_again(request, session, reading, user, "")
    token, secret = service.create_token(
        session, user, body.name, now=utc_now(), scope=body.scope, life=body.life
    )
    once.end(session, token.id)
    read = schemas.TokenRead.model_validate(token)
    return schemas.TokenCreated(**read.model_dump(), token=secret)


@router.delete("/tokens/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
@signed_in
def revoke_token(request: Request, token_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make one of my tokens useless; admins revoke anybody's. A token that may less revokes itself alone."""
    asked_with = _token_of(request, session)
    if asked_with is not None and asked_with.scope is not Scope.MANAGE and asked_with.id != token_id:
        raise TokenTooNarrow(asked_with.scope)
    service.revoke_token(session, token_id, by=user, now=utc_now())


def _token_of(request: Request, session: Session) -> ApiToken | None:
    return service.token_of_secret(session, bearer_of(request)) if request.state.by_token else None


@router.post("/invitations", status_code=status.HTTP_201_CREATED)
@admin_only
def invite(
    *,
    request: Request,
    body: schemas.InvitationCreate,
    once: OnceDep,
    granting: GrantingDep,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.InvitationCreated:
    """Make a one-time link for a new account."""
    once.begin_secret(session)
    invitation, secret = granting.invite(role=body.role, note=body.note, email=body.email)
    once.end(session, invitation.id)
    return _shown_once(invitation, service.invitation_url(reached_at(request, settings), secret))


@router.post("/invitations/several", status_code=status.HTTP_201_CREATED)
@admin_only
def invite_several(
    *,
    request: Request,
    body: schemas.InvitationsCreate,
    once: OnceDep,
    granting: GrantingDep,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.InvitationsCreated:
    """Make a one-time link for each of several addresses, or none: then it is told which are in the way."""
    once.begin_secret(session)
    made = granting.invite_several(body.addresses, role=body.role)
    once.end(session, made[0][0].id)
    begin = reached_at(request, settings)
    return schemas.InvitationsCreated(
        items=[_shown_once(item, service.invitation_url(begin, secret)) for item, secret in made]
    )


def _shown_once(invitation: Invitation, url: str) -> schemas.InvitationCreated:
    return schemas.InvitationCreated(
        id=invitation.id,
        role=invitation.role,
        note=invitation.note,
        email=invitation.email,
        expires_at=invitation.expires_at,
        url=url,
    )


@router.get("/users")
@admin_only
def list_users(session: SessionDep, after: UUID | None = None, limit: Limit = 100) -> schemas.UserPage:
    """Everybody with an account, simulated annotators included."""
    found = session.scalars(service.people_after(after).limit(limit + 1)).all()
    return schemas.UserPage(
        items=[schemas.UserRead.model_validate(user) for user in found[:limit]],
        next=found[limit - 1].id if len(found) > limit else None,
    )


@router.patch("/users/{user_id}", response_model=schemas.UserRead)
@admin_only
def update_user(user_id: UUID, body: schemas.UserUpdate, granting: GrantingDep) -> User:
    """Lock somebody out or let them in again, give them another role or another name; their answers stay.

    But for a name, what they were signed in with ends for good. Who makes an admin or a reviewer gave their
    password lately.
    """
    if body.name is not None:
        user = granting.rename(user_id, body.name)
    if body.role is not None:
        user = granting.set_role(user_id, body.role)
    if body.disabled is not None:
        user = granting.set_disabled(user_id, disabled=body.disabled)
    return user


@router.get("/users/{user_id}/tokens")
@admin_only
def list_tokens_of(user_id: UUID, user: CurrentUser, session: SessionDep) -> schemas.TokenPage:
    """Somebody's tokens that still work, newest first."""
    return _tokens_of(session, service.get_person(session, user_id, by=user))


@router.get("/users/{user_id}/made")
@admin_only
def list_made_by(request: Request, user_id: UUID, user: CurrentUser, session: SessionDep) -> schemas.MadeRead:
    """What somebody made, to be looked at before they are erased."""
    made, others = made_by(session, service.get_person(session, user_id, by=user).id)
    named = [
        schemas.MadeThing(kind=use.kind, id=use.id, name=use.name, url=address_of(request, "read", use))
        for use in made.named
    ]
    return schemas.MadeRead(counts=made.counts | others, named=named, left_out=made.left_out)


@router.delete("/users/{user_id}/sessions", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def end_sessions_of(user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Sign somebody out wherever they are signed in."""
    service.end_sessions(session, user_id, by=user)


@router.post("/users/{user_id}/password-link", status_code=status.HTTP_201_CREATED)
@admin_only
def make_password_link(
    *,
    request: Request,
    user_id: UUID,
    once: OnceDep,
    granting: GrantingDep,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.PasswordLinkCreated:
    """Make a one-time link by which somebody chooses another password. Only in person, never by a token."""
    once.begin_secret(session)
    link, secret = granting.make_password_link(user_id)
    once.end(session, link.id)
    return schemas.PasswordLinkCreated(
        expires_at=link.expires_at, url=service.password_url(reached_at(request, settings), secret)
    )


@router.delete("/users/{user_id}/second-factor", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def turn_off_second_factor(user_id: UUID, granting: GrantingDep) -> None:
    """Take away the second factor of somebody whose phone is lost. Only in person, never by a token."""
    granting.turn_off_second_factor(user_id)


@router.post("/simulated-annotators", status_code=status.HTTP_201_CREATED)
@admin_only
def create_simulated_annotator(
    request: Request,
    *,
    body: schemas.SimulatedAnnotatorCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.SimulatedAnnotatorCreated:
    """An account for a program that answers in a person's place. Pages say so wherever its answers count."""
    once.begin_secret(session)
    simulated, token, secret = service.simulated_annotator(
        session, body.name, by=user, now=utc_now(), made_with=_token_of(request, session)
    )
    once.end(session, token.id)
    return schemas.SimulatedAnnotatorCreated(
        user=schemas.UserRead.model_validate(simulated), token_id=token.id, token=secret
    )
