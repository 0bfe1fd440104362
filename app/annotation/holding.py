"""What somebody holds in a campaign, in the order in which it was leased."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, select, update
from sqlalchemy.orm import Session

from app.accounts.models import Role, User
from app.annotation.locking import LockedCampaign
from app.annotation.models import Lease, Question
from app.annotation.queue import HELD_BY_ME, mine
from app.campaigns.admission import admitted
from app.campaigns.models import Campaign, CampaignClass

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


def end_leases_of_strangers(session: Session, campaign_id: UUID, *, now: datetime) -> None:
    """Let others have what people hold who are no members any more.

    Take the campaign's state first (`app.campaigns.service.lock_state`): then nobody answers meanwhile.
    """
    held = (
        select(Lease.id)
        .join(Question, Question.id == Lease.question_id)
        .join(Campaign, Campaign.id == Question.campaign_id)
        .join(User, User.id == Lease.user_id)
        .where(
            Campaign.id == campaign_id,
            Lease.expires_at > now,
            User.role == Role.ANNOTATOR,
            ~admitted(User.id, User.is_outside),
        )
    )
    session.execute(
        update(Lease).where(Lease.id.in_(held)).values(expires_at=now),
        execution_options={"synchronize_session": False},
    )
