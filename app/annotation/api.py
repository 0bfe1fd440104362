"""JSON routes of annotation: questions, answers, undo, leases; progress and the audit."""

from fastapi import APIRouter, Request, status

from app.access import admin_only, signed_in
from app.annotation import schemas, service
from app.annotation.deps import AnsweringDep
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep

router = APIRouter(tags=["annotation"])


@router.post("/campaigns/{campaign_id}/questions")
@signed_in
def lease_questions(
    request: Request,
    campaign: AnsweringDep,
    body: schemas.LeaseRequest,
    user: CurrentUser,
    session: SessionDep,
) -> schemas.LeasesRead:
    """Hold up to `count` questions for some minutes. Those held already come first, in the same order."""
    leased = service.lease_questions(
        session, campaign, count=body.count, one_class=body.one_class, by=user, now=utc_now()
    )
    standing = service.standing(session, campaign, by=user)
    return schemas.LeasesRead(
        questions=[_question(request, question) for question in leased],
        expires_at=min((question.expires_at for question in leased), default=None),
        answered_by_me=standing.answered_by_me,
        waiting=standing.waiting,
        lease_s=int(service.LEASE.total_seconds()),
    )


def _question(request: Request, question: service.LeasedQuestion) -> schemas.QuestionRead:
    image_url = request.app.url_path_for(
        "example_image", dataset_id=str(question.dataset_id), example_id=str(question.example_id)
    )
    return schemas.QuestionRead.of(question, image_url)


@router.post("/campaigns/{campaign_id}/answers")
@signed_in
def submit_answers(
    campaign: AnsweringDep, body: schemas.AnswersInput, user: CurrentUser, session: SessionDep
) -> schemas.OutcomesRead:
    """Store answers, each exactly once, however often it is sent under its key."""
    given = [item.given() for item in body.answers]
    outcomes = service.answer_questions(session, campaign, given, by=user, now=utc_now())
    return schemas.OutcomesRead(results=[schemas.OutcomeRead.of(item) for item in outcomes])


@router.post("/campaigns/{campaign_id}/undo")
@signed_in
def undo_answers(
    request: Request, campaign: AnsweringDep, body: schemas.UndoInput, user: CurrentUser, session: SessionDep
) -> schemas.UndoRead:
    """Take back my last answers; their questions are mine again. At most the last 30 can be undone."""
    undone = service.undo_answers(session, campaign, count=body.count, by=user, now=utc_now())
    return schemas.UndoRead(
        undone=[
            schemas.UndoneRead(question=_question(request, question), value=value)
            for question, value in undone
        ]
    )


@router.post("/campaigns/{campaign_id}/leases/renew")
@signed_in
def renew_leases(
    campaign: AnsweringDep, _: schemas.Empty, user: CurrentUser, session: SessionDep
) -> schemas.RenewalRead:
    """Hold my questions for another while."""
    return schemas.RenewalRead(expires_at=service.renew_leases(session, campaign, by=user, now=utc_now()))


@router.post("/campaigns/{campaign_id}/leases/release", status_code=status.HTTP_204_NO_CONTENT)
@signed_in
def release_leases(campaign: AnsweringDep, _: schemas.Empty, user: CurrentUser, session: SessionDep) -> None:
    """Give my questions back."""
    service.release_leases(session, campaign, by=user, now=utc_now())


@router.get("/campaigns/{campaign_id}/progress")
@admin_only
def read_progress(campaign: CampaignDep, session: SessionDep) -> schemas.ProgressRead:
    """How far the campaign is, by class and by person."""
    return schemas.ProgressRead.of(service.progress(session, campaign, now=utc_now()))
