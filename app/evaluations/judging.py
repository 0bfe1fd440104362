"""The images of evaluations, with what people said of their predictions."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, case, exists, func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, AnswerValue, Participant, Purpose, Question
from app.campaigns.models import Campaign, CampaignClass, CampaignKind
from app.evaluations.models import EvaluatedImage


def _said(value: AnswerValue) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((and_(Answer.value == value, ~Answer.is_hasty), 1), else_=0)), 0)


_YES, _NO = _said(AnswerValue.YES), _said(AnswerValue.NO)
# Of people who are not left out; the join leaves questions without answers in place.
COUNTS = and_(
    Answer.question_id == Question.id,
    Answer.superseded_at.is_(None),
    ~exists().where(
        Participant.campaign_id == Question.campaign_id,
        Participant.user_id == Answer.user_id,
        Participant.is_left_out,
    ),
)


def settled_questions(
    session: Session, dataset_id: UUID, *, class_names: Sequence[str]
) -> dict[tuple[int, int], int]:
    """Question by example and class: what evaluations over a dataset that ask about these classes know."""
    names: dict[UUID, list[str]] = {}
    for campaign_id, name in session.execute(
        select(CampaignClass.campaign_id, CampaignClass.name)
        .join(Campaign, Campaign.id == CampaignClass.campaign_id)
        .where(Campaign.dataset_id == dataset_id, Campaign.kind == CampaignKind.EVALUATION)
        .order_by(CampaignClass.campaign_id, CampaignClass.position)
    ):
        names.setdefault(campaign_id, []).append(name)
    alike = [campaign_id for campaign_id, found in names.items() if found == list(class_names)]
    rows = session.execute(
        select(Question.id, Question.example_id, Question.candidate_class, _YES, _NO)
        .join(Answer, COUNTS)
        .where(
            Question.campaign_id.in_(alike),
            Question.purpose == Purpose.EVALUATION,
            ~Question.is_set_aside,
            ~Question.is_waiting,
        )
        .group_by(Question.id, Question.example_id, Question.candidate_class)
        .having(_YES != _NO)
        .order_by(_YES + _NO, Question.id)  # of several the one with most answers stays
    )
    return {(example_id, class_): id_ for id_, example_id, class_, _, _ in rows}


# evaluation, example, class, question, is it an earlier one's, is it set aside, does it wait, yes, no
Image = Row[UUID, int, int, int | None, bool, bool | None, bool | None, int, int]


def images_judged(
    evaluation_id: UUID,
) -> Select[UUID, int, int, int | None, bool, bool | None, bool | None, int, int]:
    """A row for each image of an evaluation, with what people said of its prediction."""
    return (
        select(
            EvaluatedImage.evaluation_id,
            EvaluatedImage.example_id,
            EvaluatedImage.class_,
            EvaluatedImage.question_id,
            EvaluatedImage.is_known,
            Question.is_set_aside,
            Question.is_waiting,
            _YES.label("yes"),
            _NO.label("no"),
        )
        .outerjoin(Question, Question.id == EvaluatedImage.question_id)
        .outerjoin(Answer, COUNTS)
        .where(EvaluatedImage.evaluation_id == evaluation_id)
        .group_by(
            EvaluatedImage.evaluation_id,
            EvaluatedImage.example_id,
            EvaluatedImage.class_,
            EvaluatedImage.question_id,
            EvaluatedImage.is_known,
            Question.is_set_aside,
            Question.is_waiting,
        )
    )


def verdict_of(row: Image) -> bool | None:
    """Whether most people say that the prediction is right; None while nobody does, or they are divided."""
    return None if row.is_set_aside or row.yes == row.no else row.yes > row.no


def is_unasked(row: Image) -> bool:
    """Whether nobody has judged it because nobody was asked, or not enough people."""
    return verdict_of(row) is None and (row.question_id is None or bool(row.is_waiting))
