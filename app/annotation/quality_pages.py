"""HTML routes of known pictures and of people in a campaign."""

from uuid import UUID

from fastapi import APIRouter, Request, status
from fastapi.responses import Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.annotation import service
from app.annotation.errors import NothingKnown
from app.annotation.quality_schemas import GoldForm
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, SessionDep
from app.pages import read_form, render, see_other

router = APIRouter(include_in_schema=False)


@router.get("/campaigns/{campaign_id}/quality")
@admin_only
def show_quality(request: Request, campaign: CampaignDep, session: SessionDep) -> Response:
    """How reliable each person is, and what to do about it."""
    return _page(request, session, campaign, {})


@router.post("/campaigns/{campaign_id}/gold")
@admin_only
def mark_known_from_page(
    request: Request, form: FormDep, campaign: CampaignDep, user: CurrentUser, session: SessionDep
) -> Response:
    """Put random known pictures of each class between the questions."""
    read, errors = read_form(form, GoldForm)
    if read is None:
        return _page(request, session, campaign, errors)
    try:
        known = service.some_known(session, campaign, per_class=read.per_class)
    except NothingKnown as error:
        return _page(request, session, campaign, {"per_class": error.detail})
    service.mark_known(session, campaign, known, by=user)
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/pause")
@admin_only
def pause_person_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Pause somebody."""
    service.pause_person(session, campaign, user_id, by=user, now=utc_now())
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/resume")
@admin_only
def resume_person_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Let somebody go on."""
    service.resume_person(session, campaign, user_id, by=user)
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/leave-out")
@admin_only
def leave_out_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make no labels of somebody's answers."""
    service.leave_out(session, campaign, user_id, by=user, left_out=True)
    return _again(request, campaign)


@router.post("/campaigns/{campaign_id}/people/{user_id}/count")
@admin_only
def count_again_from_page(
    request: Request, campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep
) -> Response:
    """Make labels of them again."""
    service.leave_out(session, campaign, user_id, by=user, left_out=False)
    return _again(request, campaign)


def _again(request: Request, campaign: Campaign) -> Response:
    return see_other(request, "show_quality", campaign_id=str(campaign.id))


def _page(request: Request, session: Session, campaign: Campaign, errors: dict[str, str]) -> Response:
    return render(
        request,
        "campaigns/quality.html",
        status=status.HTTP_422_UNPROCESSABLE_CONTENT if errors else status.HTTP_200_OK,
        campaign=campaign,
        gold_pictures=service.gold_count(session, campaign.id),
        people=service.people(session, campaign),
        errors=errors,
    )
