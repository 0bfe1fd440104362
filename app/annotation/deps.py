"""Loading the campaign that a route about answers names."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends

from app.annotation import service
from app.campaigns.models import Campaign
from app.deps import CurrentUser, SessionDep


def get_campaign_to_see(campaign_id: UUID, user: CurrentUser, session: SessionDep) -> Campaign:
    """For the screen: a paused campaign is shown, and says that it is paused."""
    return service.campaign_to_answer(session, campaign_id, by=user)


ScreenDep = Annotated[Campaign, Depends(get_campaign_to_see)]
