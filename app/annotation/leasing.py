"""Handing out questions: who may answer what, until when."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Exists,
    Row,
    Select,
    Uuid,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from app.accounts.models import User
from app.annotation.belief_mixing import mixture_by_belief
from app.annotation.beside_classes import never_asked
from app.annotation.completing import EMPTY_PAGE, completed, page_of
from app.annotation.errors import CampaignNotOpen
from app.annotation.fates import Known, bind_known, lost_among
from app.annotation.holding import LeasedQuestion, held_questions
from app.annotation.locking import LockedCampaign, lock_campaign
from app.annotation.mixing import mixture
from app.annotation.models import ALL_ANSWERS, Answer, Lease, Participant, Purpose, Question, Tally
from app.annotation.participants import require_not_paused
from app.annotation.queue import (
    HELD_BY_ME,
    IS_FIRST,
    IS_WAITING,
    first_block,
    holding,
    mine,
    not_met_as_known,
    take,
)
from app.annotation.remaining import MINE_LATER
from app.annotation.rules import LEASE
from app.annotation.steering import steered_block
from app.campaigns.models import Campaign, CampaignState

# A moment less than what is leased now, behind which gold is still to be put.
HELD_AGAIN = LEASE - timedelta(microseconds=1)
MAX_LEASED = 100  # questions one person can hold in one campaign
LOST = -1  # turn of a known picture that does not come back: somebody got the question beside it


_others = aliased(Lease)
_CAMPAIGN, _ME = bindparam("campaign", type_=Uuid()), bindparam("me", type_=Uuid())
_answers_of = func.coalesce(func.sum(ALL_ANSWERS), 0)
_mine = select(_answers_of).where(Tally.campaign_id == _CAMPAIGN, Tally.user_id == _ME)
_my_gold = select(Participant.gold_answers).where(
    Participant.campaign_id == _CAMPAIGN, Participant.user_id == _ME
)
_gold_given = select(func.coalesce(func.sum(Participant.gold_answers), 0)).where(
    Participant.campaign_id == _CAMPAIGN
)
_STANDING = select(
    _mine.scalar_subquery().label("mine"),
    func.coalesce(_my_gold.scalar_subquery(), 0).label("gold"),
    (
        select(_answers_of).where(Tally.campaign_id == _CAMPAIGN).scalar_subquery()
        + _gold_given.scalar_subquery()
    ).label("given"),
    exists().where(Question.campaign_id == _CAMPAIGN, Question.purpose == Purpose.GOLD).label("has_gold"),
)
# Whether this person may still be asked a first question, whoever holds it or answered it. Some never get a
# yes or a no: what was set aside, say.
_HAS_FIRSTS = select(
    exists().where(Question.campaign_id == _CAMPAIGN, IS_WAITING, IS_FIRST, not_met_as_known())
)
_FOR_ME_LATER = select(func.count()).select_from(Question).where(*MINE_LATER)


class Standing(NamedTuple):
    """How far a campaign is for one person."""

    answered_by_me: int
    waiting: int  # answers that they may still be asked for, about


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
    page = EMPTY_PAGE
    if one_class:
        head = steered_block(session, campaign, by=by, now=now) or first_block(
            session, campaign, by=by, now=now
        )
        if head is not None:
            room = places - holding(session, campaign, by=by, now=now)[0]
            page = page_of(session, campaign, room, head, by=by, now=now, with_gold=with_gold)
            take(session, campaign, places - page.taken, head.block, by=by, now=now)
    elif holding(session, campaign, by=by, now=now)[0] < places:
        steered = steered_block(session, campaign, by=by, now=now)
        if steered is not None:
            take(session, campaign, places, steered.block, by=by, now=now)
        take(session, campaign, places, None, by=by, now=now)
    held = held_questions(session, campaign, by=by, now=now)
    counted = _counted(session, campaign, by=by)
    held = completed(
        session, campaign, held, page if one_class else None, places, by=by, now=now, with_gold=with_gold
    )
    return leased_of(session, campaign, held[:count], counted, by=by)


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
    have in common would not be gold. Nobody takes a known picture, so it comes back with the question beside
    it, and is lost with that (see `fates`): else what always comes back would be gold.
    """
    room = places - holding(session, campaign, by=by, now=now)[0]
    if room <= 0:
        return
    back = session.execute(_lapsed(campaign, by, now, _is_free(now))).all()
    is_known = and_(Question.purpose == Purpose.GOLD, ~Question.is_set_aside)
    known = session.execute(_lapsed(campaign, by, now, is_known)).all()
    lost = _lost(session, campaign, known, {row.question_id for row in back}, by=by, now=now)
    _change(session, lost, turn=LOST)
    in_order = sorted((row.turn, row.id) for row in [*back, *known] if row.id not in lost)
    _change(session, [id_ for _, id_ in in_order[:room]], expires_at=now + HELD_AGAIN)


def _lapsed(
    campaign: LockedCampaign, by: User, now: datetime, which: ColumnElement[bool]
) -> Select[int, int, int, int | None, datetime | None]:
    """Leases of this person that ran out, of questions that they have not answered."""
    return (
        select(Lease.id, Lease.turn, Lease.question_id, Lease.beside_id, Lease.expires_at)
        .join(Question, Question.id == Lease.question_id)
        .where(
            Question.campaign_id == campaign.id,
            Lease.user_id == by.id,
            Lease.expires_at <= now,
            Lease.turn > LOST,
            which,
            ~_answered_by(by, Question.id),
        )
        .with_for_update(of=Lease, skip_locked=True)
    )


