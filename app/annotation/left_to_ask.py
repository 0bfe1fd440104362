"""Who is left to ask: people at work in a campaign who have not answered a question.

Nor is whoever met its picture as a known one (`queue.NOT_MET_AS_KNOWN`).
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from app.accounts.models import Role, User
from app.annotation.consensus import MAX_SLOTS, UNSURE_LIMIT
from app.annotation.models import ALL_ANSWERS, Answer, Lease, Participant, Question, Tally
from app.campaigns.admission import admitted
from app.campaigns.models import Campaign, CampaignState

AWAY = timedelta(days=1)  # without an answer while others answered: such a person is at work no longer

# From so many questions on a count is remembered: for so long, or where nobody answered since.
LARGE = 5_000
HOLDS, SAME_HOLDS = timedelta(seconds=10), timedelta(minutes=1)
MOST_KEPT = 1_000  # campaigns whose counts are remembered


class _Counted(NamedTuple):
    """A count of questions that are left over, and of when it is."""

    at: datetime
    people: frozenset[UUID]
    answers: int
    left: int


_COUNTED: dict[UUID, _Counted] = {}


def people_at_work(session: Session, campaign_id: UUID) -> set[UUID]:
    """Who answers in this campaign and may go on: a member, not paused, disabled or away."""
    rows = session.execute(
        select(Tally.user_id, func.max(Tally.last_at).label("last_at"), func.count(Participant.paused_at))
        .join(User, User.id == Tally.user_id)
        .join(Campaign, Campaign.id == Tally.campaign_id)
        .outerjoin(
            Participant,
            (Participant.campaign_id == Tally.campaign_id) & (Participant.user_id == Tally.user_id),
        )
        .where(
            Tally.campaign_id == campaign_id,
            ALL_ANSWERS > 0,
            User.disabled_at.is_(None),
            or_(User.role != Role.ANNOTATOR, admitted(User.id, User.is_outside)),
        )
        .group_by(Tally.user_id)
    ).all()
    since = max((row.last_at for row in rows), default=None)
    return {user_id for user_id, last_at, paused in rows if not paused and since and last_at >= since - AWAY}


def is_asked_of_all(question_id: InstrumentedAttribute[int], people: Collection[UUID]) -> ColumnElement[bool]:
    """Whether all these people have answered a question, if only that they cannot tell, or met its picture as
    a known one."""
    said = aliased(Answer)  # the statement around it may be about answers as well
    answered = select(func.count(said.id)).where(
        said.question_id == question_id, said.superseded_at.is_(None), said.user_id.in_(people)
    )
    # So many never answer one.
    is_answered = (
        false() if len(people) > MAX_SLOTS + UNSURE_LIMIT else answered.scalar_subquery() >= len(people)
    )
    return or_(is_answered, and_(_is_known(question_id), _spent(question_id, people) >= len(people)))


def _is_known(question_id: InstrumentedAttribute[int]) -> ColumnElement[bool]:
    _, of_picture = _known_pictures(question_id)
    return exists().where(*of_picture)


def _known_pictures(
    question_id: InstrumentedAttribute[int],
) -> tuple[type[Question], tuple[ColumnElement[bool], ...]]:
    """Known ones of a question's picture, and what says so."""
    known, asked = aliased(Question), aliased(Question)
    return known, (
        asked.id == question_id,
        known.campaign_id == asked.campaign_id,
        known.example_id == asked.example_id,
        known.purpose == literal_column("'gold'"),
    )


def _spent(question_id: InstrumentedAttribute[int], people: Collection[UUID]) -> ColumnElement[int]:
    person, said, met = aliased(User), aliased(Answer), aliased(Lease)
    known, of_picture = _known_pictures(question_id)
    answered = exists().where(
        said.question_id == question_id, said.superseded_at.is_(None), said.user_id == person.id
    )
    has_met = exists().where(*of_picture, met.question_id == known.id, met.user_id == person.id)
    outer = person, question_id.class_
    query = select(func.count(person.id)).where(
        person.id.in_(people), or_(answered.correlate(*outer), has_met.correlate(*outer))
    )
    return query.scalar_subquery()


def left_over(session: Session, campaign: Campaign, *, answers: int, now: datetime) -> int:
    """How many questions wait that nobody at work may be asked: each answered them, if only that they cannot
    tell, or met their picture as a known one.

    Somebody who comes may still be asked them. In a large campaign, whose page asks every other second, the
    count is a few seconds old where the same people are at work.

    Args:
        session: that reads.
        campaign: whose questions they are.
        answers: of the campaign; where there are no more than at the last count, that holds longer.
        now: the time.
    """
    people = frozenset(people_at_work(session, campaign.id))
    if not people:
        return 0
    before = _COUNTED.get(campaign.id)
    if campaign.question_count >= LARGE and before is not None and before.people == people:
        holds = SAME_HOLDS if before.answers == answers else HOLDS
        if abs(now - before.at) < holds:
            return before.left
    count = count_left_over(session, campaign, people)
    if campaign.question_count >= LARGE:
        if len(_COUNTED) >= MOST_KEPT:
            _COUNTED.clear()
        _COUNTED[campaign.id] = _Counted(now, people, answers, count)
    return count


def count_left_over(session: Session, campaign: Campaign, people: Collection[UUID]) -> int:
    """The same as it is now, for these people at work: at least one."""
    # As one set of whom each may not be asked of: looking at each question by itself takes longer.
    known, asked = aliased(Question), aliased(Question)
    met = (
        select(asked.id.label("question_id"), Lease.user_id)
        .select_from(known)
        .join(Lease, Lease.question_id == known.id)
        .join(asked, and_(asked.campaign_id == known.campaign_id, asked.example_id == known.example_id))
        .where(
            known.campaign_id == campaign.id,
            known.purpose == literal_column("'gold'"),
            Lease.user_id.in_(people),
            asked.is_waiting,
        )
        .cte("met")
    )
    answered = select(Answer.question_id, Answer.user_id).where(
        Answer.superseded_at.is_(None), Answer.user_id.in_(people)
    )
    of_waiting = answered.join(Question, Question.id == Answer.question_id).where(
        Question.campaign_id == campaign.id, Question.is_waiting
    )
    spent = union(
        select(met.c.question_id, met.c.user_id),
        answered.where(Answer.question_id.in_(select(met.c.question_id))),
        *([of_waiting] if len(people) < UNSURE_LIMIT else _of_several(of_waiting)),
    ).subquery()
    of_all = (
        select(spent.c.question_id)
        .group_by(spent.c.question_id)
        .having(func.count() >= len(people))
        .subquery()
    )
    return session.scalar(select(func.count()).select_from(of_all)) or 0


def _of_several(of_waiting: Select[int, UUID]) -> tuple[Select[int, UUID], ...]:
    """Those of these answers that are about questions which so many may have answered, by indexes of few.

    More than one answer that says something is asked for; or some were hasty, as only UNSURE_LIMIT wait that
    could not tell.
    """
    hasty = aliased(Answer, name="hasty")
    # Its column as in the partial index: for `is_hasty = 1` SQLite would not use it.
    ids = select(hasty.question_id).where(literal_column("hasty.is_hasty"), hasty.superseded_at.is_(None))
    return of_waiting.where(Question.slots > literal_column("1")), of_waiting.where(Question.id.in_(ids))


def nobody_is_left(
    campaign: Campaign, question_id: InstrumentedAttribute[int], people: Collection[UUID]
) -> ColumnElement[bool]:
    """Whether a question with answers gets no more: all at work answered it, or the campaign is closed."""
    return true() if campaign.state is CampaignState.CLOSED else is_asked_of_all(question_id, people)
