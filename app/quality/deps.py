"""Dependencies of the audit's routes."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends

from app.campaigns.models import Campaign
from app.deps import SessionDep
from app.quality import service


def get_started_campaign(campaign_id: UUID, session: SessionDep) -> Campaign:
    """The campaign with its classes, for its audit: whoever is signed in may check it once it was opened."""
    return service.started_campaign(session, campaign_id)


StartedDep = Annotated[Campaign, Depends(get_started_campaign)]
