"""Handing out questions: who may answer what, until when."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import CursorResult, Uuid, bindparam, select, text, update
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.consensus import MAX_SLOTS
from app.annotation.errors import CampaignNotOpen
from app.annotation.gold import lots, lots_of_page, mix_in
from app.annotation.models import Lease, Question
from app.annotation.participants import require_not_paused
from app.annotation.turns import Turn
from app.campaigns.draws import MAX_BLOCK
from app.campaigns.models import Campaign, CampaignState
from app.db import UtcDateTime
from app.prepared import Given, Prepared, Rows, together

LEASE = timedelta(minutes=10)
MAX_LEASED = 100  # questions one person can hold in one campaign
MAX_TRIES = 5

# What somebody may take: its slots are not all answered or held. The conditions are sums and counts rather
# than NOT EXISTS: PostgreSQL would turn those into a join with everything I have ever answered.
_IN_QUEUE = "question.campaign_id = :campaign AND question.is_waiting"
_HAS_PLACE = """question.slots > (
        SELECT coalesce(sum({weight}), 0) FROM lease
        WHERE lease.question_id = question.id AND (lease.expires_at IS NULL OR lease.expires_at > :now))"""
# What I may take. My own live slot (99) rules a question out. CASE keeps the order: at the head of the queue
# nearly all is held by others, and of that my answers need not be looked up.
_MAY_TAKE = f"""{_IN_QUEUE}
      AND CASE WHEN {_HAS_PLACE.format(weight="CASE WHEN lease.user_id = :me THEN 99 ELSE 1 END")}
      THEN 0 = (
        SELECT count(*) FROM answer
        WHERE answer.question_id = question.id AND answer.user_id = :me AND answer.superseded_at IS NULL)
      ELSE false END"""
# The head of a block, locked so that it stays mine to take; the rest, of the same class, lies behind it.
_HEAD = f"""SELECT question.candidate_class AS block_class, question.rank AS block_rank
    FROM question WHERE {_MAY_TAKE} ORDER BY question.rank LIMIT 1 """
_OF_BLOCK = """AND question.candidate_class = :block_class
      AND question.rank >= :block_rank AND question.rank < :block_end"""

# One statement, so that nothing can come between choosing and taking. A slot is free when it has no row, or a
# row that has expired; the unique constraints settle every race. Somebody whose own lease on the question ran
# out gets that very slot again, because one person has one row per question at most.
_TOP_UP = """
WITH held AS (
    SELECT count(*) AS held_count, coalesce(max(lease.turn), 0) AS last_turn
    FROM lease JOIN question ON question.id = lease.question_id
    WHERE lease.user_id = :me AND lease.expires_at > :now AND question.campaign_id = :campaign
), free AS (
    SELECT question.id AS question_id, question.rank AS rank
    FROM question
    WHERE question.rank >= :start AND {may_take} {of_block}
    ORDER BY question.rank
    LIMIT (SELECT CASE WHEN held_count < :count THEN :count - held_count ELSE 0 END FROM held)
    {lock}
)
{before}
INSERT INTO lease (question_id, slot, user_id, expires_at, turn)
SELECT free.question_id,
       coalesce(
         (SELECT own.slot FROM lease AS own WHERE own.question_id = free.question_id AND own.user_id = :me),
         (SELECT min(open_slot.column1) FROM (VALUES {slots}) AS open_slot
          WHERE NOT EXISTS (
            SELECT 1 FROM lease AS live
            WHERE live.question_id = free.question_id AND live.slot = open_slot.column1
              AND (live.expires_at IS NULL OR live.expires_at > :now)))),
       :me, :until, held.last_turn + row_number() OVER (ORDER BY free.rank)
