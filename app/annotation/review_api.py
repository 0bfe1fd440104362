"""JSON routes of the review: what is in doubt, asking again, decisions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status

from app.access import admin_only
from app.annotation import review_schemas as schemas
from app.annotation import service
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep

router = APIRouter(tags=["annotation"])

Limit = Annotated[int, Query(ge=1, le=1000)]
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
DecisionId = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("/campaigns/{campaign_id}/review")
@admin_only
def read_review(
    request: Request, campaign: CampaignDep, session: SessionDep, limit: Limit = 50
) -> schemas.ReviewRead:
    """Finished questions without a label, or with one in doubt; most doubtful first."""
    found = service.open_questions(session, campaign)
    decided, decisions = service.standing_decisions(session, campaign.id, limit=limit)
    names = campaign.class_names
    return schemas.ReviewRead(
        open=len(found),
        questions=[
            schemas.OpenQuestionRead(
                id=item.id,
                example_id=item.example_id,
                image_url=request.app.url_path_for(
                    "example_image", dataset_id=str(campaign.dataset_id), example_id=str(item.example_id)
                ),
                candidate_class=item.candidate_class,
                class_name=names[item.candidate_class],
                yes=item.yes,
                no=item.no,
                kind=item.kind,
                weight=item.weight,
            )
            for item in found[:limit]
        ],
        decided=decided,
        decisions=[schemas.DecisionRead.model_validate(item) for item in decisions],
    )


@router.get("/campaigns/{campaign_id}/examples/{example_id}/history")
@admin_only
def read_history(
    campaign: CampaignDep, example_id: ExampleId, user: CurrentUser, session: SessionDep
) -> schemas.HistoryRead:
    """Who was asked what about one example, who answered what, and what was settled."""
    return schemas.HistoryRead.model_validate(service.history(session, campaign, example_id, by=user))


@router.post("/campaigns/{campaign_id}/review/ask-again")
@admin_only
def ask_again(
    campaign: CampaignDep, body: schemas.AskAgain, user: CurrentUser, session: SessionDep
) -> schemas.AskedAgain:
    """Ask one more person about each of the most doubtful questions."""
    asked = service.ask_again(session, campaign, count=body.count, by=user, now=utc_now())
    return schemas.AskedAgain(asked=asked)


@router.post("/campaigns/{campaign_id}/decisions", status_code=status.HTTP_201_CREATED)
@admin_only
def decide(
    campaign: CampaignDep, body: schemas.DecisionInput, user: CurrentUser, session: SessionDep
) -> schemas.DecisionRead:
    """Settle a question in everybody's place. It stands above people's answers until it is taken back."""
    made = service.decide(session, campaign, body.question_id, body.value, by=user, now=utc_now())
    return schemas.DecisionRead(
        id=made.id,
        question_id=made.question_id,
        value=made.value,
        by_name=user.name,
        created_at=made.created_at,
    )


@router.post("/campaigns/{campaign_id}/decisions/{decision_id}/undo", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def take_back_decision(
    campaign: CampaignDep, decision_id: DecisionId, user: CurrentUser, session: SessionDep
) -> None:
    """Let people's answers count again."""
    service.take_back_decision(session, campaign, decision_id, by=user, now=utc_now())
