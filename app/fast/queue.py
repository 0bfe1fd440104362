"""Taking questions from a campaign's queue, in one statement; and where its free questions begin."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Uuid, bindparam, text

from app.annotation.consensus import MAX_SLOTS
from app.annotation.queue import NOT_MET_AS_KNOWN, RETURNING_FOR_ME
from app.db import BigId, UtcDateTime
from app.fast.compiling import ListOf
from app.fast.prepared import Prepared

LOOK_AGAIN = timedelta(seconds=1)  # so long may what was given back, or passed by, wait


class Taken(NamedTuple):
    """What came of taking questions; told by PostgreSQL only, for on SQLite nothing can come between."""

    held: int  # questions that this person had
    chosen: int  # further ones
    taken: int  # of these; the others went to somebody else at this moment
    free_from: int | None  # rank of the first question that has a slot for somebody


class Head(NamedTuple):
    """The first question of the queue that this person may take."""

    candidate_class: int
    rank: int
    probability: float


# What somebody may take: its slots are not all answered or held. The conditions are sums and counts rather
# than NOT EXISTS: PostgreSQL would turn those into a join with everything I have ever answered.
_WAITING = "question.campaign_id = :campaign AND question.is_waiting"
_IN_QUEUE = f"{_WAITING} AND question.slots <= question.least"
_HAS_PLACE = """question.slots > (
        SELECT coalesce(sum({weight}), 0) FROM lease
        WHERE lease.question_id = question.id AND (lease.expires_at IS NULL OR lease.expires_at > :now))"""
# What I may take. My own live slot (99) rules a question out. CASE keeps the order: at the head of the queue
# nearly all is held by others, and of that my answers need not be looked up.
_FOR_ME = f"""CASE WHEN {_HAS_PLACE.format(weight="CASE WHEN lease.user_id = :me THEN 99 ELSE 1 END")}
      THEN 0 = (
        SELECT count(*) FROM answer
        WHERE answer.question_id = question.id AND answer.user_id = :me AND answer.superseded_at IS NULL)
        AND {NOT_MET_AS_KNOWN}
      ELSE false END"""
_MAY_TAKE = f"{_IN_QUEUE} AND {_FOR_ME}"
# The head of a block, locked so that it stays mine to take; the rest, of the same class, lies behind it.
_HEAD = f"""SELECT question.candidate_class AS block_class, question.rank AS block_rank, question.probability
    FROM question WHERE {_MAY_TAKE} ORDER BY question.rank LIMIT 1 """
_OF_BLOCK = """AND question.candidate_class = :block_class
      AND question.rank >= :block_rank AND question.rank < :block_end"""

_SLOTS = ", ".join(f"({slot})" for slot in range(MAX_SLOTS))
# A slot is free when it has no row, or a row that has expired; the unique constraints settle every race.
# Somebody whose own lease on the question ran out gets that very slot again, because one person has one row
# per question at most.
_SLOT = f"""coalesce(
         (SELECT own.slot FROM lease AS own WHERE own.question_id = free.question_id AND own.user_id = :me),
         (SELECT min(open_slot.column1) FROM (VALUES {_SLOTS}) AS open_slot
          WHERE NOT EXISTS (
            SELECT 1 FROM lease AS live
            WHERE live.question_id = free.question_id AND live.slot = open_slot.column1
              AND (live.expires_at IS NULL OR live.expires_at > :now))))"""
# Whose own lease ran out has known the question since then.
_OR_TAKEN_OVER = """ON CONFLICT (question_id, slot) DO UPDATE
    SET user_id = excluded.user_id, expires_at = excluded.expires_at, turn = excluded.turn,
        held_since = CASE WHEN lease.user_id = excluded.user_id THEN lease.held_since
            ELSE excluded.held_since END
    WHERE lease.expires_at <= :now"""

# One statement, so that nothing can come between choosing and taking.
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
INSERT INTO lease (question_id, slot, user_id, expires_at, held_since, turn)
SELECT free.question_id, {slot},
       :me, :until, :now, held.last_turn + row_number() OVER (ORDER BY free.rank)
FROM free CROSS JOIN held WHERE true ORDER BY free.rank
{or_taken_over}
{after}
"""
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


