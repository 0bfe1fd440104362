"""Taking questions from a campaign's queue: in its order, none that somebody holds, one slot a person."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    TextClause,
    Uuid,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.consensus import MAX_SLOTS
from app.annotation.locking import LockedCampaign
from app.annotation.models import Answer, Lease, Question
from app.annotation.rules import LEASE
from app.campaigns.draws import MAX_BLOCK
from app.db import UtcDateTime

MAX_TRIES = 5  # where others take the same questions at the same moment
# As the index of the queue has it: for `is_waiting = 1` SQLite would not use that.
IS_WAITING: ColumnElement[bool] = literal_column("question.is_waiting")
# A question that has the answers it needs whatever they say, and needs one more, returns: to be confirmed, or
# because people disagree. Others are first ones. As the indexes have it.
IS_FIRST: ColumnElement[bool] = literal_column("question.slots <= question.least")
RETURNS: ColumnElement[bool] = literal_column("question.slots > question.least")


# Whether :me never had the picture of a question as a known one of :campaign; the lease of such a one stays,
# run out or answered. Who met it in both ways could tell it from others, each of which comes once a round.
# First asked is whether there is any, once a statement: in most campaigns there is none.
NOT_MET_AS_KNOWN = """CASE WHEN EXISTS (
        SELECT 1 FROM question AS gold WHERE gold.campaign_id = :campaign AND gold.purpose = 'gold')
      THEN 0 = (
        SELECT count(*) FROM question AS known JOIN lease AS met ON met.question_id = known.id
        WHERE known.example_id = question.example_id AND known.purpose = 'gold'
          AND known.campaign_id = question.campaign_id AND met.user_id = :me)
      ELSE true END"""


# Statements are built once, because building one takes longer than running it.
_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())
_NOW = bindparam("now", type_=UtcDateTime())
# Of a lease and its question: this person may answer it now. With :campaign, :me and :now.
HELD_BY_ME = (Question.campaign_id == _CAMPAIGN, Lease.user_id == _ME, Lease.expires_at > _NOW)
_of_question = and_(
    Lease.question_id == Question.id, or_(Lease.expires_at.is_(None), Lease.expires_at > _NOW)
)


def not_met_as_known() -> TextClause:
    """NOT_MET_AS_KNOWN with the types of its values."""
    return text(NOT_MET_AS_KNOWN).bindparams(_CAMPAIGN, _ME)


def not_met_as_known_by(person: str) -> TextClause:
    """The same of a person of the statement: a table's name and its column."""
    return text(NOT_MET_AS_KNOWN.replace(":me", person)).bindparams(_CAMPAIGN)


def _number_of(model: type, *which: ColumnElement[bool]) -> ColumnElement[int]:
    return select(func.count()).select_from(model).where(*which).correlate(Question).scalar_subquery()


# Questions that have a slot for somebody, and that this person neither holds nor answered; in the order of
# the queue. People pass by what others are taking at this moment.
_FOR_ME = (
    select(
        Question.id,
        Question.slots,
        Question.candidate_class,
        Question.rank,
        Question.probability,
        Question.least,
    )
    .where(
        Question.campaign_id == _CAMPAIGN,
        IS_WAITING,
        Question.slots > _number_of(Lease, _of_question),
        # Counts rather than NOT EXISTS: PostgreSQL would make a join with everything I have ever answered.
        _number_of(Lease, _of_question, Lease.user_id == _ME) == 0,
        _number_of(
            Answer, Answer.question_id == Question.id, Answer.user_id == _ME, Answer.superseded_at.is_(None)
        )
        == 0,
        not_met_as_known(),
    )
    .order_by(Question.rank)
    .limit(bindparam("room", type_=Integer()))
)
_TO_TAKE = _FOR_ME.with_for_update(key_share=True, skip_locked=True, of=Question)
FREE = _TO_TAKE.where(IS_FIRST)
_FREE_OF_BLOCK = FREE.where(
    Question.candidate_class == bindparam("block_class"),
    Question.rank >= bindparam("block_start"),
    Question.rank < bindparam("block_end"),
)
# Those that return to another person, of all classes or, with :class_, of one.
FREE_RETURNING = _TO_TAKE.where(RETURNS)
FREE_RETURNING_OF_CLASS = FREE_RETURNING.where(
    Question.candidate_class == bindparam("class_", type_=Integer())
)
# The classes of those that return to me, to look at only. By the rank itself, SQLite would look through all
# that waits, in the order of the queue, for the few that return: 100 ms of 12,000 questions.
RETURNING_FOR_ME = (
    _FOR_ME.with_only_columns(Question.candidate_class)
    .where(RETURNS)
    .order_by(None)
    .order_by(Question.rank + 0)
)
_I_HOLD = (
    select(func.count().label("held"), func.coalesce(func.max(Lease.turn), 0).label("last_turn"))
    .select_from(Lease)
    .join(Question, Question.id == Lease.question_id)
    .where(*HELD_BY_ME)
)
_LEASES = (
    select(Lease)
    .where(Lease.question_id.in_(bindparam("ids", expanding=True)))
    .execution_options(populate_existing=True)
)


