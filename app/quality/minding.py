"""Minding people: who does not look is paused by itself, and what they alone said is asked again.

A job looks at each campaign at which somebody works, at most once a minute (see `precomputed`). It never
judges somebody whom an admin let go on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.models import OF_CLASS, Answer, Participant, PausedFor, Purpose, Question
from app.campaigns.by_belief import by_belief_numbers
from app.campaigns.models import Campaign, CampaignState
from app.campaigns.noting import note
from app.journal.models import Action
from app.journal.service import naming
from app.quality import looking
from app.quality.judging import left_out
from app.quality.models import Decision
from app.quality.uncounted import IS_HASTY

# Hasty answers: so many, and such a share of all.
MARKED_HASTE, PAUSED_HASTE = (10, 0.05), (30, 0.2)
UNRELIABLE = (PausedFor.KNOWN_PICTURES, PausedFor.LOOKING, PausedFor.HASTE)


@dataclass(frozen=True, slots=True)
class Conduct:
    """How somebody answers, as far as it may have to be minded."""

    answers: int  # yes and no, not the hasty ones
    hasty: int
    evidence: float  # see `looking.evidence`

    @property
    def marked_for(self) -> PausedFor | None:
        """What an admin should look at."""
        return self._beyond(looking.MARKED, MARKED_HASTE)

    @property
    def pause_for(self) -> PausedFor | None:
        """What they are paused for."""
        return self._beyond(looking.PAUSED, PAUSED_HASTE)

    def _beyond(self, evidence: float, haste: tuple[int, float]) -> PausedFor | None:
        if self.hasty >= haste[0] and self.hasty >= haste[1] * (self.answers + self.hasty):
            return PausedFor.HASTE
        if self.answers >= looking.FEWEST and self.evidence < evidence:
            return PausedFor.LOOKING
        return None


def hasty_counts(session: Session, campaign: Campaign) -> dict[UUID, int]:
    """How many live answers of each person nobody can have thought about."""
    rows = session.execute(
        select(Answer.user_id, func.count())
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.superseded_at.is_(None), IS_HASTY)
        .group_by(Answer.user_id)
    )
    return {user_id: int(count) for user_id, count in rows}


def conducts(
    session: Session, campaign: Campaign, rates: Mapping[str, Sequence[float]]
) -> dict[UUID, Conduct]:
    """Of everybody who answered, by what `Reliability.rates` says of them."""
    hasty = hasty_counts(session, campaign)
    told = {UUID(by): row for by, row in rates.items()}
    return {
        by: Conduct(
            answers=int(told[by][3]) if by in told else 0,
            hasty=hasty.get(by, 0),
            evidence=float(told[by][2]) if by in told else 0.0,
        )
        for by in {*told, *hasty}
    }


def mind_people(
    session: Session, campaign_id: UUID, rates: Mapping[str, Sequence[float]], *, now: datetime
) -> None:
    """Pause whoever is surely unreliable, and ask others what they alone said; `rates` as for `conducts`.

    Safe to run twice: whoever is paused stays so, and nothing is asked again twice.
    """
    campaign = session.get(Campaign, campaign_id)
    if campaign is None or campaign.state not in (CampaignState.OPEN, CampaignState.PAUSED):
        return
    found = conducts(session, campaign, rates)
    at_work = sum(conduct.answers >= looking.FEWEST for conduct in found.values())
    for user_id, conduct in found.items():
        why = conduct.pause_for
        if why is PausedFor.LOOKING and at_work <= 1:  # there is nobody to compare them with
            why = None
        if why is not None:
            annotation.pause_unreliable(session, campaign, user_id, why=why, now=now)
    if campaign.asks_again:
        waiting = session.scalars(
            select(Participant.user_id).where(
                Participant.campaign_id == campaign.id,
                Participant.paused_at.is_not(None),
                Participant.paused_for.in_(UNRELIABLE),
                Participant.asked_again.is_(None),
            )
        ).all()
        for user_id in waiting:
            _ask_again(session, campaign, user_id, now=now)


def _ask_again(session: Session, campaign: Campaign, user_id: UUID, *, now: datetime) -> None:
    person = session.get_one(User, user_id)
    asked = annotation.wait_again(session, campaign, alone(session, campaign, user_id), by=person, now=now)
    session.execute(
        update(Participant)
        .where(Participant.campaign_id == campaign.id, Participant.user_id == user_id)
        .values(asked_again=asked)
    )
    details = {"questions": asked, **naming(person)}
    note(session, Action.ASKED_AGAIN, campaign, by=None, details=details)


def alone(session: Session, campaign: Campaign, user_id: UUID) -> list[int]:
    """Ids of the finished questions to which only this person said yes or no."""
    query = select(Question.id).where(*_alone(campaign), Answer.user_id == user_id).order_by(Question.id)
    return list(session.scalars(query.join(Answer, Answer.question_id == Question.id)))


def alone_by_belief(session: Session, campaign: Campaign) -> dict[UUID, int]:
    """How many of them, by person, are by a model's belief: `Reliability.single` leaves these out."""
    numbers = by_belief_numbers(session, campaign.id)
    if not numbers:
        return {}
    query = select(Answer.user_id, func.count()).join(Question, Question.id == Answer.question_id)
    of_these = *_alone(campaign), Question.drawing.in_(numbers)
    return dict(session.execute(query.where(*of_these).group_by(Answer.user_id)).all())


def _alone(campaign: Campaign) -> tuple[ColumnElement[bool], ...]:
    """Of finished questions and their answers those that one person alone said yes or no to."""
    other = aliased(Answer)
    others = exists().where(
        other.question_id == Question.id,
        other.user_id != Answer.user_id,
        other.superseded_at.is_(None),
        other.value.in_(OF_CLASS),
        ~other.is_hasty,
        other.user_id.not_in(left_out(campaign.id)),
    )
    decided = exists().where(Decision.question_id == Question.id, Decision.superseded_at.is_(None))
    return (
        Question.campaign_id == campaign.id,
        Question.purpose == Purpose.LABELLING,
        ~Question.is_waiting,
        ~Question.is_set_aside,
        Answer.superseded_at.is_(None),
        Answer.value.in_(OF_CLASS),
        ~Answer.is_hasty,
        ~others,
        ~decided,
    )