FROM free CROSS JOIN held WHERE true ORDER BY free.rank
ON CONFLICT (question_id, slot) DO UPDATE
    SET user_id = excluded.user_id, expires_at = excluded.expires_at, turn = excluded.turn
    WHERE lease.expires_at <= :now
{after}
"""
_SLOTS = ", ".join(f"({slot})" for slot in range(MAX_SLOTS))
_TYPES = (
    bindparam("campaign", type_=Uuid()),
    bindparam("me", type_=Uuid()),
    bindparam("now", type_=UtcDateTime()),
    bindparam("until", type_=UtcDateTime()),
)
# PostgreSQL: people pass by what others are taking at this moment. A lease that was committed between the
# statement's snapshot and its lock makes the insert take less than was chosen; then it is worth another try.
# SQLite: the transaction began IMMEDIATE, so nobody else writes.
_LOCK_QUESTION = "FOR NO KEY UPDATE OF question SKIP LOCKED"
_PARTS = {
    "postgresql": {
        "lock": _LOCK_QUESTION,
        "before": ", taken AS (",
        # Before any was taken: other transactions may yet not take what this one passed by.
        "after": f"""RETURNING id)
            SELECT held_count, (SELECT count(*) FROM free), (SELECT count(*) FROM taken),
                (SELECT question.rank FROM question
                WHERE question.rank >= :start AND {_IN_QUEUE} AND {_HAS_PLACE.format(weight="1")}
                ORDER BY question.rank LIMIT 1)
            FROM held""",
    },
    "sqlite": {"lock": "", "before": "", "after": ""},
}
_TOP_UPS = {
    is_block: Prepared(
        {
            dialect: text(
                _TOP_UP.format(
                    slots=_SLOTS, may_take=_MAY_TAKE, of_block=_OF_BLOCK if is_block else "", **parts
                )
            ).bindparams(*_TYPES)
            for dialect, parts in _PARTS.items()
        }
    )
    for is_block in (False, True)
}
# PostgreSQL: where each campaign's first question was that had a place for somebody, and when all before it
# was last looked at. What many people hold lies at the head of the queue, and to walk past it took most of
# the time of a lease.
_free_from: dict[UUID, tuple[int, datetime]] = {}
LOOK_AGAIN = timedelta(seconds=1)  # so long may what was given back, or passed by, wait
# How many questions each campaign's people are taking at this moment, from there on.
_under_way: Counter[UUID] = Counter()
_counting = Lock()
_HEADS = Prepared(
    {dialect: text(_HEAD + parts["lock"]).bindparams(*_TYPES[:3]) for dialect, parts in _PARTS.items()}
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


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a campaign is for one person."""

    answered_by_me: int
    waiting: int  # questions that still need an answer; about so many where there is gold


class Leased(NamedTuple):
    """What somebody holds in a campaign, and how far it is."""

    questions: list[LeasedQuestion]
    standing: Standing


class _Waiting(NamedTuple):
    questions: int  # known pictures left out
    has_gold: bool
    at: datetime


# When they were last counted, which takes the longer the more people there are. Among many, nobody misses
# what was answered in the last second.
_waiting: dict[UUID, _Waiting] = {}
FEW = 1_000


