"""What becomes of a known picture that is held no longer: it shares the fate of the question beside it.

Nobody takes a known picture in another's place, so one that always came back could be told by it. While it is
held, the nearest drawn question that its person has not answered is the one beside it: what is answered has
no fate any more. Where none was left, it is lost as soon as somebody else answered since: they would have got
a drawn question that was to be had.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Update,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from app.accounts.models import User
from app.annotation import rules
from app.annotation.locking import LockedCampaign
from app.annotation.models import Answer, Lease, Question, Tally
from app.annotation.queue import HELD_BY_ME, mine
from app.db import UtcDateTime

_ME, _NOW = bindparam("me", type_=Uuid()), bindparam("now", type_=UtcDateTime())
_GOLD: ColumnElement[str] = literal_column("'gold'")  # as in the partial index


def binding(is_answered_now: Callable[[InstrumentedAttribute[Any]], ColumnElement[bool]]) -> Update:
    """What `bind_known` runs; with :campaign, :me and :now.

    One statement, whatever is held: it takes no longer to answer a question with a known picture behind it.

    Args:
        is_answered_now: whether a column is one of the questions that are answered with this request.
    """
    other, drawn = aliased(Lease), aliased(Question)
    is_before = or_(
        other.turn < Lease.turn, and_(other.turn == Lease.turn, other.question_id < Lease.question_id)
    )
    # Within it the order has names: SQLite takes nothing of what is updated into an ORDER BY.
    near = (
        select(
            other.question_id,
            case((is_before, 0), else_=1).label("is_behind"),
            func.abs(other.turn - Lease.turn).label("distance"),
            func.abs(other.question_id - Lease.question_id).label("apart"),  # of one turn, as a page has them
        )
        .join(drawn, drawn.id == other.question_id)
        .where(
            drawn.campaign_id == bindparam("campaign", type_=Uuid()),
            drawn.purpose != _GOLD,
            other.user_id == _ME,
            other.expires_at > _NOW,
            ~is_answered_now(other.question_id),
        )
        .correlate(Lease)
        .subquery()
    )
    nearest = select(near.c.question_id).order_by(near.c.is_behind, near.c.distance, near.c.apart).limit(1)
    known = (
        select(Lease.id)
        .join(Question, Question.id == Lease.question_id)
        .where(*HELD_BY_ME, Question.purpose == _GOLD)
    )
    is_answered = (
        select(Answer.id)
        .where(Answer.question_id == Lease.beside_id, Answer.user_id == _ME, Answer.superseded_at.is_(None))
        .correlate(Lease)
        .exists()
    )
    return (
        update(Lease)
        .where(Lease.id.in_(known), or_(is_answered_now(Lease.beside_id), is_answered))
        .values(beside_id=func.coalesce(nearest.scalar_subquery(), Lease.beside_id))
    )


_ANSWERED: BindParameter[int] = bindparam("answered", expanding=True)
_BIND = binding(lambda column: column.in_(_ANSWERED))


class Known(NamedTuple):
    """The lease of a known picture that ran out, or was given back."""

    lease_id: int
    question_id: int
    beside_id: int | None  # None: it came before anybody noted that
    expires_at: datetime


def bind_known(
    session: Session, campaign: LockedCampaign, answered: Collection[int] = (), *, by: User, now: datetime
) -> None:
    """Put known pictures that this person holds beside another question, where that beside them is answered:
    the nearest drawn one that they hold and have not answered, one before it if there is any.

    Args:
        session: a writing one.
        campaign: locked for this person.
        answered: questions that they answer with this request.
        by: who holds them.
        now: when.
    """
    if campaign.has_gold:
        # No question is called 0. An empty list would be written into IN and NOT IN alike as nobody's.
        session.execute(
            _BIND,
            mine(campaign, by, now) | {"answered": list(answered) or [0]},
            execution_options={"synchronize_session": False},
        )


def lost_among(
    session: Session, campaign_id: UUID, known: Sequence[Known], mine: Collection[int], *, by: User
) -> set[int]:
    """Ids of the leases of known pictures that are lost.

    Args:
        session: the request's.
        campaign_id: of all of them.
        known: leases that ran out.
        mine: questions that this person holds, or that come back to them.
        by: whose leases.
    """
    beside = {one.beside_id for one in known if one.beside_id is not None} - set(mine)
    if not beside:
        return set()
    rows = session.execute(
        select(Answer.question_id, Answer.created_at).where(
            Answer.question_id.in_(beside), Answer.user_id == by.id, Answer.superseded_at.is_(None)
        )
    )
    answered_at = {row.question_id: row.created_at for row in rows}
    others_at = session.scalar(
        select(func.max(Tally.last_at)).where(Tally.campaign_id == campaign_id, Tally.user_id != by.id)
    )
    return {
        one.lease_id for one in known if one.beside_id in beside and _is_lost(one, answered_at, others_at)
    }


def _is_lost(known: Known, answered_at: Mapping[int, datetime], others_at: datetime | None) -> bool:
    at = None if known.beside_id is None else answered_at.get(known.beside_id)
    if at is None:
        return True  # somebody else has it
    if at >= known.expires_at:
        return False  # it was answered late, because nobody took it
    return others_at is not None and others_at >= known.expires_at


def lost_beside(
    session: Session, campaign_id: UUID, asked: Mapping[int, rules.Asked], *, by: User, now: datetime
) -> set[int]:
    """Of these questions the known pictures whose lease ran out, and that are lost.

    An answer that comes too late is refused where somebody else got the question.
    """
    slots = {id_: question.slot_of(by.id) for id_, question in asked.items() if question.is_gold}
    late = [id_ for id_, slot in slots.items() if slot is not None and not slot.is_open(now)]
    if not late:
        return set()
    found = session.execute(
        select(Lease.id, Lease.question_id, Lease.beside_id, Lease.expires_at).where(
            Lease.question_id.in_(late), Lease.user_id == by.id, Lease.expires_at.is_not(None)
        )
    )
    known = [Known._make(row) for row in found]
    held = select(Lease.question_id).where(
        Lease.question_id.in_([one.beside_id for one in known]),
        Lease.user_id == by.id,
        Question.id == Lease.question_id,
        Question.campaign_id == campaign_id,
        or_(Lease.expires_at > now, and_(Lease.expires_at.is_not(None), Question.is_waiting)),
    )
    lost = lost_among(session, campaign_id, known, session.scalars(held).all(), by=by)
    return {one.question_id for one in known if one.lease_id in lost}
