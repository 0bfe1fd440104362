"""JSON routes."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, status

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, SettingsDep
from app.idempotency import OnceDep
from app.notices import schemas, service
from app.notices.models import Event

router = APIRouter(tags=["notices"])


@router.get("/subscriptions")
@admin_only
def list_subscriptions(user: CurrentUser, session: SessionDep) -> schemas.SubscriptionPage:
    """Who is told of what happens, the oldest first."""
    found = service.list_subscriptions(session, by=user)
    return schemas.SubscriptionPage(items=[schemas.SubscriptionRead.of(row) for row in found])


@router.post("/subscriptions", status_code=status.HTTP_201_CREATED)
@admin_only
def create_subscription(
    body: schemas.SubscriptionCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
    settings: SettingsDep,
) -> schemas.SubscriptionCreated:
    """Have what happens posted to an address, signed as Standard Webhooks; or mailed to you."""
    once.begin_secret(session)
    events = [Event(event) for event in body.events]
    row = service.subscribe(session, settings, url=body.url, events=events, by=user, now=utc_now())
    once.end(session, row.id)
    whole = schemas.fields_of(row) | {"url": row.url}
    return schemas.SubscriptionCreated(**whole, secret=row.secret)


@router.delete("/subscriptions/{subscription_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_subscription(subscription_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Tell nobody more."""
    service.end_subscription(session, subscription_id, by=user)


@router.post("/subscriptions/{subscription_id}/test", status_code=status.HTTP_202_ACCEPTED)
@admin_only
def test_subscription(
    subscription_id: UUID, user: CurrentUser, session: SessionDep, settings: SettingsDep
) -> schemas.NoticeRead:
    """Send a notice that says that you asked for it."""
    notice = service.try_out(session, settings, subscription_id, by=user, now=utc_now())
    return schemas.NoticeRead.model_validate(notice)


@router.get("/subscriptions/{subscription_id}/notices")
@admin_only
def list_notices(
    subscription_id: UUID,
    user: CurrentUser,
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> schemas.NoticePage:
    """The newest that a subscription was told, and whether it arrived."""
    subscription = service.get_subscription(session, subscription_id, by=user)
    found = service.notices_of(session, subscription, limit=limit)
    return schemas.NoticePage(items=[schemas.NoticeRead.model_validate(row) for row in found])
