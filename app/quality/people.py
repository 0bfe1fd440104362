"""How everybody in a campaign does: on gold, and by the model of Dawid and Skene."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Participant, Tally
from app.campaigns.models import Campaign
from app.quality.judging import reliability
from app.quality.models import KeptFigures
from app.quality.precomputed import is_large


@dataclass(frozen=True, slots=True)
class Person:
    """One person's part in a campaign."""

    user_id: UUID
    name: str
    is_simulated: bool
    answers: int
    gold_right: int
    gold_wrong: int
    paused_at: datetime | None
    is_paused_by_gold: bool
    is_left_out: bool
    sensitivity: float | None  # rate of yes where yes is right; None before anybody answered
    specificity: float | None  # rate of no where no is right

    @property
    def gold_accuracy(self) -> float | None:
        """Share right of the known pictures."""
        known = self.gold_right + self.gold_wrong
        return self.gold_right / known if known else None


def people(session: Session, campaign: Campaign) -> list[Person]:
    """Everybody who answered, most answers first; `campaign` has its classes.

    Their rates are as of `figures_at`.
    """
    rates = _rates(session, campaign)
    found = []
    for row, id_, name, is_simulated, answers in session.execute(_everybody(campaign)):
        sensitivity, specificity = rates.get(id_, (None, None))
        part = row or Participant(gold_right=0, gold_wrong=0, is_left_out=False)
        found.append(
            Person(
                user_id=id_,
                name=name,
                is_simulated=is_simulated,
                answers=int(answers or 0),
                gold_right=part.gold_right,
                gold_wrong=part.gold_wrong,
                paused_at=part.paused_at,
                is_paused_by_gold=part.paused_at is not None and part.paused_by_id is None,
                is_left_out=part.is_left_out,
                sensitivity=sensitivity,
                specificity=specificity,
            )
        )
    return sorted(found, key=lambda person: (-person.answers, person.name))


def _rates(session: Session, campaign: Campaign) -> dict[UUID, tuple[float, float]]:
    """Sensitivity and specificity by person: fitted to all answers, or kept from when a job did it."""
    if is_large(campaign):
        kept = session.get(KeptFigures, campaign.id)
        return {UUID(by): (rates[0], rates[1]) for by, rates in kept.rates.items()} if kept else {}
    fitted = reliability(session, campaign, num_classes=campaign.num_classes)
    return {UUID(by): rates for by, rates in fitted.rates().items()}


def _everybody(campaign: Campaign) -> Select[Participant | None, UUID, str, bool, int]:
    answers = func.sum(Tally.yes + Tally.no + Tally.unsure).label("answers")
    counted = (
        select(Tally.user_id, answers)
        .where(Tally.campaign_id == campaign.id)
        .group_by(Tally.user_id)
        .having(answers > 0)
        .subquery()
    )
    return (
        select(Participant, User.id, User.name, User.is_simulated, counted.c.answers)
        .select_from(User)
        .outerjoin(counted, counted.c.user_id == User.id)
        .outerjoin(Participant, (Participant.user_id == User.id) & (Participant.campaign_id == campaign.id))
        .where((counted.c.answers > 0) | Participant.user_id.is_not(None))
    )
