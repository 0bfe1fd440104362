"""What somebody sees of their own answers: counts, pace, agreement with others, and the last ones.

Known pictures are among them and look like all others. Counts of what one said may move at once. How far
others agree is told per hundred questions, and follows from what stood when the last of these was answered
first: no undo, no change and nobody's later answer moves it. Known pictures do not enter it.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.accounts.models import User
from app.annotation.models import OF_CLASS, Answer, AnswerValue, Purpose, Question
from app.campaigns.admission import image_visible_to, visible_to
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Example

LAST = 200  # answers that one can look at and change
STEP = 100  # questions per figure of agreement
LEAST_PAIRS = 10  # answers of others; fewer say nothing, and too much of single ones


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """One person's answers in a campaign, as they may know them."""

    counts: dict[AnswerValue, int]
    mean_ms: float | None  # of answers whose time is known
    agreement: float | None  # share of others' answers to the same questions that say the same; None: too few
    agreement_over: int  # first questions that it is of: a multiple of STEP

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
        select(Answer.value, func.count(), func.count(Answer.response_ms), func.sum(Answer.response_ms))
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign.id, Answer.user_id == by.id, Answer.superseded_at.is_(None))
        .group_by(Answer.value)
    ).all()
    counts = dict.fromkeys(AnswerValue, 0) | {row[0]: row[1] for row in rows}
    timed, active_ms = sum(row[2] for row in rows), sum(int(row[3] or 0) for row in rows)
    agreement, over = _agreement(session, campaign.id, by)
    return OwnFigures(counts, active_ms / timed if timed else None, agreement, over)


def _agreement(session: Session, campaign_id: UUID, by: User) -> tuple[float | None, int]:
    # By when each question was answered first: taking back and changing answers makes no step.
    first_id = func.min(Answer.id).label("first_id")
    mine = (
        select(first_id, func.min(Answer.created_at).label("at"))
        .join(Question, Question.id == Answer.question_id)
        .where(Question.campaign_id == campaign_id, Answer.user_id == by.id)
        .group_by(Answer.question_id)
        .order_by(first_id)
    )
    given = session.scalar(select(func.count()).select_from(mine.subquery())) or 0
    over = given // STEP * STEP
    if not over:
        return None, 0
    last_id, at = session.execute(mine.offset(over - 1).limit(1)).one()
    own, other = aliased(Answer), aliased(Answer)
    same, pairs = session.execute(
        select(func.count().filter(own.value == other.value), func.count())
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
    return (same / pairs if pairs >= LEAST_PAIRS else None), over


def image_shown_to(user: User) -> ColumnElement[bool]:
    """Whether a person may see the image of rows of `example` and `dataset`.

    Whom `image_visible_to` refuses still sees what stands beside their own answers, as long as they are
    members.
    """
    answered = (
        exists()
        .where(
            Question.example_id == Example.id,
            Answer.question_id == Question.id,
            Answer.user_id == user.id,
            Answer.superseded_at.is_(None),
            Campaign.id == Question.campaign_id,
            visible_to(user),
        )
        .correlate(Example)
    )
    return or_(image_visible_to(user), answered)


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
