"""What somebody sees of their own answers: counts, pace, agreement with others, and the last ones.

Known pictures are among them and look like all others. Counts of what one said may move at once. How far
others agree is told per hundred questions, and follows from what stood when the last of these was answered
first: no undo, no change and nobody's later answer moves it. Known pictures do not enter it. The pace is told
per hundred questions, too, in tenths of a second: the time that is believed of a single answer is nobody's
business but the server's.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Select, exists, func, literal, or_, select, true
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation.models import OF_CLASS, Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Example

LAST = 200  # answers that one can look at and change
STEP = 100  # questions per figure of agreement, and of pace
PACE_MS = 100  # as exactly as the pace is told
LEAST_JUDGED = 20  # that others answered, too; fewer say nothing, and too much of single ones


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """One person's answers in a campaign, as they may know them."""

    counts: dict[AnswerValue, int]
    mean_ms: float | None  # of the first answers to the first questions, a multiple of STEP
    agreement: float | None  # share of others' answers to the same questions that say the same; None: too few
    agreement_over: int  # first questions among which these are: a multiple of STEP
    agreement_judged: int  # of these, how many others answered, too; 0 where that is too few

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """An answer of one's own that stands."""

    question_id: int
    example_id: int
    candidate_class: int
    value: AnswerValue
    created_at: datetime
    # What most others said; None: nobody else, as many each, or it is not told. See `tells_others`.
    others: AnswerValue | None = None


def own_figures(session: Session, campaign: Campaign, *, by: User) -> OwnFigures:
    """Counts and pace of this person's answers that stand, and agreement per hundred questions."""
    rows = session.execute(
        select(Answer.value, func.count())
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.user_id == by.id, Answer.superseded_at.is_(None))
        .group_by(Answer.value)
    ).all()
    counts = dict.fromkeys(AnswerValue, 0) | {row[0]: row[1] for row in rows}
    return OwnFigures(counts, _pace(session, campaign.id, by), *_agreement(session, campaign.id, by))


def _first_answers(campaign_id: UUID, by: User) -> Select[int, datetime]:
    """When each question was answered first: taking back and changing answers makes no step."""
    first_id = func.min(Answer.id).label("first_id")
    return (
        select(first_id, func.min(Answer.created_at).label("at"))
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign_id, Answer.user_id == by.id)
        .group_by(Answer.question_id)
        .order_by(first_id)
    )


def _pace(session: Session, campaign_id: UUID, by: User) -> float | None:
    firsts = _first_answers(campaign_id, by).subquery()
    timed = (
        select(Answer.response_ms)
        .join(firsts, firsts.c.first_id == Answer.id)
        .where(Answer.response_ms.is_not(None))
        .order_by(Answer.id)
    )
    over = (session.scalar(select(func.count()).select_from(timed.subquery())) or 0) // STEP * STEP
    if not over:
        return None
    first = timed.limit(over).subquery()
    total = session.scalar(select(func.sum(first.c.response_ms))) or 0
    return float(round(int(total) / over / PACE_MS) * PACE_MS)


def _agreement(session: Session, campaign_id: UUID, by: User) -> tuple[float | None, int, int]:
    mine = _first_answers(campaign_id, by)
    given = session.scalar(select(func.count()).select_from(mine.subquery())) or 0
    over = given // STEP * STEP
    if not over:
        return None, 0, 0
    last_id, at = session.execute(mine.offset(over - 1).limit(1)).one()
    own, other = aliased(Answer), aliased(Answer)
    same, pairs, judged = session.execute(
        select(
            func.count().filter(own.value == other.value),
            func.count(),
            func.count(own.question_id.distinct()),
        )
        .select_from(own)
        .join(Question, Question.id == own.question_id)
        .join(other, other.question_id == own.question_id)
        .where(
            Question.campaign_id == campaign_id,
            Question.purpose == Purpose.LABELLING,
            own.user_id == by.id,
            other.user_id != by.id,
            *(
                condition
                for one in (own, other)
                for condition in (
                    one.id <= last_id,
                    one.value.in_(OF_CLASS),
                    ~one.is_hasty,
                    or_(one.superseded_at.is_(None), one.superseded_at > at),
                )
            ),
        )
    ).one()
    return (same / pairs, over, judged) if judged >= LEAST_JUDGED else (None, over, 0)


def picture_shown_to(user: User, campaign: Campaign) -> ColumnElement[bool]:
    """Whether somebody who may know of the campaign may see the picture of rows of `example` in it.

    All see all while it is open. Afterwards they still see what stands beside their own answers.
    """
    if campaign.state is CampaignState.OPEN or user.is_admin:
        return true()
    if user.may_review:
        return literal(campaign.state is not CampaignState.DRAFT)
    return (
        exists()
        .where(
            Question.campaign_id == campaign.id,
            Question.example_id == Example.id,
            Answer.question_id == Question.id,
            Answer.user_id == user.id,
            Answer.superseded_at.is_(None),
        )
        .correlate(Example)
    )


def last_answers(session: Session, campaign: Campaign, *, by: User) -> list[OwnAnswer]:
    """This person's last answers that stand: the same whatever became of their questions.

    In the order in which these were answered first, newest first: a change moves nothing.
    """
    rows = session.execute(
        select(
            Answer.question_id, Question.example_id, Question.candidate_class, Answer.value, Answer.created_at
        )
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.user_id == by.id, Answer.superseded_at.is_(None))
        .order_by(Answer.id.desc())
        .limit(LAST)
    ).all()
    ids = [row.question_id for row in rows]
    others = _others(session, ids, by) if tells_others(campaign) else {}
    first = (
        select(Answer.question_id, func.min(Answer.id).label("id"))
        .where(Answer.question_id.in_(ids), Answer.user_id == by.id)
        .group_by(Answer.question_id)
    )
    firsts = {row.question_id: row.id for row in session.execute(first)}
    in_order = sorted(rows, key=lambda row: firsts[row.question_id], reverse=True)
    return [OwnAnswer(*row, others.get(row.question_id)) for row in in_order]


def tells_others(campaign: Campaign) -> bool:
    """Whether it is told what others said: where the campaign says so, once it is closed.

    Before, known pictures would stand out by it, because everybody answers them. With closing the seed is
    public, and so is what was drawn.
    """
    return campaign.tells_others and campaign.state is CampaignState.CLOSED


def _others(session: Session, question_ids: list[int], by: User) -> dict[int, AnswerValue]:
    rows = session.execute(
        select(
            Answer.question_id,
            func.count().filter(Answer.value == AnswerValue.YES),
            func.count().filter(Answer.value == AnswerValue.NO),
        )
        .where(
            Answer.question_id.in_(question_ids),
            Answer.user_id != by.id,
            Answer.superseded_at.is_(None),
            ~Answer.is_hasty,
        )
        .group_by(Answer.question_id)
    )
    return {id_: AnswerValue.YES if yes > no else AnswerValue.NO for id_, yes, no in rows if yes != no}
