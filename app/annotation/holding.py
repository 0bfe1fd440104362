"""What somebody holds in a campaign, in the order in which it was leased."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.locking import LockedCampaign
from app.annotation.models import Lease, Question
from app.annotation.queue import HELD_BY_ME, mine
from app.campaigns.models import CampaignClass

_HELD = (
    select(
        Question.id,
        Question.example_id,
        Question.candidate_class,
        CampaignClass.name.label("class_name"),
        Lease.expires_at,
        Question.rank,
        Question.probability,
        Lease.turn,
    )
    .join(Lease, Lease.question_id == Question.id)
    .join(
        CampaignClass,
        and_(
            CampaignClass.campaign_id == Question.campaign_id,
            CampaignClass.position == Question.candidate_class,
        ),
    )
    .where(*HELD_BY_ME)
    .order_by(Lease.turn, Lease.id)
)


@dataclass(frozen=True, slots=True)
class LeasedQuestion:
    """A question that somebody holds."""

    id: int
    dataset_id: UUID
    example_id: int
    candidate_class: int
    class_name: str
    expires_at: datetime
    rank: int
    probability: float  # with which its class was drawn
    turn: int  # its place among what they hold


def held_questions(
    session: Session, campaign: LockedCampaign, *, by: User, now: datetime
) -> list[LeasedQuestion]:
    """What this person holds, in the order in which it was leased."""
    rows = session.execute(_HELD, mine(campaign, by, now))
    return [LeasedQuestion(dataset_id=campaign.dataset_id, **row._mapping) for row in rows]