def _top_up(of_block: str) -> Prepared[Taken]:
    texts = {
        dialect: _TOP_UP.format(
            slot=_SLOT, or_taken_over=_OR_TAKEN_OVER, may_take=_MAY_TAKE, of_block=of_block, **parts
        )
        for dialect, parts in _PARTS.items()
    }
    return Prepared(Taken._make, {dialect: text(sql).bindparams(*_TYPES) for dialect, sql in texts.items()})


# :campaign, :me, :now, :until, :count to hold at the end, :start (rank)
TOP_UP = _top_up("")
# and :block_class, :block_rank, :block_end
TOP_UP_OF_BLOCK = _top_up(_OF_BLOCK)
# :campaign, :me, :now
HEAD = Prepared(
    Head._make,
    {dialect: text(_HEAD + parts["lock"]).bindparams(*_TYPES[:3]) for dialect, parts in _PARTS.items()},
)

# Of what returns to somebody, each class. :campaign, :me, :now, :room
RETURNING_CLASSES = Prepared(lambda row: int(row[0]), RETURNING_FOR_ME)

# As many of those that return as there are :turns, which they get in this order.
_RETURNING = """
WITH free AS (
    SELECT question.id AS question_id, question.rank AS rank
    FROM question
    WHERE {waiting} AND question.slots > question.least AND question.candidate_class = :class_ AND {for_me}
    ORDER BY question.rank LIMIT :count {lock}
), placed AS (SELECT question_id, row_number() OVER (ORDER BY rank) AS place FROM free)
INSERT INTO lease (question_id, slot, user_id, expires_at, held_since, turn)
SELECT free.question_id, {slot}, :me, :until, :now, host.turn
FROM placed AS free JOIN {turns} ON host.place = free.place WHERE true ORDER BY free.place
{or_taken_over}
RETURNING turn
"""
_TURNS = {
    "postgresql": "unnest(CAST(:turns AS bigint[])) WITH ORDINALITY AS host(turn, place)",
    "sqlite": "(SELECT value AS turn, key + 1 AS place FROM json_each(:turns)) AS host",
}
# :campaign, :me, :now, :until, :class_, :count, :turns; gives the turns of those that were taken
RETURNING = Prepared(
    lambda row: int(row[0]),
    {
        dialect: text(
            _RETURNING.format(
                waiting=_WAITING,
                for_me=_FOR_ME,
                slot=_SLOT,
                turns=_TURNS[dialect],
                or_taken_over=_OR_TAKEN_OVER,
                lock=parts["lock"],
            )
        ).bindparams(*_TYPES, bindparam("turns", type_=ListOf(BigId)))
        for dialect, parts in _PARTS.items()
    },
)

# PostgreSQL: where each campaign's first question was that had a place for somebody, and when all before it
# was last looked at. What many people hold lies at the head of the queue, and to walk past it took most of
# the time of a lease.
_free_from: dict[UUID, tuple[int, datetime]] = {}
# How many questions each campaign's people are taking at this moment, from there on.
_under_way: Counter[UUID] = Counter()
_counting = Lock()


def free_from(campaign_id: UUID, now: datetime) -> tuple[int, datetime]:
    """The rank before which nothing is free, and when that was seen; 0 and now where it is not known."""
    known = _free_from.get(campaign_id)
    return known if known and timedelta(0) <= now - known[1] < LOOK_AGAIN else (0, now)


def note_free_from(campaign_id: UUID, rank: int, seen_at: datetime) -> None:
    """Keep it for a second."""
    _free_from[campaign_id] = rank, seen_at


def forget_free_from(campaign_id: UUID) -> None:
    """Something before it was given back."""
    _free_from.pop(campaign_id, None)


@contextmanager
def leasing_now(campaign_id: UUID, count: int) -> Iterator[int]:
    """Note that so many are being leased; gives how many others lease meanwhile.

    Who begins behind those need not look at each of them.
    """
    with _counting:
        others = _under_way[campaign_id]
        _under_way[campaign_id] += count
    try:
        yield others
    finally:
        with _counting:
            _under_way[campaign_id] -= count
