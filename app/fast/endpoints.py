"""The fast executions behind routes of `app.annotation.api`: the same parameters, the same answers."""

from collections.abc import Callable
from uuid import UUID

from fastapi import Request
from pydantic import BaseModel
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import api, schemas
from app.annotation.public_ids import public_ids_of
from app.clock import utc_now
from app.datasets.pictures import image_addresses
from app.fast import queue
from app.fast.answering import answer
from app.fast.leasing import lease_questions
from app.fast.locking import lock_campaign


def lease(
    request: Request, campaign_id: UUID, body: schemas.LeaseRequest, user: User, session: Session
) -> schemas.LeasesRead:
    """As `api.lease_questions`."""
    campaign, _ = lock_campaign(session, campaign_id, by=user)
    leased = lease_questions(
        session, campaign, count=body.count, one_class=body.one_class, by=user, now=utc_now()
    )
    address_of = image_addresses(request, campaign.dataset_id)
    return schemas.LeasesRead.of(leased, public_ids_of(session, campaign_id), address_of)


def submit(
    request: Request, campaign_id: UUID, body: schemas.AnswersInput, user: User, session: Session
) -> schemas.OutcomesRead:
    """As `api.submit_answers`."""
    ids = public_ids_of(session, campaign_id)
    campaign, outcomes, leased = answer(
        session,
        campaign_id,
        [item.submitted(ids) for item in body.answers],
        count=body.next.count if body.next else 0,
        one_class=body.next is not None and body.next.one_class,
        by=user,
        now=utc_now(),
    )
    return schemas.OutcomesRead.of(outcomes, leased, ids, image_addresses(request, campaign.dataset_id))


def release(request: Request, campaign_id: UUID, body: schemas.Empty, user: User, session: Session) -> None:
    """As `api.release_leases`, and what was given back is found at once."""
    queue.forget_free_from(campaign_id)
    api.release_leases(request, campaign_id, body, user, session)


ENDPOINTS: dict[Callable[..., object], Callable[..., BaseModel | None]] = {
    api.lease_questions: lease,
    api.submit_answers: submit,
    api.release_leases: release,
}
