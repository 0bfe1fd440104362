"""What stands between the first questions of a lease: those that return, settled ones, and gold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.gold import lots, lots_of_page, mix_in
from app.annotation.holding import LeasedQuestion, held_questions
from app.annotation.locking import LockedCampaign
from app.annotation.queue import Head
from app.annotation.returning import lease_the_rest, mix_in_returning, places_for_returning
from app.annotation.rules import LEASE


@dataclass(frozen=True, slots=True)
class Page:
    """What is to stand between the first questions of a page."""

    returning: int = 0  # places for what returns
    gold: Sequence[bool] = ()  # whether behind each of the others

    @property
    def taken(self) -> int:
        """Places that first questions do not have."""
        return self.returning + sum(self.gold)


EMPTY_PAGE = Page()


class Means(NamedTuple):
    """How an execution does what it does most: as here, or as in `app.fast`."""

    mix_in_returning: Callable[..., bool]
    held_questions: Callable[..., list[LeasedQuestion]]


PLAIN_MEANS = Means(mix_in_returning, held_questions)


def page_of(
    session: Session,
    campaign: LockedCampaign,
    room: int,
    head: Head,
    *,
    by: User,
    now: datetime,
    with_gold: bool,
) -> Page:
    """What is to stand on a page of so many questions beside first ones, from `head` on."""
    returning = places_for_returning(session, campaign, room, head, by=by, now=now)
    if not with_gold:
        return Page(returning)
    left, class_ = room - returning, head.block.block_class
    return Page(returning, lots_of_page(session, campaign, left, class_, by=by, now=now))


def completed(
    session: Session,
    campaign: LockedCampaign,
    held: list[LeasedQuestion],
    page: Page | None,
    places: int,
    *,
    by: User,
    now: datetime,
    with_gold: bool,
    means: Means = PLAIN_MEANS,
) -> list[LeasedQuestion]:
    """The same with what returns and with gold between those that were leased now.

    Args:
        session: a writing one.
        campaign: that of the questions.
        held: all that this person holds.
        page: what is to stand between them; None where they are no page.
        places: how many this person is to hold; where first questions are left on no page.
        by: who holds them.
        now: when they were leased.
        with_gold: whether there is any for this person.
        means: of the execution.
    """
    fresh = _leased_now(held, now)
    is_mixed = bool(fresh) and means.mix_in_returning(session, campaign, fresh, by=by, now=now)
    if len(held) < places and not (page and fresh):
        is_mixed = lease_the_rest(session, campaign, places, by=by, now=now) or is_mixed
    if is_mixed:
        held = means.held_questions(session, campaign, by=by, now=now)
    if with_gold:
        gold = page.gold if page and fresh else None
        held = _with_gold_between(session, campaign, held, gold, by=by, now=now)
    return held


def _leased_now(held: Sequence[LeasedQuestion], now: datetime) -> list[LeasedQuestion]:
    return [question for question in held if question.expires_at == now + LEASE]


def _with_gold_between(
    session: Session,
    campaign: LockedCampaign,
    held: list[LeasedQuestion],
    drawn: Sequence[bool] | None,
    *,
    by: User,
    now: datetime,
) -> list[LeasedQuestion]:
    """`drawn`: behind which of those leased now gold is to stand; None: still to be drawn."""
    fresh = {question.id: question.candidate_class for question in _leased_now(held, now)}
    if not fresh:
        return held
    drawn = lots(campaign, len(fresh)) if drawn is None else drawn
    is_mixed = mix_in(session, campaign, fresh, drawn, by=by, now=now)
    return held_questions(session, campaign, by=by, now=now) if is_mixed else held
