"""JSON routes of evaluations: people judge a model's predictions."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access import admin_only
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, ReadingDep, SessionDep, StorageDep
from app.evaluations import service as evaluations
from app.evaluations.models import Evaluation
from app.idempotency import OnceDep
from app.registry import evaluating, service
from app.registry.evaluation_schemas import (
    ComparisonList,
    EvaluationCreate,
    EvaluationList,
    EvaluationPlanInput,
    EvaluationPlanRead,
    EvaluationRead,
    JudgedComparisonRead,
)

router = APIRouter(tags=["evaluations"])


@router.get("/models/{model_id}/evaluations/plan")
@admin_only
def read_evaluation_plan(
    model_id: UUID,
    asked: Annotated[EvaluationPlanInput, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> EvaluationPlanRead:
    """How many questions tell how often a model is right on its target; nothing is stored."""
    model = service.get_model(session, model_id, by=user)
    judged = evaluating.judged(session, storage, model, by=user)
    return EvaluationPlanRead.of(*evaluations.plans(session, judged, [asked.wishes()], by=user))


@router.post("/evaluations", status_code=status.HTTP_201_CREATED)
@admin_only
def create_evaluation(
    *,
    body: EvaluationCreate,
    request: Request,
    response: Response,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
    once: OnceDep,
    user: CurrentUser,
) -> EvaluationRead:
    """Draw a random sample of a model's predictions, and draft the campaign in which people judge them."""
    with reading.begin() as looking:
        if made := once.made_before(looking):
            before = evaluations.get_evaluation(looking, UUID(made), by=user)
            return _shown(request, response, looking, before)
        model = service.get_model(looking, body.model_id, by=user)
        judged = evaluating.judged(looking, storage, model, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):
        evaluation = evaluations.get_evaluation(session, UUID(made), by=user)
    else:
        evaluation = evaluations.create_evaluation(
            session, judged, body.wishes(), name=body.name or "", by=user, now=now
        )
        once.end(session, evaluation.id)
    return _shown(request, response, session, evaluation)


def _shown(request: Request, response: Response, session: Session, evaluation: Evaluation) -> EvaluationRead:
    response.headers["Location"] = request.app.url_path_for("read_evaluation", evaluation_id=evaluation.id)
    return _read(session, [evaluation])[0]


@router.get("/evaluations")
@admin_only
def read_evaluations(
    *,
    run_id: UUID | None = None,
    model_id: UUID | None = None,
    dataset_id: UUID | None = None,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    session: SessionDep,
    user: CurrentUser,
) -> EvaluationList:
    """Evaluations, newest first: all, those of a run or a model, or those over a target dataset."""
    found, following = evaluations.list_evaluations(
        session, by=user, run_id=run_id, model_id=model_id, dataset_id=dataset_id, after=after, limit=limit
    )
    return EvaluationList(items=_read(session, found), next=following)


@router.get("/evaluations/{evaluation_id}")
@admin_only
def read_evaluation(evaluation_id: UUID, session: SessionDep, user: CurrentUser) -> EvaluationRead:
    """One evaluation, with what people's answers say so far."""
    evaluation = evaluations.get_evaluation(session, evaluation_id, by=user)
    campaign = session.get(Campaign, evaluation.campaign_id) if evaluation.campaign_id else None
    result = evaluations.result_of(session, evaluation)
    return EvaluationRead.of(evaluation, campaign, result, evaluations.confusion_of(session, evaluation))


@router.get("/evaluations/{evaluation_id}/comparisons")
@admin_only
def read_comparisons(evaluation_id: UUID, session: SessionDep, user: CurrentUser) -> ComparisonList:
    """The model beside others that people judged on the same images."""
    evaluation = evaluations.get_evaluation(session, evaluation_id, by=user)
    return ComparisonList(
        items=[JudgedComparisonRead.of(item) for item in evaluations.comparisons_of(session, evaluation)]
    )


def _read(session: Session, found: Sequence[Evaluation]) -> list[EvaluationRead]:
    ids = {evaluation.campaign_id for evaluation in found}
    results = evaluations.results_of(session, found)
    campaigns = {row.id: row for row in session.scalars(select(Campaign).where(Campaign.id.in_(ids)))}
    return [
        EvaluationRead.of(
            evaluation,
            campaigns.get(evaluation.campaign_id) if evaluation.campaign_id else None,
            results[evaluation.id],
        )
        for evaluation in found
    ]
