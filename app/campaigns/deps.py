"""Loading the campaign that a route names."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends

from app.campaigns import service
from app.campaigns.models import Campaign
from app.deps import CurrentUser, SessionDep


def get_campaign(campaign_id: UUID, user: CurrentUser, session: SessionDep) -> Campaign:
    """The campaign with its classes; an annotator finds open ones only."""
    return service.find_campaign(session, campaign_id, by=user)


CampaignDep = Annotated[Campaign, Depends(get_campaign)]
