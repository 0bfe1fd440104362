"""What people see: how often they say yes to each class in images of each true class."""

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation.models import OF_CLASS, Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign
from app.datasets.models import Dataset, Example
from clarinet.files.names import NO_LABEL, numbers_among

MAX_MATRIX = 30  # classes; a larger matrix nobody reads

SeenClasses = tuple[tuple[float | None, ...], ...]  # (K, K)


def seen_classes(session: Session, campaign: Campaign, dataset: Dataset) -> SeenClasses | None:
    """How often people say yes to each class, in images of each true class: the matrix of what is seen.

    Row y, column k: the share of yes among the first answers about class k in images of class y. Further ones
    are asked because of what the first one said, so they tell nothing more. None where the dataset came
    without true classes; None in a cell without answers. It never reaches a training.
    """
    if not dataset.class_names or campaign.num_classes > MAX_MATRIX:
        return None
    place = numbers_among(campaign.class_names, dataset.class_names)
    first = (
        select(func.min(Answer.id))
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
            Answer.superseded_at.is_(None),
            Answer.value.in_(OF_CLASS),
            ~Question.is_set_aside,
            ~Answer.is_hasty,
        )
        .group_by(Answer.question_id)
    )
    rows = session.execute(
        select(Example.true_class, Question.candidate_class, Answer.value, func.count())
        .join(Question, Question.example_id == Example.id)
        .join(Answer, Answer.question_id == Question.id)
        .where(Answer.id.in_(first), Example.true_class.is_not(None))
        .group_by(Example.true_class, Question.candidate_class, Answer.value)
    )
    yes = np.zeros((campaign.num_classes, campaign.num_classes), dtype=np.int64)
    told = np.zeros_like(yes)
    for true_class, asked, value, count in rows:
        assert true_class is not None  # the query left these out
        row = place[true_class]
        if row != NO_LABEL:
            told[row, asked] += count
            yes[row, asked] += count * (value is AnswerValue.YES)
    return tuple(
        tuple(float(y) / float(n) if n else None for y, n in zip(some, all_, strict=True))
        for some, all_ in zip(yes, told, strict=True)
    )
