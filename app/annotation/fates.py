"""What becomes of a known picture that is held no longer: it shares the fate of the question beside it.

Nobody takes a known picture in another's place, so one that always came back could be told by it. While it is
held, the nearest drawn question that its person has not answered is the one beside it: what is answered has
no fate any more. Where none was left, it is lost as soon as somebody else answered since: they would have got
a drawn question that was to be had.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
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
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation import rules
from app.annotation.locking import LockedCampaign
from app.annotation.models import Answer, Lease, Question, Tally
from app.annotation.queue import HELD_BY_ME, mine
from app.db import UtcDateTime

_ME, _NOW = bindparam("me", type_=Uuid()), bindparam("now", type_=UtcDateTime())
_ANSWERED: BindParameter[int] = bindparam("answered", expanding=True)
_GOLD: ColumnElement[str] = literal_column("'gold'")  # as in the partial index
_other, _drawn = aliased(Lease), aliased(Question)
_is_before = or_(
    _other.turn < Lease.turn, and_(_other.turn == Lease.turn, _other.question_id < Lease.question_id)
)
# Within it the order has names: SQLite takes nothing of what is updated into an ORDER BY.
_near = (
    select(
        _other.question_id,
        case((_is_before, 0), else_=1).label("is_behind"),
        func.abs(_other.turn - Lease.turn).label("distance"),
    )
    .join(_drawn, _drawn.id == _other.question_id)
    .where(
        _drawn.campaign_id == bindparam("campaign", type_=Uuid()),
        _drawn.purpose != _GOLD,
        _other.user_id == _ME,
        _other.expires_at > _NOW,
        _other.question_id.not_in(_ANSWERED),
    )
    .correlate(Lease)
    .subquery()
)
_nearest = (
    select(_near.c.question_id).order_by(_near.c.is_behind, _near.c.distance).limit(1).scalar_subquery()
)
_known_ones = (
    select(Lease.id)
    .join(Question, Question.id == Lease.question_id)
    .where(*HELD_BY_ME, Question.purpose == _GOLD)
)
_is_answered = (
    select(Answer.id)
    .where(Answer.question_id == Lease.beside_id, Answer.user_id == _ME, Answer.superseded_at.is_(None))
    .correlate(Lease)
    .exists()
)
# One statement, whatever is held: it takes no longer to answer a question with a known picture behind it.
_BIND = (
    update(Lease)
    .where(Lease.id.in_(_known_ones), or_(Lease.beside_id.in_(_ANSWERED), _is_answered))
    .values(beside_id=func.coalesce(_nearest, Lease.beside_id))
)


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
        session.execute(
            _BIND,
            mine(campaign, by, now) | {"answered": list(answered)},
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
