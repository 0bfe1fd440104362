"""JSON routes of known pictures and of people in a campaign."""

from uuid import UUID

from fastapi import APIRouter, status

from app.access import admin_only
from app.annotation import quality_schemas as schemas
from app.annotation import service
from app.campaigns.deps import CampaignDep
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep

router = APIRouter(tags=["annotation"])


@router.get("/campaigns/{campaign_id}/quality")
@admin_only
def read_quality(campaign: CampaignDep, session: SessionDep) -> schemas.QualityRead:
    """How reliable each person is: on known pictures, and by the model of Dawid and Skene."""
    pictures = service.gold_count(session, campaign.id)
    return schemas.QualityRead.of(pictures, service.people(session, campaign))


@router.post("/campaigns/{campaign_id}/gold")
@admin_only
def mark_known(
    campaign: CampaignDep, body: schemas.GoldInput, user: CurrentUser, session: SessionDep
) -> schemas.GoldRead:
    """Put pictures whose class is known between the questions. Marking one twice is marking it once."""
    known = [picture.known() for picture in body.pictures]
    if body.per_class is not None:
        known = service.some_known(session, campaign, per_class=body.per_class)
    marked = service.mark_known(session, campaign, known, by=user)
    return schemas.GoldRead(marked=marked, pictures=service.gold_count(session, campaign.id))


@router.post("/campaigns/{campaign_id}/people/{user_id}/pause", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def pause_person(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Give this person no more questions of the campaign."""
    service.pause_person(session, campaign, user_id, by=user, now=utc_now())


@router.post("/campaigns/{campaign_id}/people/{user_id}/resume", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def resume_person(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Let this person go on; known pictures are counted anew."""
    service.resume_person(session, campaign, user_id, by=user)


@router.post("/campaigns/{campaign_id}/people/{user_id}/leave-out", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def leave_out(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make no labels of this person's answers: in downloads, and in runs launched from now on."""
    service.leave_out(session, campaign, user_id, by=user, left_out=True)


@router.post("/campaigns/{campaign_id}/people/{user_id}/count", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def count_again(campaign: CampaignDep, user_id: UUID, user: CurrentUser, session: SessionDep) -> None:
    """Make labels of this person's answers again."""
    service.leave_out(session, campaign, user_id, by=user, left_out=False)
