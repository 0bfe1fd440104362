"""The images of evaluations, with what people said of their predictions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, case, exists, false, func, or_, select, true
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
    session: Session, dataset_id: UUID, *, class_names: Sequence[str], asks_which: bool
) -> dict[tuple[int, int], int]:
    """Question by example and class: what evaluations over a dataset that ask about these classes know.

    `asks_which`: only of those that asked what a picture shows after a no. If others' answers counted, their
    wrong predictions would have no class, and each class would seem to be found more often than it is.
    """
    names: dict[UUID, list[str]] = {}
    for campaign_id, name in session.execute(
        select(CampaignClass.campaign_id, CampaignClass.name)
        .join(Campaign, Campaign.id == CampaignClass.campaign_id)
        .where(Campaign.dataset_id == dataset_id, Campaign.kind == CampaignKind.EVALUATION)
        .where(Campaign.asks_which if asks_which else true())
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
    evaluation_ids: Collection[UUID],
) -> Select[UUID, int, int, int | None, bool, bool | None, bool | None, int, int]:
    """A row for each image of these evaluations, with what people said of its prediction."""
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
        .where(EvaluatedImage.evaluation_id.in_(evaluation_ids))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Images of an evaluation that the model takes for one class, and how people judged them.

    Args:
        class_, is_known: which: their predicted class, and whether earlier evaluations had the answer.
        images: how many.
        right, wrong: by what most people said.
        unasked: to be judged yet.
        several: that more than one person judged.
        unanimous, unanimous_right: of these, on which all agreed; and that the prediction is right.
    """

    class_: int
    is_known: bool
    images: int
    right: int
    wrong: int
    unasked: int
    several: int
    unanimous: int
    unanimous_right: int

    @property
    def judged(self) -> int:
        """How many people told right from wrong."""
        return self.right + self.wrong


def cells_of(session: Session, evaluation_ids: Collection[UUID]) -> dict[UUID, list[Cell]]:
    """The images of evaluations, counted where they lie; as `verdict_of` and `is_unasked` say of each."""
    row = images_judged(evaluation_ids).subquery().c
    is_used = ~func.coalesce(row.is_set_aside, false())
    is_told = and_(is_used, row.yes != row.no)
    is_several = and_(is_used, row.yes + row.no > 1)
    counted = {
        "right": and_(is_told, row.yes > row.no),
        "wrong": and_(is_told, row.yes < row.no),
        "unasked": and_(~is_told, or_(row.question_id.is_(None), row.is_waiting)),
        "several": is_several,
        "unanimous": and_(is_several, or_(row.yes == 0, row.no == 0)),
        "unanimous_right": and_(is_several, row.no == 0),
    }
    by = (row.evaluation_id, row.class_, row.is_known)
    rows = session.execute(
        select(
            *by,
            func.count().label("images"),
            *(func.sum(case((holds, 1), else_=0)).label(name) for name, holds in counted.items()),
        ).group_by(*by)
    )
    found: dict[UUID, list[Cell]] = {}
    for evaluation_id, class_, is_known, images, *counts in rows:
        told = dict(zip(counted, map(int, counts), strict=True))
        found.setdefault(evaluation_id, []).append(
            Cell(class_=class_, is_known=is_known, images=images, **told)
        )
    return found
