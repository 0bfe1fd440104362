"""As `app.annotation.locking` and `app.annotation.leasing`, with what else can run in the same round trip."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.beside_classes import never_asked
from app.annotation.completing import EMPTY_PAGE, Means, Page, completed, page_of
from app.annotation.holding import LeasedQuestion
from app.annotation.leasing import (
    MAX_LEASED,
    Leased,
    Standing,
    answers_to_come,
    hold_again,
    leased_of,
    require_may_lease,
    standing_of,
)
from app.annotation.locking import LockedCampaign, lock_keys, require_admitted
from app.annotation.queue import MAX_TRIES, Block, Head, end_of_block
from app.annotation.returning import hosts_among
from app.annotation.rules import LEASE
from app.annotation.steering import LOOKED_AT, block_about, most_frequent, steered_block, steers
from app.campaigns.errors import CampaignNotFound
from app.fast import queue, statements
from app.fast.prepared import Bound, Results, run_all


class _Known(NamedTuple):
    given: statements.Given
    at: datetime


# When they were last counted, which takes the longer the more people there are. Among many, nobody misses
# what was answered in the last second.
_known: dict[UUID, _Known] = {}
FEW = 1_000  # answers to go


class _AboutMe(NamedTuple):
    """Statements that say what this person holds, and how far the campaign is."""

    held: Bound[statements.HeldQuestion]
    mine: Bound[statements.MyAnswers]
    given: Bound[statements.Given] | None  # None: counted a moment ago

    @property
    def all(self) -> list[Bound[Any]]:
        return [self.held, self.mine, *([self.given] if self.given else [])]


def lock_campaign(
    session: Session, campaign_id: UUID, *then: Bound[Any], by: User
) -> tuple[LockedCampaign, Results]:
    """As `app.annotation.locking.lock_campaign`, and then run further statements.

    Raises:
        CampaignNotFound: as for the plain one.
    """
    locks = []
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer anyway
        person, state = lock_keys(campaign_id, by)
        locks = [statements.TAKE_LOCKS.bind(person=person, state=state)]
    # In a statement of its own: one that waits for a lock still sees what was before.
    find = statements.CAMPAIGN.bind(campaign=campaign_id, me=by.id, outside=by.is_outside)
    results = run_all(session, *locks, find, *then)
    campaign = next(iter(results.of(find)), None)
    if campaign is None:
        raise CampaignNotFound
    require_admitted(session, campaign, by)
    return campaign, results


def lease(
    session: Session, campaign_id: UUID, *, count: int, one_class: bool = False, by: User, now: datetime
) -> tuple[LockedCampaign, Leased]:
    """As `app.annotation.leasing.lease`."""
    campaign, _ = lock_campaign(session, campaign_id, by=by)
    return campaign, lease_questions(session, campaign, count=count, by=by, now=now, one_class=one_class)


def lease_questions(
    session: Session,
    campaign: LockedCampaign,
    *,
    count: int,
    by: User,
    now: datetime,
    one_class: bool = False,
    first: Sequence[Bound[Any]] = (),
    freed: int = MAX_LEASED,
) -> Leased:
    """As `app.annotation.leasing.lease_questions`.

    Args:
        session: a writing one.
        campaign: locked for this person.
        count: how many at most.
        by: who gets them.
        now: from when they are held.
        one_class: the new ones are all of the class that comes first in the queue, and of the same block.
        first: statements to run before anything is leased; not run if it raises.
        freed: how many questions they end the holding of, if that is known: about so many will be taken.

    Raises:
        CampaignNotOpen: it is not open.
        PersonPaused: this person is to wait.
    """
    with_gold = require_may_lease(session, campaign, by)
    places = min(count, MAX_LEASED)
    if with_gold:
        run_all(session, *first)
        first = ()
        hold_again(session, campaign, places, by=by, now=now)
    about_me = _about_me(session, campaign, by, now)
    page: Page | None = None
    if one_class:  # of which more is to be known first
        run_all(session, *first)
        results, page = _take_page(session, campaign, places, about_me, by=by, now=now, with_gold=with_gold)
    else:
        results = _take(session, campaign, places, first, about_me, freed=freed, by=by, now=now)
    held = _questions(campaign, results.of(about_me.held))
    counted = _standing(session, campaign, about_me, results, now)
    held = completed(session, campaign, held, page, places, by=by, now=now, with_gold=with_gold, means=_MEANS)
    return leased_of(session, campaign, held[:count], counted, by=by)


def _mine(campaign: LockedCampaign, by: User, now: datetime) -> dict[str, object]:
    return {"campaign": campaign.id, "me": by.id, "now": now}


def _take(
    session: Session,
    campaign: LockedCampaign,
    places: int,
    first: Sequence[Bound[Any]],
    about_me: _AboutMe,
    *,
    freed: int,
    by: User,
    now: datetime,
) -> Results:
    """Lease questions until this person holds `places`; gives what there is about them then."""
    mine = _mine(campaign, by, now)
    if steers(session, campaign, now=now):
        _take_steered(session, campaign, places, first, by=by, now=now)
        first = ()
    start, looked_at = queue.free_from(campaign.id, now)
    for _ in range(MAX_TRIES):
        with queue.leasing_now(campaign.id, min(places, freed)) as leased_by_others:
            begin = start + leased_by_others if start else 0
            top_up = queue.TOP_UP.bind(**mine, until=now + LEASE, count=places, start=begin)
            results = run_all(session, *first, top_up, *about_me.all)
        first = ()
        told = results.of(top_up)
        if not told:
            break
        [tried] = told
        if tried.held + tried.chosen < places and start:  # there may be more before
            start, looked_at = 0, now
        elif tried.taken == tried.chosen:
            if tried.free_from is not None:
                queue.note_free_from(campaign.id, tried.free_from, looked_at)
            break
    return results


def _take_steered(
    session: Session,
    campaign: LockedCampaign,
    places: int,
    first: Sequence[Bound[Any]],
    *,
    by: User,
    now: datetime,
) -> None:
    """Lease questions of the block of which most returns to this person, if much does."""
    mine = _mine(campaign, by, now)
    look = queue.RETURNING_CLASSES.bind(**mine, room=LOOKED_AT)
    classes = most_frequent(run_all(session, *first, look).of(look))
    head = block_about(session, campaign, classes, by=by, now=now)
    if head is not None:
        queue.TOP_UP_OF_BLOCK.run(session, **_of_block(head.block), **mine, until=now + LEASE, count=places)


def _of_block(block: Block) -> dict[str, int]:
    return {
        "start": 0,
        "block_class": block.block_class,
        "block_rank": block.block_start,
        "block_end": block.block_end,
    }


def _take_page(
    session: Session,
    campaign: LockedCampaign,
    places: int,
    about_me: _AboutMe,
    *,
    by: User,
    now: datetime,
    with_gold: bool,
) -> tuple[Results, Page]:
    """Lease questions of one block, fewer by what else is to stand on the page.

    Gives what there is about this person then, and what that is.
    """
    mine = _mine(campaign, by, now)
    page = EMPTY_PAGE
    head: Head | None = None
    is_begun = False
    results = None
    for _ in range(MAX_TRIES):
        if head is None:
            head = steered_block(session, campaign, by=by, now=now) or _first_block(
                session, campaign, by=by, now=now
            )
            if head is None:
                break
            room = places - len(statements.HELD.run(session, **mine))
            page = page_of(session, campaign, room, head, by=by, now=now, with_gold=with_gold)
        top_up = queue.TOP_UP_OF_BLOCK.bind(
            **_of_block(head.block), **mine, until=now + LEASE, count=places - page.taken
        )
        results = run_all(session, top_up, *about_me.all)
        told = results.of(top_up)
        if not told or told[0].taken == told[0].chosen:
            break
        is_begun = is_begun or told[0].taken > 0
        head = head if is_begun else None  # others took all of it; a page once begun stays with its class
    return results or run_all(session, *about_me.all), page


def _first_block(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> Head | None:
    """As `app.annotation.queue.first_block`."""
    row = next(iter(queue.HEAD.run(session, **_mine(campaign, by, now))), None)
    if row is None:
        return None
    block = Block(row.candidate_class, row.rank, end_of_block(campaign, row.rank))
    return Head(block, row.probability)


def _held_questions(
    session: Session, campaign: LockedCampaign, *, by: User, now: datetime
) -> list[LeasedQuestion]:
    """As `app.annotation.holding.held_questions`."""
    return _questions(campaign, statements.HELD.run(session, **_mine(campaign, by, now)))


def _mix_in_returning(
    session: Session, campaign: LockedCampaign, firsts: Sequence[LeasedQuestion], *, by: User, now: datetime
) -> bool:
    """As `app.annotation.returning.mix_in_returning`."""
    hosts = hosts_among(campaign, firsts)
    mine = _mine(campaign, by, now) | {"until": now + LEASE}
    takes = [
        queue.RETURNING.bind(**mine, class_=each.class_, count=len(each.turns), turns=each.turns)
        for each in hosts
    ]
    results = run_all(session, *takes)
    return any(results.of(take) for take in takes)


_MEANS = Means(_mix_in_returning, _held_questions)


def _about_me(session: Session, campaign: LockedCampaign, by: User, now: datetime) -> _AboutMe:
    known = _known.get(campaign.id)
    to_come = answers_to_come(campaign, never_asked(session, campaign))
    is_many = known is not None and to_come - known.given.answers > FEW
    is_fresh = is_many and known is not None and timedelta(0) <= now - known.at < queue.LOOK_AGAIN
    return _AboutMe(
        statements.HELD.bind(**_mine(campaign, by, now)),
        statements.MY_ANSWERS.bind(campaign=campaign.id, me=by.id),
        None if is_fresh else statements.GIVEN.bind(campaign=campaign.id),
    )


def _questions(campaign: LockedCampaign, rows: Sequence[statements.HeldQuestion]) -> list[LeasedQuestion]:
    return [
        LeasedQuestion(
            id=row.id,
            dataset_id=campaign.dataset_id,
            example_id=row.example_id,
            candidate_class=row.candidate_class,
            class_name=row.class_name,
            expires_at=row.expires_at,
            rank=row.rank,
            probability=row.probability,
            turn=row.turn,
        )
        for row in rows
    ]


def _standing(
    session: Session, campaign: LockedCampaign, about_me: _AboutMe, results: Results, now: datetime
) -> Standing:
    [mine] = results.of(about_me.mine)
    if about_me.given is not None:
        [given] = results.of(about_me.given)
        _known[campaign.id] = _Known(given, now)
    given = _known[campaign.id].given
    return standing_of(
        campaign,
        mine=int(mine.answers),
        given=int(given.answers),
        has_gold=given.has_gold,
        never=never_asked(session, campaign),
    )
