"""What people said of questions in doubt beside the yes and no that count."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, AnswerValue
from app.quality.doubts import OpenQuestion


def with_all_said(session: Session, questions: Iterable[OpenQuestion]) -> list[OpenQuestion]:
    """The same with how many could not tell, found the picture of no use, or said what does not count."""
    questions = list(questions)
    said: dict[int, Counter[AnswerValue]] = {question.id: Counter() for question in questions}
    rows = session.execute(
        select(Answer.question_id, Answer.value, func.count())
        .where(Answer.question_id.in_(said), Answer.superseded_at.is_(None))
        .group_by(Answer.question_id, Answer.value)
    )
    for question_id, value, count in rows:
        said[question_id][value] = count
    return [
        replace(
            question,
            unsure=said[question.id][AnswerValue.UNSURE],
            unusable=said[question.id][AnswerValue.UNUSABLE],
            uncounted=max(
                0, said[question.id][AnswerValue.YES] + said[question.id][AnswerValue.NO] - question.answers
            ),
        )
        for question in questions
    ]
