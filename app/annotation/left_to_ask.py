"""Who is left to ask: people at work in a campaign who have not answered a question."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, false, func, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from app.accounts.models import Role, User
from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT
from app.annotation.models import ALL_ANSWERS, Answer, Participant, Tally
from app.campaigns.admission import admitted
from app.campaigns.models import Campaign, CampaignState

AWAY = timedelta(days=1)  # without an answer while others answered: such a person is at work no longer


def people_at_work(session: Session, campaign_id: UUID) -> set[UUID]:
    """Who answers in this campaign and may go on: a member, not paused, disabled or away."""
    rows = session.execute(
        select(Tally.user_id, func.max(Tally.last_at).label("last_at"), func.count(Participant.paused_at))
        .join(User, User.id == Tally.user_id)
        .join(Campaign, Campaign.id == Tally.campaign_id)
        .outerjoin(
            Participant,
            (Participant.campaign_id == Tally.campaign_id) & (Participant.user_id == Tally.user_id),
        )
        .where(
            Tally.campaign_id == campaign_id,
            ALL_ANSWERS > 0,
            User.disabled_at.is_(None),
            or_(User.role != Role.ANNOTATOR, admitted(User.id, User.is_outside)),
        )
        .group_by(Tally.user_id)
    ).all()
    since = max((row.last_at for row in rows), default=None)
    return {user_id for user_id, last_at, paused in rows if not paused and since and last_at >= since - AWAY}


def is_asked_of_all(question_id: InstrumentedAttribute[int], people: Collection[UUID]) -> ColumnElement[bool]:
    """Whether all these people have answered a question, if only that they cannot tell."""
    if len(people) > MAX_SLOTS + UNSURE_LIMIT:  # so many never answer one
        return false()
    said = aliased(Answer)  # the statement around it may be about answers as well
    answered = select(func.count(said.id)).where(
        said.question_id == question_id, said.superseded_at.is_(None), said.user_id.in_(people)
    )
    return answered.scalar_subquery() >= len(people)


def nobody_is_left(
    campaign: Campaign, question_id: InstrumentedAttribute[int], people: Collection[UUID]
) -> ColumnElement[bool]:
    """Whether a question with answers gets no more: all at work answered it, or the campaign is closed."""
    return true() if campaign.state is CampaignState.CLOSED else is_asked_of_all(question_id, people)
