"""Answers to questions by a model's belief: how likely each was, and which images may get one."""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.annotation.models import Purpose, Question
from app.campaigns.by_belief import by_belief_numbers
from app.campaigns.models import Campaign
from app.datasets.models import Example
from app.quality.service import judge_of, question_answers
from clarinet.files.label_table import LabelKind


class Chance(NamedTuple):
    """How a question by belief was drawn."""

    probability: float
    excluded: tuple[int, ...]  # classes that earlier answers about its image had ruled out


@dataclass(frozen=True, slots=True)
class Chances:
    """The questions of a campaign that were drawn by a belief; K classes."""

    by_question: dict[int, Chance]  # empty: none was
    drawn: NDArray[np.int64]  # (K,) how many about each class

    def __bool__(self) -> bool:
        return bool(self.by_question)


def chances_of(session: Session, campaign: Campaign, *, num_classes: int) -> Chances:
    """How each question by belief was drawn. All questions before it were answered no, or it had not come."""
    drawn = np.zeros(num_classes, dtype=np.int64)
    numbers = by_belief_numbers(session, campaign.id)
    if not numbers:
        return Chances({}, drawn)
    ours = Question.campaign_id == campaign.id, Question.purpose == Purpose.LABELLING
    again = select(Question.example_id).where(*ours, Question.drawing.in_(numbers))
    rows = session.execute(
        select(
            Question.example_id,
            Question.id,
            Question.drawing,
            Question.candidate_class,
            Question.probability,
        )
        .where(*ours, Question.example_id.in_(again))
        .order_by(Question.example_id, Question.drawing, Question.round)
    )
    chosen = set(numbers)
    before: dict[int, list[int]] = defaultdict(list)
    found = {}
    for example_id, id_, number, class_, probability in rows:
        if number in chosen:
            found[id_] = Chance(probability, tuple(sorted(before[example_id])))
            drawn[class_] += 1
        before[example_id].append(class_)
    return Chances(found, drawn)


class Denied(NamedTuple):
    """An image all of whose questions so far were answered no."""

    position: int
    example_id: int
    classes: tuple[int, ...]  # that it is not


def to_ask_again(session: Session, campaign: Campaign, *, end_position: int) -> list[Denied]:
    """The images that a round by belief asks about, by position: which those are depends on no class alone.

    Each has an answer of no to each of its questions, of a campaign with its classes.
    """
    judge = judge_of(session, campaign, num_classes=campaign.num_classes)
    denied = {
        row.id
        for row in session.execute(question_answers(campaign.id))
        if judge(row).kind == LabelKind.COMPLEMENTARY
    }
    rows = session.execute(
        select(Example.position, Question.example_id, Question.id, Question.candidate_class)
        .join(Example, Example.id == Question.example_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
            Example.position < end_position,
        )
        .order_by(Example.position, Question.round)
    )
    asked: dict[tuple[int, int], list[int]] = {}
    open_ = set()
    for position, example_id, id_, class_ in rows:
        asked.setdefault((position, example_id), []).append(class_)
        if id_ not in denied:
            open_.add(example_id)
    return [
        Denied(position, example_id, tuple(classes))
        for (position, example_id), classes in asked.items()
        if example_id not in open_
    ]
