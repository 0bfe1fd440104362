"""Taking questions from a campaign's queue: in its order, none that somebody holds, one slot a person."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, literal_column, or_, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.consensus import MAX_SLOTS
from app.annotation.locking import LockedCampaign
from app.annotation.models import Answer, Lease, Question
from app.campaigns.draws import MAX_BLOCK

LEASE = timedelta(minutes=10)
MAX_TRIES = 5  # where others take the same questions at the same moment
# As the index of the queue has it: for `is_waiting = 1` SQLite would not use that.
_IS_WAITING: ColumnElement[bool] = literal_column("question.is_waiting")


def held_by(campaign_id: UUID, by: User, now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Of a lease and its question: this person may answer it now."""
    return Question.campaign_id == campaign_id, Lease.user_id == by.id, Lease.expires_at > now


def _taken(now: datetime) -> ColumnElement[bool]:
    return or_(Lease.expires_at.is_(None), Lease.expires_at > now)


def _may_take(campaign: LockedCampaign, by: User, now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Of a question: it waits, has a slot for somebody, and this person neither holds nor answered it."""
    of_it = and_(Lease.question_id == Question.id, _taken(now))
    answered = exists().where(
        Answer.question_id == Question.id, Answer.user_id == by.id, Answer.superseded_at.is_(None)
    )
    return (
        Question.campaign_id == campaign.id,
        _IS_WAITING,
        Question.slots > select(func.count()).select_from(Lease).where(of_it).scalar_subquery(),
        ~exists().where(of_it, Lease.user_id == by.id),
        ~answered,
    )


def head_of_queue(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> Question | None:
    query = select(Question).where(*_may_take(campaign, by, now)).order_by(Question.rank).limit(1)
    # Others pass it by; so it stays there to be taken.
    return session.scalar(query.with_for_update(key_share=True, skip_locked=True, of=Question))


def block_of(campaign: LockedCampaign, head: Question) -> tuple[ColumnElement[bool], ...]:
    """Of a question: it stands in the rest of the block that begins with `head`, or in its class's."""
    return (
        Question.candidate_class == head.candidate_class,
        Question.rank >= head.rank,
        Question.rank < end_of_block(campaign, head.rank),
    )


def end_of_block(campaign: LockedCampaign, rank: int) -> int:
    """The rank before which a page ends. Questions asked again are sparse: theirs come from all blocks."""
    return rank + MAX_BLOCK if rank < campaign.question_count else 2**62


def take(
    session: Session,
    campaign: LockedCampaign,
    room: int,
    block: Sequence[ColumnElement[bool]],
    *,
    by: User,
    now: datetime,
) -> None:
    """Lease up to `room` questions, in the order of the queue."""
    turns = select(func.coalesce(func.max(Lease.turn), 0)).join(Question, Question.id == Lease.question_id)
    turn = session.scalar(turns.where(*held_by(campaign.id, by, now))) or 0
    free = select(Question.id).where(*_may_take(campaign, by, now), *block).order_by(Question.rank)
    for _ in range(MAX_TRIES):
        if room <= 0:
            return
        # People pass by what others are taking at this moment.
        locked = free.limit(room).with_for_update(key_share=True, skip_locked=True, of=Question)
        ids = session.scalars(locked).all()
        # Looked at anew: a lease may have been committed before the question was locked.
        leases = select(Lease).where(Lease.question_id.in_(ids)).execution_options(populate_existing=True)
        of_question: dict[int, list[Lease]] = {id_: [] for id_ in ids}
        for lease in session.scalars(leases):
            of_question[lease.question_id].append(lease)
        taken = 0
        for id_ in ids:
            lease_ = _slot(id_, of_question[id_], by, now)
            if lease_ is not None:
                taken += 1
                lease_.user_id, lease_.expires_at, lease_.turn = by.id, now + LEASE, turn + taken
                session.add(lease_)
        session.flush()
        if taken == len(ids):
            return
        room, turn = room - taken, turn + taken


def _slot(question_id: int, leases: Sequence[Lease], by: User, now: datetime) -> Lease | None:
    """A slot of the question that nobody holds, one's own first; None where all are taken."""
    live = {lease.slot for lease in leases if lease.expires_at is None or lease.expires_at > now}
    free = [slot for slot in range(MAX_SLOTS) if slot not in live]
    own = next((lease for lease in leases if lease.user_id == by.id), None)
    if own is not None:
        return own
    if not free:
        return None
    old = next((lease for lease in leases if lease.slot == free[0]), None)
    return old or Lease(question_id=question_id, slot=free[0])
