"""Answers that everybody's sums have and that say nothing: hasty ones, and those about pictures set aside."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ColumnElement, Select, String, case, cast, func, literal_column, select

from app.annotation.models import IS_SET_ASIDE, OF_CLASS, Answer, AnswerValue, Purpose, Question

# As in the partial index: for `is_hasty = 1` SQLite would not use it.
IS_HASTY: ColumnElement[bool] = literal_column("answer.is_hasty")


def person() -> ColumnElement[str]:
    """Who answered, as text: digits in SQLite, with dashes in PostgreSQL; `UUID` reads both.

    Plain values as the driver gives them: mapped ones take three times as long as the query.
    """
    return cast(Answer.user_id, String)


def hasty(campaign_id: UUID) -> Select[str, int, int]:
    """How many hasty answers each person gave, yes and no."""
    return _yes_and_no_of(campaign_id, IS_HASTY)


def set_aside(campaign_id: UUID) -> Select[str, int, int]:
    """How many others each person gave about pictures that are set aside, likewise."""
    return _yes_and_no_of(campaign_id, IS_SET_ASIDE & ~Answer.is_hasty)


def by_belief(campaign_id: UUID, drawings: Collection[int]) -> Select[str, int, int]:
    """How many others each person gave to questions of these drawings, likewise."""
    return _yes_and_no_of(
        campaign_id, Question.drawing.in_(drawings) & ~Question.is_set_aside & ~Answer.is_hasty
    )


def _yes_and_no_of(campaign_id: UUID, which: ColumnElement[bool]) -> Select[str, int, int]:
    said_yes = case((Answer.value == AnswerValue.YES, 1), else_=0)
    return (
        select(person(), said_yes, func.count())
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == campaign_id,
            Question.purpose == Purpose.LABELLING,
            Answer.superseded_at.is_(None),
            Answer.value.in_(OF_CLASS),
            which,
        )
        .group_by(Answer.user_id, said_yes)
    )
