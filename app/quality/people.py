"""How everybody in a campaign does: on gold, by the model of `dawid_skene`, and whether they look."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import ALL_ANSWERS, Participant, PausedFor, Tally
from app.campaigns.models import Campaign
from app.quality.claims import Claims
from app.quality.minding import conducts
from app.quality.precomputed import fitted_or_kept


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
    paused_for: PausedFor | None
    asked_again: int | None  # questions that they alone answered, when others were asked; None: they were not
    is_left_out: bool
    marked_for: PausedFor | None  # what an admin should look at
    hasty: int  # answers that nobody can have thought about
    alone: int | None  # answers to questions that nobody else was asked: so many would be asked again
    sensitivity: float | None  # rate of yes where yes is right; None before anybody answered
    specificity: float | None  # rate of no where no is right

    @property
    def gold_accuracy(self) -> float | None:
        """Share right of the known pictures."""
        known = self.gold_right + self.gold_wrong
        return self.gold_right / known if known else None


def people(session: Session, campaign: Campaign) -> list[Person]:
    """As `people_and_claims`, without the claims."""
    return people_and_claims(session, campaign)[0]


def people_and_claims(session: Session, campaign: Campaign) -> tuple[list[Person], Claims | None]:
    """Everybody who answered, marked ones first, and what the model says of their labels.

    `campaign` has its classes.

    Their rates are as of `figures_at`.
    """
    rates, claims = fitted_or_kept(session, campaign)
    conduct = conducts(session, campaign, rates)
    told = {UUID(by): row for by, row in rates.items()}
    found = []
    for row, id_, name, is_simulated, answers in session.execute(_everybody(campaign)):
        row_of = told.get(id_)
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
                is_paused_by_gold=part.paused_for is PausedFor.KNOWN_PICTURES,
                paused_for=part.paused_for,
                asked_again=part.asked_again,
                is_left_out=part.is_left_out,
                marked_for=conduct[id_].marked_for if id_ in conduct else None,
                hasty=conduct[id_].hasty if id_ in conduct else 0,
                alone=None if row_of is None else int(row_of[4]),
                sensitivity=None if row_of is None else row_of[0],
                specificity=None if row_of is None else row_of[1],
            )
        )
    found.sort(key=lambda person: (person.marked_for is None, -person.answers, person.name))
    return found, claims


def _everybody(campaign: Campaign) -> Select[Participant | None, UUID, str, bool, int]:
    answers = func.sum(ALL_ANSWERS).label("answers")
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
