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
from app.idempotency import Once
from app.quality import service
from app.quality.schemas import AskAgain


def get_started_campaign(campaign_id: UUID, user: CurrentUser, session: SessionDep) -> Campaign:
    """The campaign with its classes, for its audit: its members may check it once it was opened."""
    return service.started_campaign(session, campaign_id, by=user)


StartedDep = Annotated[Campaign, Depends(get_started_campaign)]


def ask_about_doubtful(
    campaign_id: UUID,
    body: AskAgain,
    user: User,
    reading: sessionmaker[Session],
    work: UnitOfWork,
    *,
    once: Once | None = None,
) -> int:
    """Look for doubtful questions first, which takes long, and only then write, while nobody else can.

    Gives how many are asked again; of the same request before, how many were.
    """
    with reading.begin() as looking:
        if once and (made := once.made_before(looking)):
            return int(made)
        campaign = campaigns.find_campaign(looking, campaign_id, by=user)
        question_ids = service.most_doubtful(looking, campaign, count=body.count)
    with work() as session:
        if once and (made := once.begin(session, now=utc_now())):
            return int(made)
        campaign = campaigns.find_campaign(session, campaign_id, by=user)
        asked = service.ask_again(session, campaign, question_ids, by=user, now=utc_now())
        if once:
            once.end(session, asked)
        return asked
