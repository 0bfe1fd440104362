"""JSON routes of annotation: questions, answers, undo, leases; progress.

Hundreds of people call these at once: `app.fast` serves the POST routes, and says what parameters they have.
"""

from uuid import UUID

from fastapi import APIRouter, Request, status

from app.access import admin_only, signed_in
from app.annotation import schemas, service
from app.annotation.public_ids import public_ids_of
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.datasets.pictures import image_addresses
from app.deps import CurrentUser, SessionDep

router = APIRouter(tags=["annotation"])


@router.post("/campaigns/{campaign_id}/questions")
@signed_in
def lease_questions(
    request: Request, campaign_id: UUID, body: schemas.LeaseRequest, user: CurrentUser, session: SessionDep
) -> schemas.LeasesRead:
    """Hold up to `count` questions for some minutes. Those held already come first, in the same order."""
    campaign = service.lock_campaign(session, campaign_id, by=user)
    leased = service.lease_questions(
        session, campaign, count=body.count, by=user, now=utc_now(), one_class=body.one_class
    )
    return schemas.LeasesRead.of(
        leased, public_ids_of(session, campaign_id), image_addresses(request, campaign.dataset_id)
    )


@router.post("/campaigns/{campaign_id}/answers")
@signed_in
def submit_answers(
    request: Request, campaign_id: UUID, body: schemas.AnswersInput, user: CurrentUser, session: SessionDep
) -> schemas.OutcomesRead:
    """Store answers, each exactly once, however often it is sent under its key; and lease what comes next."""
    now = utc_now()
    ids = public_ids_of(session, campaign_id)
    submitted = [item.submitted(ids) for item in body.answers]
    campaign = service.lock_campaign(session, campaign_id, by=user)
    leased = None
    if body.next is None:
        outcomes = service.answer_questions(session, campaign, submitted, by=user, now=now)
    else:
        count, one_class = body.next.count, body.next.one_class
        outcomes, leased = service.answer_and_lease(
            session, campaign, submitted, count=count, one_class=one_class, by=user, now=now
        )
    return schemas.OutcomesRead.of(outcomes, leased, ids, image_addresses(request, campaign.dataset_id))


@router.post("/campaigns/{campaign_id}/undo")
@signed_in
def undo_answers(
    request: Request, campaign_id: UUID, body: schemas.UndoInput, user: CurrentUser, session: SessionDep
) -> schemas.UndoRead:
    """Take back my last answers; their questions are mine again. At most the last 30 can be undone."""
    campaign = service.lock_campaign(session, campaign_id, by=user)
    undone = service.undo_answers(session, campaign, count=body.count, by=user, now=utc_now())
    ids, address_of = public_ids_of(session, campaign_id), image_addresses(request, campaign.dataset_id)
    return schemas.UndoRead(
        undone=[
            schemas.UndoneRead(question=schemas.QuestionRead.of(question, ids, address_of), value=value)
            for question, value in undone
        ]
    )


@router.post("/campaigns/{campaign_id}/leases/renew")
@signed_in
def renew_leases(
    request: Request,  # noqa: ARG001
    campaign_id: UUID,
    body: schemas.Empty,  # noqa: ARG001
    user: CurrentUser,
    session: SessionDep,
) -> schemas.RenewalRead:
    """Hold my questions for another while."""
    campaign = service.lock_campaign(session, campaign_id, by=user)
    until = service.renew_leases(session, campaign, by=user, now=utc_now())
    return schemas.RenewalRead(expires_at=until)


@router.post("/campaigns/{campaign_id}/leases/release", status_code=status.HTTP_204_NO_CONTENT)
@signed_in
def release_leases(
    request: Request,  # noqa: ARG001
    campaign_id: UUID,
    body: schemas.Empty,  # noqa: ARG001
    user: CurrentUser,
    session: SessionDep,
) -> None:
    """Give my questions back."""
    campaign = service.lock_campaign(session, campaign_id, by=user)
    service.release_leases(session, campaign, by=user, now=utc_now())


@router.get("/campaigns/{campaign_id}/progress")
@admin_only
def read_progress(campaign: CampaignDep, session: SessionDep) -> schemas.ProgressRead:
    """How far the campaign is, by class and by person."""
    return schemas.ProgressRead.model_validate(service.progress(session, campaign, now=utc_now()))
