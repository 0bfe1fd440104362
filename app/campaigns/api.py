"""JSON routes of campaigns: draft, open, pause, close."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response, status

from app.access import admin_only, signed_in
from app.campaigns import drawings, schemas, service
from app.campaigns.deps import CampaignDep
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep
from app.idempotency import OnceDep

router = APIRouter(tags=["campaigns"])


@router.post("/campaigns", response_model=schemas.CampaignRead, status_code=status.HTTP_201_CREATED)
@admin_only
def create_campaign(
    *,
    request: Request,
    response: Response,
    body: schemas.CampaignCreate,
    once: OnceDep,
    user: CurrentUser,
    session: SessionDep,
) -> Campaign:
    """Draft a campaign over the train split of a dataset."""
    now = utc_now()
    if made := once.begin(session, now=now):
        campaign = service.find_campaign(session, UUID(made), by=user)
    else:
        campaign = service.create_campaign(session, body.details(), by=user, now=now)
        once.end(session, campaign.id)
    response.headers["Location"] = request.app.url_path_for("read_campaign", campaign_id=str(campaign.id))
    return campaign


@router.get("/campaigns")
@signed_in
def read_campaigns(
    *,
    user: CurrentUser,
    session: SessionDep,
    dataset_id: UUID | None = None,
    archived: Annotated[bool, Query(description="those that are archived, in place of the others")] = False,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> schemas.CampaignPage:
    """Campaigns, newest first, those over one dataset or all. Annotators see open ones."""
    found = service.list_campaigns(
        session, by=user, dataset_id=dataset_id, archived=archived, after=after, limit=limit + 1
    )
    return schemas.CampaignPage(
        items=[schemas.CampaignRead.of(campaign, by=user) for campaign in found[:limit]],
        next=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/campaigns/{campaign_id}")
@signed_in
def read_campaign(campaign: CampaignDep, user: CurrentUser) -> schemas.CampaignRead:
    """One campaign. The seed of its draws is shown once it is closed."""
    return schemas.CampaignRead.of(campaign, by=user)


@router.patch("/campaigns/{campaign_id}", response_model=schemas.CampaignRead)
@admin_only
def edit_campaign(
    campaign: CampaignDep, body: schemas.CampaignUpdate, user: CurrentUser, session: SessionDep
) -> Campaign:
    """Change a draft."""
    service.edit_campaign(session, campaign, body.details(campaign), by=user)
    return campaign


@router.delete("/campaigns/{campaign_id}", status_code=status.HTTP_204_NO_CONTENT)
@admin_only
def delete_campaign(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> None:
    """Delete a draft, or a closed campaign that no run rests on, with its questions, answers and imports."""
    service.delete_campaign(session, campaign, by=user)


@router.put("/campaigns/{campaign_id}/archived", response_model=schemas.CampaignRead)
@admin_only
def archive_campaign(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> Campaign:
    """Hide a draft or a closed campaign from lists. All else about it stays."""
    service.archive_campaign(session, campaign, by=user, now=utc_now())
    return campaign


@router.delete("/campaigns/{campaign_id}/archived", response_model=schemas.CampaignRead)
@admin_only
def restore_campaign(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> Campaign:
    """Show an archived campaign in lists again."""
    service.archive_campaign(session, campaign, by=user, now=None)
    return campaign


@router.post(
    "/campaigns/{campaign_id}/open",
    response_model=schemas.CampaignRead,
    status_code=status.HTTP_202_ACCEPTED,
)
@admin_only
def open_campaign(campaign: CampaignDep, once: OnceDep, user: CurrentUser, session: SessionDep) -> Campaign:
    """Draw a draft's questions in the background, then open it; or let a paused campaign go on."""
    now = utc_now()
    if not once.begin(session, now=now):
        service.open_campaign(session, campaign, by=user, now=now)
        once.end(session, campaign.id)
    return campaign


@router.post("/campaigns/{campaign_id}/pause", response_model=schemas.CampaignRead)
@admin_only
def pause_campaign(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> Campaign:
    """Hand out no more questions; answers to questions that people hold still count."""
    service.pause_campaign(session, campaign, by=user)
    return campaign


@router.post("/campaigns/{campaign_id}/close", response_model=schemas.CampaignRead)
@admin_only
def close_campaign(campaign: CampaignDep, user: CurrentUser, session: SessionDep) -> Campaign:
    """End the campaign for good and reveal the seed of its draws."""
    service.close_campaign(session, campaign, by=user, now=utc_now())
    return campaign


@router.get("/campaigns/{campaign_id}/drawings")
@admin_only
def read_drawings(campaign: CampaignDep, session: SessionDep) -> schemas.DrawingList:
    """What the campaign drew over which version of its dataset, and what it could ask about yet."""
    return schemas.DrawingList.of(
        campaign,
        drawings.drawings_of(session, campaign),
        drawings.pending_drawing(session, campaign),
        further_images=drawings.further_images(session, campaign),
    )


@router.post("/campaigns/{campaign_id}/further", status_code=status.HTTP_202_ACCEPTED)
@admin_only
def ask_further(
    campaign: CampaignDep, once: OnceDep, user: CurrentUser, session: SessionDep
) -> schemas.DrawingList:
    """Ask about images that have joined the dataset since; their questions are drawn in the background."""
    now = utc_now()
    if not once.begin(session, now=now):
        drawing = drawings.ask_further(session, campaign, by=user, now=now)
        once.end(session, drawing.id)
    return read_drawings(campaign, session)


@router.put("/campaigns/{campaign_id}/price", response_model=schemas.CampaignRead)
@admin_only
def set_price(
    campaign: CampaignDep, body: schemas.PriceInput, user: CurrentUser, session: SessionDep
) -> Campaign:
    """Say what an answer or an hour costs, at any time."""
    service.set_price(session, campaign, price=body.price, per=body.price_per, by=user)
    return campaign
