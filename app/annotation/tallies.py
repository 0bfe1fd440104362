"""Running sums of answers, so that pages of a campaign with many answers need not count them."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.locking import LockedCampaign
from app.annotation.models import AnswerValue, Tally
from app.annotation.rules import Effect
from app.campaigns.models import Campaign

_COUNTS = (
    "yes",
    "no",
    "unsure",
    "unusable",
    "first_yes",
    "first_no",
    "confirmed",
    "denied",
    "finished",
    "timed",
    "active_ms",
)
_OF_CLASSES = (
    select(Tally)
    .where(
        Tally.campaign_id == bindparam("campaign"),
        Tally.user_id == bindparam("me"),
        Tally.candidate_class.in_(bindparam("classes", expanding=True)),
    )
    .execution_options(populate_existing=True)
)


def load_tallies(
    session: Session,
    campaign: Campaign | LockedCampaign,
    classes: Collection[int],
    *,
    by: User,
    now: datetime,
) -> dict[int, Tally]:
    """This person's sums by class, to be changed: only their own requests write them, one at a time."""
    values = {"campaign": campaign.id, "me": by.id, "classes": list(classes)}
    found = session.scalars(_OF_CLASSES, values) if classes else ()
    tallies = {tally.candidate_class: tally for tally in found}
    for class_ in set(classes) - set(tallies):
        tallies[class_] = Tally(
            campaign_id=campaign.id, user_id=by.id, candidate_class=class_, **dict.fromkeys(_COUNTS, 0)
        )
        session.add(tallies[class_])
    for tally in tallies.values():
        tally.last_at = now
    return tallies


def count_answer(
    tally: Tally, effect: Effect, *, value: AnswerValue, response_ms: int | None, sign: int = 1
) -> None:
    """Add an answer and what follows from it; `sign` -1 takes the answer out again."""
    setattr(tally, value, getattr(tally, value) + sign)
    if effect.is_first and value.is_of_class:
        setattr(tally, f"first_{value}", getattr(tally, f"first_{value}") + sign)
    tally.finished += effect.finished
    tally.confirmed += effect.confirmed
    tally.denied += effect.denied
    tally.timed += sign * (response_ms is not None)
    tally.active_ms += sign * (response_ms or 0)
