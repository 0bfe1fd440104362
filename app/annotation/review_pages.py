"""HTML routes of the review."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.annotation import service
from app.annotation.review_schemas import AskAgain, DecisionInput
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, SessionDep
from app.pages import read_form, render, see_other

router = APIRouter(include_in_schema=False)

SHOWN = 24  # questions on the page
SHOWN_DECISIONS = 12
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
DecisionId = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("/campaigns/{campaign_id}/review")
@admin_only
def show_review(request: Request, campaign: CampaignDep, session: SessionDep) -> Response:
    """Questions without a label or with one in doubt, for an admin to settle."""
    return _page(request, session, campaign)


@router.get("/campaigns/{campaign_id}/examples/{example_id}")
@admin_only
def show_history(
    request: Request, campaign: CampaignDep, example_id: ExampleId, user: CurrentUser, session: SessionDep
) -> Response:
    """What happened to one example."""
    return render(
        request,
        "campaigns/history.html",
        campaign=campaign,
        history=service.history(session, campaign, example_id, by=user),
    )


@router.post("/campaigns/{campaign_id}/review/ask-again")
@admin_only
def ask_again_from_page(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Ask one more person about the most doubtful questions."""
    read, errors = read_form(form, AskAgain)
    if read is None:
        return _page(request, session, campaign, errors)
    service.ask_again(session, campaign, count=read.count, by=user, now=utc_now())
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/decisions")
@admin_only
def decide_from_page(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Settle one question."""
    read, errors = read_form(form, DecisionInput)
    if read is None:
        return _page(request, session, campaign, errors)
    service.decide(session, campaign, read.question_id, read.value, by=user, now=utc_now())
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/decisions/{decision_id}/undo")
@admin_only
def take_back_decision_from_page(
    request: Request, campaign: CampaignDep, decision_id: DecisionId, user: CurrentUser, session: SessionDep
) -> Response:
    """Take a decision back."""
    service.take_back_decision(session, campaign, decision_id, by=user, now=utc_now())
    return _again(request, campaign)


def _again(request: Request, campaign: Campaign) -> Response:
    return see_other(request, "show_review", campaign_id=str(campaign.id))


def _page(
    request: Request, session: Session, campaign: Campaign, errors: dict[str, str] | None = None
) -> Response:
    found = service.open_questions(session, campaign)
    decided, decisions = service.standing_decisions(session, campaign.id, limit=SHOWN_DECISIONS)
    return render(
        request,
        "campaigns/review.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        open_count=len(found),
        questions=found[:SHOWN],
        decided=decided,
        decisions=decisions,
        errors=errors or {},
    )
