"""What several routes of quality do alike."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends
from sqlalchemy.orm import Session, sessionmaker

from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep, UnitOfWork
from app.quality import service
from app.quality.schemas import AskAgain


def get_started_campaign(campaign_id: UUID, user: CurrentUser, session: SessionDep) -> Campaign:
    """The campaign with its classes, for its audit: its members may check it once it was opened."""
    return service.started_campaign(session, campaign_id, by=user)


StartedDep = Annotated[Campaign, Depends(get_started_campaign)]


def ask_about_doubtful(
    campaign_id: UUID, body: AskAgain, user: User, reading: sessionmaker[Session], work: UnitOfWork
) -> int:
    """Look for doubtful questions first, which takes long, and only then write, while nobody else can."""
    with reading.begin() as looking:
        campaign = campaigns.find_campaign(looking, campaign_id, by=user)
        question_ids = service.most_doubtful(looking, campaign, count=body.count)
    with work() as session:
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        return service.ask_again(session, campaign, question_ids, by=user, now=utc_now())
