"""JSON routes: who I am, my tokens, people and invitations."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, status

from app.access import admin_only, signed_in
from app.accounts import schemas, service
from app.accounts.models import User
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, SettingsDep
from app.idempotency import OnceDep

router = APIRouter(tags=["accounts"])
Limit = Annotated[int, Query(ge=1, le=200)]


@router.get("/me", response_model=schemas.UserRead)
@signed_in
def show_me(user: CurrentUser) -> User:
    """The account this request is made with."""
    return user


@router.get("/tokens")
@signed_in
def list_tokens(user: CurrentUser, session: SessionDep) -> schemas.TokenPage:
    """My tokens that still work, newest first."""
    found = session.scalars(service.tokens_of(user))
    return schemas.TokenPage(items=[schemas.TokenRead.model_validate(token) for token in found])


@router.post("/tokens", status_code=status.HTTP_201_CREATED)
@signed_in
def create_token(
    body: schemas.TokenCreate, once: OnceDep, user: CurrentUser, session: SessionDep
) -> schemas.TokenCreated:
    """Make a bearer token for a program of mine. Its secret is shown this once."""
    once.begin_secret(session)
    token, secret = service.create_token(session, user, body.name, now=utc_now())
    once.end(session, token.id)
    return schemas.TokenCreated(id=token.id, name=token.name, created_at=token.created_at, token=secret)


@router.delete("/tokens/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
@signed_in
def revoke_token(token_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make one of my tokens useless."""
    service.revoke_token(session, token_id, by=user, now=utc_now())


@router.post("/invitations", status_code=status.HTTP_201_CREATED)
@admin_only
def invite(
    *,
    body: schemas.InvitationCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.InvitationCreated:
    """Make a one-time link for a new account."""
    once.begin_secret(session)
    invitation, secret = service.invite(session, role=body.role, note=body.note, by=user, now=utc_now())
    once.end(session, invitation.id)
    return schemas.InvitationCreated(
        id=invitation.id,
        role=invitation.role,
        note=invitation.note,
        expires_at=invitation.expires_at,
        url=service.invitation_url(settings.public_url, secret),
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
def update_user(user_id: UUID, body: schemas.UserUpdate, user: CurrentUser, session: SessionDep) -> User:
    """Lock somebody out, or let them in again; their answers stay."""
    return service.set_disabled(session, user_id, disabled=body.disabled, by=user, now=utc_now())


@router.post("/simulated-annotators", status_code=status.HTTP_201_CREATED)
@admin_only
def create_simulated_annotator(
    body: schemas.SimulatedAnnotatorCreate, once: OnceDep, user: CurrentUser, session: SessionDep
) -> schemas.SimulatedAnnotatorCreated:
    """An account for a program that answers in a person's place. Pages say so wherever its answers count."""
    once.begin_secret(session)
    simulated, token, secret = service.simulated_annotator(session, body.name, by=user, now=utc_now())
    once.end(session, token.id)
    return schemas.SimulatedAnnotatorCreated(
        user=schemas.UserRead.model_validate(simulated), token_id=token.id, token=secret
    )
