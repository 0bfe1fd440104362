"""Handing out questions: who may answer what, until when."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import CursorResult, Uuid, and_, bindparam, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation.errors import CampaignNotOpen
from app.annotation.gold import lots, lots_of_page, mix_in
from app.annotation.locking import LockedCampaign, lock_campaign
from app.annotation.models import Answer, Lease, Participant, Purpose, Question, Tally
from app.annotation.participants import require_not_paused
from app.annotation.queue import HELD_BY_ME, Block, first_block, held_count, mine, take
from app.annotation.rules import LEASE
from app.campaigns.models import Campaign, CampaignClass, CampaignState

# A moment less than what is leased now, behind which gold is still to be put.
HELD_AGAIN = LEASE - timedelta(microseconds=1)
MAX_LEASED = 100  # questions one person can hold in one campaign


_HELD = (
    select(
        Question.id,
        Question.example_id,
        Question.candidate_class,
        CampaignClass.name.label("class_name"),
        Lease.expires_at,
    )
    .join(Lease, Lease.question_id == Question.id)
    .join(
        CampaignClass,
        and_(
            CampaignClass.campaign_id == Question.campaign_id,
            CampaignClass.position == Question.candidate_class,
        ),
    )
    .where(*HELD_BY_ME)
    .order_by(Lease.turn, Lease.id)
)
_others = aliased(Lease)
_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())
_my_answers = select(func.sum(Tally.yes + Tally.no + Tally.unsure)).where(
    Tally.campaign_id == _CAMPAIGN, Tally.user_id == _ME
)
_my_gold = select(Participant.gold_answers).where(
    Participant.campaign_id == _CAMPAIGN, Participant.user_id == _ME
)
_finished = select(func.sum(Tally.finished)).where(Tally.campaign_id == _CAMPAIGN)
_given = select(func.sum(Tally.yes + Tally.no + Tally.unsure)).where(Tally.campaign_id == _CAMPAIGN)
_gold_given = select(func.sum(Participant.gold_answers)).where(Participant.campaign_id == _CAMPAIGN)
_num_classes = select(func.count()).where(CampaignClass.campaign_id == _CAMPAIGN)
_STANDING = select(
    (func.coalesce(_my_answers.scalar_subquery(), 0) + func.coalesce(_my_gold.scalar_subquery(), 0)).label(
        "answered_by_me"
    ),
    func.coalesce(_finished.scalar_subquery(), 0).label("finished"),
    exists().where(Question.campaign_id == _CAMPAIGN, Question.purpose == Purpose.GOLD).label("has_gold"),
    (func.coalesce(_given.scalar_subquery(), 0) + func.coalesce(_gold_given.scalar_subquery(), 0)).label(
        "given"
    ),
    _num_classes.scalar_subquery().label("num_classes"),
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
    waiting: int  # questions that still need an answer; where there is gold, see `answers_left`


class Leased(NamedTuple):
    """What somebody holds in a campaign, and how far it is."""

    questions: list[LeasedQuestion]
    standing: Standing


def lease(
    session: Session, campaign_id: UUID, *, count: int, one_class: bool = False, by: User, now: datetime
) -> tuple[LockedCampaign, Leased]:
    """Lock the campaign, and hand out questions as `lease_questions` does.

    Raises:
        CampaignNotFound: there is none that this person may know of.
        CampaignNotOpen, PersonPaused: they may have none.
    """
    campaign = lock_campaign(session, campaign_id, by=by)
    return campaign, lease_questions(session, campaign, count=count, by=by, now=now, one_class=one_class)


def lease_questions(
    session: Session,
    campaign: LockedCampaign,
    *,
    count: int,
    by: User,
    now: datetime,
    one_class: bool = False,
) -> Leased:
    """Up to `count` questions for this person: those already held first and in the same order, then new ones.

    Args:
        session: a writing one.
        campaign: locked for this person.
        count: how many at most.
        by: who gets them.
        now: from when they are held.
        one_class: the new ones are all of the class that comes first in the queue, and of the same block.

    Raises:
        CampaignNotOpen: it is not open.
        PersonPaused: this person is to wait.
    """
    with_gold = require_may_lease(session, campaign, by)
    places = min(count, MAX_LEASED)
    if with_gold:
        hold_again(session, campaign, places, by=by, now=now)
    block: Block | None = None
    drawn: list[bool] | None = None
    if one_class:
        block = first_block(session, campaign, by=by, now=now)
        if block is not None and with_gold:
            room = places - held_count(session, campaign, by=by, now=now)
            drawn = lots_of_page(session, campaign, room, block.block_class, by=by, now=now)
    if block is not None or not one_class:
        take(session, campaign, places - sum(drawn or ()), block, by=by, now=now)
    held = held_questions(session, campaign, by=by, now=now)
    counted = standing(session, campaign, by=by)
    if with_gold:
        held = with_gold_between(session, campaign, held, drawn, by=by, now=now)
    return Leased(held[:count], counted)


def require_may_lease(session: Session, campaign: LockedCampaign, by: User) -> bool:
    """Whether to put gold between the questions, for somebody who may have some.

    Raises:
        CampaignNotOpen, PersonPaused: they may have none.
    """
    if campaign.state is not CampaignState.OPEN:
        raise CampaignNotOpen(state=campaign.state)
    return require_not_paused(session, campaign, by) and campaign.gold_share > 0


def hold_again(session: Session, campaign: LockedCampaign, places: int, *, by: User, now: datetime) -> None:
    """Give this person back what they held before and nobody took, up to `places`, in its order and with its
    gold.

    Gold that were drawn anew whenever leases are given back would stand elsewhere each time: what two lists
    have in common would not be gold.
    """
    room = places - held_count(session, campaign, by=by, now=now)
    if room <= 0:
        return
    live = (
        select(func.count())
        .select_from(_others)
        .where(
            _others.question_id == Question.id, or_(_others.expires_at.is_(None), _others.expires_at > now)
        )
    )
    lapsed = (
        select(Lease.id)
        .join(Question, Question.id == Lease.question_id)
        .where(
            Question.campaign_id == campaign.id,
            Lease.user_id == by.id,
            Lease.expires_at <= now,
            or_(
                Question.purpose == Purpose.GOLD,
                and_(Question.is_waiting, Question.slots > live.correlate(Question).scalar_subquery()),
            ),
            ~exists().where(
                Answer.question_id == Question.id, Answer.user_id == by.id, Answer.superseded_at.is_(None)
            ),
        )
        .order_by(Lease.turn, Lease.id)
        .limit(room)
        .with_for_update(of=Lease, skip_locked=True)
    )
    ids = list(session.scalars(lapsed))
    if ids:
        session.execute(
            update(Lease)
            .where(Lease.id.in_(ids), Lease.expires_at <= now)
            .values(expires_at=now + HELD_AGAIN),
            execution_options={"synchronize_session": False},
        )


def with_gold_between(
    session: Session,
    campaign: LockedCampaign,
    held: list[LeasedQuestion],
    drawn: list[bool] | None,
    *,
    by: User,
    now: datetime,
) -> list[LeasedQuestion]:
    """The same questions with gold between those that were leased now.

    Args:
        session: a writing one.
        campaign: that of the questions.
        held: all that this person holds.
        drawn: behind which of the new ones gold is to stand; None: still to be drawn.
        by: who holds them.
        now: when they were leased.
    """
    fresh = {question.id: question.candidate_class for question in held if question.expires_at == now + LEASE}
    if not fresh:
        return held
    drawn = lots(campaign, len(fresh)) if drawn is None else drawn
    is_mixed = mix_in(session, campaign, fresh, drawn, by=by, now=now)
    return held_questions(session, campaign, by=by, now=now) if is_mixed else held


def held_questions(
    session: Session, campaign: LockedCampaign, *, by: User, now: datetime
) -> list[LeasedQuestion]:
    """What this person holds, in the order in which it was leased."""
    rows = session.execute(_HELD, mine(campaign, by, now))
    return [LeasedQuestion(dataset_id=campaign.dataset_id, **row._mapping) for row in rows]


def renew_leases(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> datetime | None:
    """Hold what this person holds for another while; gives until when, None if they hold nothing."""
    return now + LEASE if _set_expiry(session, campaign, now + LEASE, by=by, now=now) else None


def release_leases(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> None:
    """Give back what this person holds. An answer that comes late still counts while nobody took the slot."""
    _set_expiry(session, campaign, now, by=by, now=now)


def _set_expiry(
    session: Session, campaign: LockedCampaign, expires_at: datetime, *, by: User, now: datetime
) -> int:
    # Rows that somebody is taking over now are passed by: waiting for them could end in a deadlock.
    held = (
        select(Lease.id)
        .join(Question, Question.id == Lease.question_id)
        .where(*HELD_BY_ME)
        .with_for_update(of=Lease, skip_locked=True)
    )
    changed = session.execute(
        update(Lease).where(Lease.id.in_(held)).values(expires_at=expires_at),
        mine(campaign, by, now),
        execution_options={"synchronize_session": False},
    )
    assert isinstance(changed, CursorResult)
    return changed.rowcount


def standing(session: Session, campaign: Campaign | LockedCampaign, *, by: User) -> Standing:
    """How many answers of mine count, and how many questions still wait: sums of few rows."""
    row = session.execute(_STANDING, {"campaign": campaign.id, "me": by.id}).one()
    waiting = campaign.question_count - int(row.finished)
    if row.has_gold:
        waiting = answers_left(campaign, waiting, given=int(row.given), num_classes=int(row.num_classes))
    return Standing(int(row.answered_by_me), waiting)


def answers_left(campaign: Campaign | LockedCampaign, waiting: int, *, given: int, num_classes: int) -> int:
    """About how many answers are left, in place of the questions that wait, where there is gold.

    It falls by one with every answer, whatever it says and whatever it is about, and rises by one with every
    undo: so nothing can be learnt from it. 0 only where nothing waits.

    Args:
        campaign: of so many questions and such a share of gold.
        waiting: questions that wait.
        given: answers of everybody that stand, those to gold included.
        num_classes: K.
    """
    confirmed = 1 / num_classes if campaign.confirm_yes else 0.0
    expected = round(campaign.question_count * (1 + confirmed) / (1 - campaign.gold_share))
    return max(1, expected - given) if waiting > 0 else 0