def lease_questions(
    session: Session,
    turn: Turn,
    *,
    count: int,
    by: User,
    now: datetime,
    one_class: bool = False,
    first: Sequence[Given] = (),
    freed: int = MAX_LEASED,
) -> Leased:
    """Up to `count` questions for this person: those already held first and in the same order, then new ones.

    Args:
        session: a writing one.
        turn: of this person.
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
    if turn.state is not CampaignState.OPEN:
        raise CampaignNotOpen(state=turn.state)
    with_gold = require_not_paused(session, turn, by) and turn.gold_share > 0
    until = now + LEASE
    held, standing_, drawn = _take(
        session,
        turn,
        min(count, MAX_LEASED),
        until,
        by=by,
        now=now,
        one_class=one_class,
        with_gold=with_gold,
        first=first,
        freed=freed,
    )
    fresh = {question.id: question.candidate_class for question in held if question.expires_at == until}
    if with_gold and fresh:
        drawn = lots(turn, len(fresh)) if drawn is None else drawn
        is_mixed = mix_in(session, turn, fresh, drawn, by=by, now=now)
        held = held_questions(session, turn, by=by, now=now) if is_mixed else held
    return Leased(held[:count], standing_)


def _take(
    session: Session,
    turn: Turn,
    places: int,
    until: datetime,
    *,
    by: User,
    now: datetime,
    one_class: bool,
    with_gold: bool,
    first: Sequence[Given],
    freed: int,
) -> tuple[list[LeasedQuestion], Standing, list[bool] | None]:
    """Lease questions until this person holds `places`; on a page fewer, by the gold that is to stand there.

    Gives what they hold then, how far the campaign is, and behind which of the new questions of a page gold
    is to stand.
    """
    mine: dict[str, object] = {"campaign": turn.id, "me": by.id, "now": now}
    drawn: list[bool] | None = None
    block: dict[str, int] = {}
    is_begun = False
    about_me = (
        statements.HELD.given(**mine),
        *_about_standing(turn.id, by=by, now=now),
    )
    found: list[Rows] = []
    start, looked_at = 0, now
    if one_class:  # of which more is to be known first
        together(session, *first)
        first = ()
    elif (known := _free_from.get(turn.id)) and timedelta(0) <= now - known[1] < LOOK_AGAIN:
        start, looked_at = known
    for _ in range(MAX_TRIES):
        if one_class and not block:
            head = _HEADS.row(session, **mine)
            if head is None:
                break
            block_class, rank = head
            block = {
                "block_class": block_class,
                "block_rank": rank,
                "block_end": _end_of_block(turn, rank),
            }
            if with_gold:
                room = places - len(held_questions(session, turn, by=by, now=now))
                drawn = lots_of_page(session, turn, room, block_class, by=by, now=now)
        wanted = places - sum(drawn or ())
        with taking(turn.id, 0 if one_class else min(wanted, freed)) as taken_by_others:
            begin = start + taken_by_others if start else 0
            top_up = _TOP_UPS[one_class].given(**mine, **block, until=until, count=wanted, start=begin)
            tried, *found = together(session, *first, top_up, *about_me)[len(first) :]
        first = ()
        if not tried:  # SQLite, where nothing can come between
            break
        [(had, chosen, taken, free_from)] = tried
        if had + chosen < wanted and start:  # there may be more before
            start, looked_at = 0, now
        elif taken == chosen:
            if free_from is not None and not one_class:
                _free_from[turn.id] = free_from, looked_at
            break
        is_begun = is_begun or taken > 0
        block = block if is_begun else {}  # others took all of it; a page once begun stays with its class
    held, *counted = found or together(session, *about_me)
    standing_ = _standing(turn.id, counted, question_count=turn.question_count, now=now)
    return _questions(turn, held), standing_, drawn


@contextmanager
def taking(campaign_id: UUID, count: int) -> Iterator[int]:
    """Gives how many others are taking meanwhile: who begins behind those need not look at each of them."""
    with _counting:
        others = _under_way[campaign_id]
        _under_way[campaign_id] += count
    try:
        yield others
    finally:
        with _counting:
            _under_way[campaign_id] -= count


def _end_of_block(turn: Turn, rank: int) -> int:
    """The rank before which a page ends. Questions asked again are sparse: theirs come from all blocks."""
    return rank + MAX_BLOCK if rank < turn.question_count else 2**62


def held_questions(session: Session, turn: Turn, *, by: User, now: datetime) -> list[LeasedQuestion]:
    """What this person holds, in the order in which it was leased."""
    return _questions(turn, statements.HELD.rows(session, campaign=turn.id, me=by.id, now=now))


def _questions(turn: Turn, rows: Rows) -> list[LeasedQuestion]:
    return [
        LeasedQuestion(
            id=id_,
            dataset_id=turn.dataset_id,
            example_id=example_id,
            candidate_class=candidate_class,
            class_name=name,
            expires_at=expires_at,
        )
        for id_, example_id, candidate_class, name, expires_at in rows
    ]


def renew_leases(session: Session, turn: Turn, *, by: User, now: datetime) -> datetime | None:
    """Hold what this person holds for another while; gives until when, None if they hold nothing."""
    return now + LEASE if _set_expiry(session, turn, now + LEASE, by=by, now=now) else None


def release_leases(session: Session, turn: Turn, *, by: User, now: datetime) -> None:
    """Give back what this person holds. An answer that comes late still counts while nobody took the slot."""
    _free_from.pop(turn.id, None)
    _set_expiry(session, turn, now, by=by, now=now)


def _set_expiry(session: Session, turn: Turn, expires_at: datetime, *, by: User, now: datetime) -> int:
    # Rows that somebody is taking over now are passed by: waiting for them could end in a deadlock.
    held = (
        select(Lease.id)
        .join(Question, Question.id == Lease.question_id)
        .where(Question.campaign_id == turn.id, Lease.user_id == by.id, Lease.expires_at > now)
        .with_for_update(of=Lease, skip_locked=True)
    )
    changed = session.execute(
        update(Lease).where(Lease.id.in_(held)).values(expires_at=expires_at),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(changed, CursorResult)
    return changed.rowcount


def standing(session: Session, campaign: Campaign, *, by: User, now: datetime) -> Standing:
    """How many answers of mine count, and how many questions still wait: sums of few rows."""
    counted = together(session, *_about_standing(campaign.id, by=by, now=now))
    return _standing(campaign.id, counted, question_count=campaign.question_count, now=now)


def _about_standing(campaign_id: UUID, *, by: User, now: datetime) -> list[Given]:
    mine = statements.MY_ANSWERS.given(campaign=campaign_id, me=by.id)
    known = _waiting.get(campaign_id)
    if known and known.questions > FEW and timedelta(0) <= now - known.at < LOOK_AGAIN:
        return [mine]
    return [mine, statements.FINISHED.given(campaign=campaign_id)]


def _standing(campaign_id: UUID, counted: list[Rows], *, question_count: int, now: datetime) -> Standing:
    [[(answered,)], *of_all] = counted
    if of_all:
        [[(finished, has_gold)]] = of_all
        _waiting[campaign_id] = _Waiting(question_count - int(finished), has_gold, now)
    waiting = _waiting[campaign_id]
    return Standing(int(answered), about(waiting.questions) if waiting.has_gold else waiting.questions)


def about(count: int) -> int:
    """Rounded up to tens, from 1,000 on to two digits: an answer to gold leaves the exact count as it was.

    Only 0 gives 0.
    """
    step = max(10, int("1" + "0" * (len(str(count)) - 2)))
    return -(-count // step) * step