def _answered_by(by: User, question_id: ColumnElement[int] | InstrumentedAttribute[int]) -> Exists:
    return exists().where(
        Answer.question_id == question_id, Answer.user_id == by.id, Answer.superseded_at.is_(None)
    )


def _is_free(now: datetime) -> ColumnElement[bool]:
    live = (
        select(func.count())
        .select_from(_others)
        .where(
            _others.question_id == Question.id, or_(_others.expires_at.is_(None), _others.expires_at > now)
        )
    )
    return and_(Question.is_waiting, Question.slots > live.correlate(Question).scalar_subquery())


def _lost(
    session: Session,
    campaign: LockedCampaign,
    known: Sequence[Row[int, int, int, int | None, datetime | None]],
    back: set[int],
    *,
    by: User,
    now: datetime,
) -> set[int]:
    if not known:
        return set()
    held = select(_others.question_id).where(
        _others.question_id.in_([row.beside_id for row in known]),
        _others.user_id == by.id,
        _others.expires_at > now,
    )
    ran_out = [Known(row.id, row.question_id, row.beside_id, row.expires_at or now) for row in known]
    return lost_among(session, campaign.id, ran_out, back | set(session.scalars(held)), by=by)


def _change(session: Session, leases: Collection[int], **values: object) -> None:
    if leases:
        session.execute(
            update(Lease).where(Lease.id.in_(leases)).values(values),
            execution_options={"synchronize_session": False},
        )


def renew_leases(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> datetime | None:
    """Hold what this person holds for another while; gives until when, None if they hold nothing."""
    return now + LEASE if _set_expiry(session, campaign, now + LEASE, by=by, now=now) else None


def release_leases(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> None:
    """Give back what this person holds. An answer that comes late still counts while nobody took the slot."""
    bind_known(session, campaign, by=by, now=now)
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


def _counted(session: Session, campaign: Campaign | LockedCampaign, *, by: User) -> Standing:
    """How many answers of mine count, and how many may still be asked for: sums of few rows."""
    row = session.execute(_STANDING, {"campaign": campaign.id, "me": by.id}).one()
    return standing_of(
        campaign,
        mine=int(row.mine + row.gold),
        given=int(row.given),
        has_gold=row.has_gold,
        never=never_asked(session, campaign),
    )


def standing_of(
    campaign: Campaign | LockedCampaign, *, mine: int, given: int, has_gold: bool, never: int
) -> Standing:
    """As one person may know it: what they answered last moves it by one, whatever it was about.

    So nothing tells a first question from one that returns, or either from a known picture.

    Args:
        campaign: that of the answers.
        mine: answers of this person, those to known pictures included.
        given: answers of all people, likewise.
        has_gold: whether there are known pictures.
        never: drawn questions that are asked of nobody; see `beside_classes`.
    """
    asked = 1 - campaign.gold_share if has_gold else 1.0  # share of the answers that are to no known picture
    nobody_twice = (
        campaign.question_count - never - mine
    )  # known pictures come in the place of drawn questions
    return Standing(mine, max(0, min(round(answers_to_come(campaign, never) / asked) - given, nobody_twice)))


def answers_to_come(campaign: Campaign | LockedCampaign, never: int = 0) -> int:
    """How many answers a campaign takes in all, known pictures left out, at most as a rule.

    `never`: drawn questions that are asked of nobody.
    """
    count = campaign.question_count - never
    if not campaign.confirm_yes:
        return count * campaign.overlap
    law = mixture(1 / campaign.num_classes, least=campaign.overlap)
    by_belief = min(count, campaign.believed_count) if campaign.confirming.of_yes else 0
    answers = (count - by_belief) * law.answers
    if by_belief:
        expected = campaign.believed_yes / campaign.believed_count
        answers += by_belief * mixture_by_belief(expected, least=campaign.overlap).answers
    return round(answers)


def leased_of(
    session: Session, campaign: LockedCampaign, held: list[LeasedQuestion], counted: Standing, *, by: User
) -> Leased:
    """What somebody holds, and how far it is; who holds nothing is told whether there may be more later."""
    if held:
        return Leased(held, counted._replace(waiting=max(counted.waiting, len(held))))
    return Leased(held, _for_later(session, campaign, counted, by=by))


def standing(session: Session, campaign: Campaign, *, by: User) -> Standing:
    """The same for who does not answer now: once first questions have run out, what is left for them."""
    counted = _counted(session, campaign, by=by)
    if session.scalar(_HAS_FIRSTS, {"campaign": campaign.id, "me": by.id}):
        return counted
    return _for_later(session, campaign, counted, by=by)


def _for_later(
    session: Session, campaign: Campaign | LockedCampaign, counted: Standing, *, by: User
) -> Standing:
    """No more than was told while there were questions to hold, and 0 only where none waits for them."""
    waits = session.scalar(_FOR_ME_LATER, {"campaign": campaign.id, "me": by.id}) or 0
    return counted._replace(waiting=max(1, min(counted.waiting, about(waits))) if waits else 0)


def about(count: int) -> int:
    """Rounded up to tens, from 1,000 on to two digits: single answers are not told. Only 0 gives 0."""
    step = max(10, int("1" + "0" * (len(str(count)) - 2)))
    return -(-count // step) * step