def mine(campaign: LockedCampaign, by: User, now: datetime) -> dict[str, object]:
    """What most statements here are about."""
    return {"campaign": campaign.id, "me": by.id, "now": now}


class Block(NamedTuple):
    """A stretch of the queue about one class."""

    block_class: int
    block_start: int  # rank
    block_end: int


class Found(NamedTuple):
    """A question that may be leased."""

    id: int
    slots: int  # with the one to be leased
    rank: int
    is_settled: bool = False  # it waits for nobody


class Head(NamedTuple):
    """Where a page begins."""

    block: Block
    probability: float  # with which each class was drawn


def first_block(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> Head | None:
    """What begins with the first question that this person may take: the rest of its block, or of its class.

    That question is locked, others pass it by: so it stays there to be taken.
    """
    head = session.execute(FREE, mine(campaign, by, now) | {"room": 1}).one_or_none()
    if head is None:
        return None
    block = Block(head.candidate_class, head.rank, end_of_block(campaign, head.rank))
    return Head(block, head.probability)


def holding(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> tuple[int, int]:
    """How many questions this person holds, and the last one's turn."""
    held, last_turn = session.execute(_I_HOLD, mine(campaign, by, now)).one()
    return int(held), int(last_turn)


def end_of_block(campaign: LockedCampaign, rank: int) -> int:
    """The rank before which a page ends. Questions asked again are sparse: theirs come from all blocks."""
    return rank + MAX_BLOCK if rank < campaign.question_count else 2**62


def take(
    session: Session, campaign: LockedCampaign, places: int, block: Block | None, *, by: User, now: datetime
) -> None:
    """Lease questions, in the order of the queue or of a block, until this person holds `places`."""
    held, last_turn = holding(session, campaign, by=by, now=now)
    free = FREE if block is None else _FREE_OF_BLOCK
    values = mine(campaign, by, now) | (block._asdict() if block else {})
    for _ in range(MAX_TRIES):
        if held >= places:
            return
        rows = session.execute(free, values | {"room": places - held}).all()
        found = [Found(row.id, row.slots, row.rank) for row in rows]
        taken = len(
            lease_found(session, found, range(last_turn + 1, last_turn + 1 + len(found)), by=by, now=now)
        )
        if taken == len(found):
            return
        held, last_turn = held + taken, last_turn + len(found)


def lease_found(
    session: Session, found: Sequence[Found], turns: Iterable[int], *, by: User, now: datetime
) -> list[int]:
    """Lease locked questions with these turns; gives the ids, for somebody may have come before the lock."""
    # Looked at anew: a lease may have been committed before the question was locked.
    of_question: dict[int, list[Lease]] = {question.id: [] for question in found}
    for lease in session.scalars(_LEASES, {"ids": list(of_question)}) if found else ():
        of_question[lease.question_id].append(lease)
    slots = []
    for question, turn in zip(found, turns, strict=True):
        slot = _slot(question.id, question.slots, of_question[question.id], by, now)
        if slot is not None:
            if slot.user_id != by.id:
                slot.user_id, slot.held_since = by.id, now
            slot.expires_at, slot.turn = now + LEASE, turn
            slots.append(slot)
    session.add_all(slots)
    session.flush()
    return [slot.question_id for slot in slots]


def _slot(question_id: int, slots: int, leases: Sequence[Lease], by: User, now: datetime) -> Lease | None:
    """A slot of the question that nobody holds, one's own first; None where as many as it needs are taken."""
    live = {lease.slot for lease in leases if lease.expires_at is None or lease.expires_at > now}
    if len(live) >= slots:
        return None
    own = next((lease for lease in leases if lease.user_id == by.id), None)
    if own is not None:
        return own
    free = [slot for slot in range(MAX_SLOTS) if slot not in live]
    old = next((lease for lease in leases if lease.slot == free[0]), None)
    return old or Lease(question_id=question_id, slot=free[0])
