"""JSON routes of annotation: questions, answers, undo, leases; progress.

Hundreds of people call these at once: `app.fast` serves the POST routes, and says what parameters they have.
"""

from uuid import UUID

from fastapi import APIRouter, Request, status
from sqlalchemy.orm import Session

from app.access import admin_only, signed_in
from app.accounts.models import User
from app.annotation import schemas, service
from app.annotation.deps import ScreenDep
from app.annotation.pictures import picture_addresses
from app.annotation.public_ids import public_ids_of
from app.campaigns.deps import CampaignDep
from app.campaigns.models import CampaignState
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep

router = APIRouter(tags=["annotation"])


@router.post("/campaigns/{campaign_id}/questions")
@signed_in
def lease_questions(
    request: Request, campaign_id: UUID, body: schemas.LeaseRequest, user: CurrentUser, session: SessionDep
) -> schemas.LeasesRead:
    """Hold up to `count` questions for some minutes. Those held already come first, in the same order."""
    return lease_by(
        service.PLAIN, request=request, campaign_id=campaign_id, body=body, user=user, session=session
    )


def lease_by(
    execution: service.Execution,
    *,
    request: Request,
    campaign_id: UUID,
    body: schemas.LeaseRequest,
    user: User,
    session: Session,
) -> schemas.LeasesRead:
    """The same by one of the executions."""
    campaign, leased = execution.lease(
        session, campaign_id, count=body.count, one_class=body.one_class, by=user, now=utc_now()
    )
    ids = public_ids_of(session, campaign_id)
    return schemas.LeasesRead.of(leased, ids, picture_addresses(request, campaign, ids, user))


@router.post("/campaigns/{campaign_id}/answers")
@signed_in
def submit_answers(
    request: Request, campaign_id: UUID, body: schemas.AnswersInput, user: CurrentUser, session: SessionDep
) -> schemas.OutcomesRead:
    """Store answers, each exactly once, however often it is sent under its key; and lease what comes next."""
    return submit_by(
        service.PLAIN, request=request, campaign_id=campaign_id, body=body, user=user, session=session
    )


def submit_by(
    execution: service.Execution,
    *,
    request: Request,
    campaign_id: UUID,
    body: schemas.AnswersInput,
    user: User,
    session: Session,
) -> schemas.OutcomesRead:
    """The same by one of the executions."""
    ids = public_ids_of(session, campaign_id)
    campaign, outcomes, leased = execution.answer(
        session,
        campaign_id,
        [item.submitted(ids) for item in body.answers],
        count=body.next.count if body.next else 0,
        one_class=body.next is not None and body.next.one_class,
        by=user,
        now=utc_now(),
    )
    if named := {item.key: item.shows for item in body.answers if item.shows is not None}:
        named_ms = {item.key: item.named_ms for item in body.answers}
        service.keep_names(session, campaign_id, named, named_ms=named_ms, by=user)
    address_of = picture_addresses(request, campaign, ids, user)
    return schemas.OutcomesRead.of(outcomes, leased, ids, address_of, goes_on=campaign.goes_on)


@router.post("/campaigns/{campaign_id}/undo")
@signed_in
def undo_answers(
    request: Request, campaign_id: UUID, body: schemas.UndoInput, user: CurrentUser, session: SessionDep
) -> schemas.UndoRead:
    """Take back my last answers; their questions are mine again. At most the last 30 can be undone."""
    campaign = service.lock_campaign(session, campaign_id, by=user)
    undone = service.undo_answers(session, campaign, count=body.count, by=user, now=utc_now())
    ids = public_ids_of(session, campaign_id)
    address_of = picture_addresses(request, campaign, ids, user)
    return schemas.UndoRead(
        undone=[
            schemas.UndoneRead(question=schemas.QuestionRead.of(question, ids, address_of), value=value)
            for question, value in undone
        ]
    )


@router.get("/campaigns/{campaign_id}/my-answers")
@signed_in
def read_my_answers(
    request: Request, campaign: ScreenDep, user: CurrentUser, session: SessionDep
) -> schemas.OwnAnswersRead:
    """My last answers here, newest first, at most 200."""
    ids = public_ids_of(session, campaign.id)
    address_of = picture_addresses(request, campaign, ids, user)
    return schemas.OwnAnswersRead(
        items=[
            schemas.OwnAnswerRead(
                question_id=ids.of(item.question_id),
                image_url=address_of(item.example_id),
                candidate_class=item.candidate_class,
                class_name=campaign.class_names[item.candidate_class],
                value=item.value,
                created_at=item.created_at,
                others=item.others,
            )
            for item in service.last_answers(session, campaign, by=user)
        ],
        may_change=campaign.state is CampaignState.OPEN,
        tells_others=service.tells_others(campaign),
    )


@router.get("/campaigns/{campaign_id}/my-figures")
@signed_in
def read_my_figures(campaign: ScreenDep, user: CurrentUser, session: SessionDep) -> schemas.OwnFiguresRead:
    """How many answers I gave here, how fast, and how far others agree."""
    return schemas.OwnFiguresRead.of(service.own_figures(session, campaign, by=user))


@router.post("/campaigns/{campaign_id}/my-answers")
@signed_in
def change_answer(
    request: Request,  # noqa: ARG001
    campaign_id: UUID,
    body: schemas.ChangeInput,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.ChangeRead:
    """Let one of my last 200 answers be another one, while the campaign is open."""
    status = service.change_shown_answer(
        session, campaign_id, body.question_id, body.value, key=body.key, by=user, now=utc_now()
    )
    return schemas.ChangeRead(status=status)


@router.post("/campaigns/{campaign_id}/practised", status_code=status.HTTP_204_NO_CONTENT)
@signed_in
def note_practised(
    request: Request,  # noqa: ARG001
    campaign_id: UUID,
    body: schemas.Empty,  # noqa: ARG001
    user: CurrentUser,
    session: SessionDep,
) -> None:
    """I did the practice cards, or skipped them: offer me none any more."""
    campaign = service.campaign_to_answer(session, campaign_id, by=user)
    service.note_practised(session, campaign, by=user)


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
