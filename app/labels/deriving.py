"""The labels that a campaign's answers add up to: derived when asked for, never stored."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import attrgetter
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.consensus import LabelKind
from app.annotation.models import Tally
from app.campaigns.models import Campaign
from app.labels.importing.storing import imported_labels
from app.quality.service import AnsweredQuestion, Judge, judge_of, question_answers

NONE = -1


@dataclass(frozen=True, slots=True)
class QuestionLabel:
    """What one question says about its example."""

    example_id: int
    position: int
    kind: LabelKind
    class_: int
    answers: int  # yes/no answers it rests on
    weight: float
    is_imported: bool = False  # nobody was asked here


@dataclass(frozen=True, slots=True)
class ExampleLabel:
    """An example's label: its true class, or the classes it is not."""

    example_id: int
    position: int
    kind: LabelKind
    classes: tuple[int, ...]  # one if true; one or more, ascending, if complementary
    answers: int
    weight: float
    imported: tuple[int, ...] = ()  # those of its classes about which nobody was asked here


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Every label of a campaign, in position order; rows are (example, class) pairs. N rows, K classes.

    An example with a true label has exactly one row; else it has one row per complementary label (more than
    one only in campaigns of several rounds).
    """

    example_ids: NDArray[np.int64]  # (N,)
    positions: NDArray[np.int64]  # (N,) of the example in its dataset
    complementary: NDArray[np.int64]  # (N,) a class it is not, or -1
    true: NDArray[np.int64]  # (N,) its class, or -1
    weights: NDArray[
        np.float32
    ]  # (N,) of the consensus, times drawn / answered of the class while unfinished
    answers: NDArray[np.int64]  # (N,) yes/no answers the label rests on
    drawn: NDArray[np.int64]  # (K,) questions drawn per class
    answered: NDArray[np.int64]  # (K,) of these, how many have a yes or a no
    answer_count: int  # live answers of the campaign, "can't tell" included
    simulated_count: int  # how many of them simulated annotators gave
    is_unfinished: bool  # some question still waits
    imported_count: int  # rows that rest on imports alone


def labels(session: Session, campaign: Campaign, *, imported: bool = False) -> Iterator[ExampleLabel]:
    """The label of each labelled example, in position order; rows are streamed.

    `imported`: with labels from elsewhere, whose questions were not drawn uniformly.
    """
    judge = judge_of(session, campaign, num_classes=campaign.num_classes)
    rows = session.execute(question_answers(campaign.id).execution_options(yield_per=5_000))
    found = _labels_of_questions(rows, judge)
    yield from _combined(_with_imports(session, campaign.id, found) if imported else found)


def _labels_of_questions(rows: Iterable[AnsweredQuestion], judge: Judge) -> Iterator[QuestionLabel]:
    for row in rows:
        given = judge(row)
        if given.kind:
            yield QuestionLabel(
                row.example_id, row.position, given.kind, row.candidate_class, given.answers, given.weight
            )


def _with_imports(
    session: Session, campaign_id: UUID, found: Iterable[QuestionLabel]
) -> Iterator[QuestionLabel]:
    imported = (
        QuestionLabel(
            item.example_id, item.position, item.kind, item.class_, item.answers, 1.0, is_imported=True
        )
        for item in imported_labels(session, campaign_id)
    )
    return merge(found, imported, key=attrgetter("position"))


def _combined(found: Iterable[QuestionLabel]) -> Iterator[ExampleLabel]:
    for _, group in groupby(found, key=attrgetter("example_id")):
        label = combine(list(group))
        if label is not None:
            yield label


def combine(found: list[QuestionLabel]) -> ExampleLabel | None:
    """One example's label from its questions' labels and imports. Pure.

    A true label stands alone. Two different true classes contradict each other: then nothing is known. An
    import that says of a class what the answers deny leaves nothing known of that class.
    """
    agreed = found if len(found) == 1 else _agreed(found)
    true = [label for label in agreed if label.kind is LabelKind.TRUE]
    if len({label.class_ for label in true}) > 1 or not agreed:
        return None
    kept = true[:1] or agreed
    return ExampleLabel(
        example_id=kept[0].example_id,
        position=kept[0].position,
        kind=kept[0].kind,
        classes=tuple(sorted(label.class_ for label in kept)),
        answers=sum(label.answers for label in kept),
        weight=min(label.weight for label in kept),
        imported=tuple(sorted(label.class_ for label in kept if label.is_imported)),
    )


def _agreed(found: list[QuestionLabel]) -> list[QuestionLabel]:
    """One label per class: the answers' own where an import says the same, none where it denies them."""
    by_class: dict[int, list[QuestionLabel]] = {}
    for label in found:
        by_class.setdefault(label.class_, []).append(label)
    return [
        min(group, key=attrgetter("is_imported"))
        for group in by_class.values()
        if len({label.kind for label in group}) == 1
    ]


def label_arrays(session: Session, campaign_id: UUID, *, imported: bool = False) -> Labels:
    """Every label of a campaign as arrays, for a run to freeze. 60,000 examples take well below a second.

    `imported`: with labels from elsewhere, which weigh 1.
    """
    campaign = session.get_one(Campaign, campaign_id)
    drawn = drawn_per_class(session, campaign_id)
    judge = judge_of(session, campaign, num_classes=len(drawn))
    questions = session.execute(question_answers(campaign_id)).all()
    answered = np.bincount([row.candidate_class for row in questions], minlength=len(drawn))  # (K,)
    finished, answer_count = _standing(session, campaign_id)
    is_unfinished = finished < campaign.question_count
    factors = _factors(drawn, answered, is_unfinished=is_unfinished)

    found: Iterator[QuestionLabel] = _labels_of_questions(questions, judge)
    if imported:
        found = _with_imports(session, campaign_id, found)
    rows = [
        (
            label.example_id,
            label.position,
            label.kind is LabelKind.TRUE,
            class_,
            label.answers,
            label.weight * (1 if class_ in label.imported else factors[class_]),
            class_ in label.imported,
        )
        for label in _combined(found)
        for class_ in label.classes
    ]
    ids, positions, is_true, classes, answers, weights, from_imports = (
        zip(*rows, strict=True) if rows else ((),) * 7
    )
    true_mask = np.array(is_true, dtype=bool)  # (N,)
    class_array = np.array(classes, dtype=np.int64)  # (N,)
    return Labels(
        example_ids=np.array(ids, dtype=np.int64),
        positions=np.array(positions, dtype=np.int64),
        complementary=np.where(true_mask, NONE, class_array),
        true=np.where(true_mask, class_array, NONE),
        weights=np.array(weights, dtype=np.float32),
        answers=np.array(answers, dtype=np.int64),
        drawn=drawn,
        answered=answered,
        answer_count=answer_count,
        simulated_count=simulated_answers(session, campaign_id),
        is_unfinished=is_unfinished,
        imported_count=sum(from_imports),
    )


def class_factors(session: Session, campaign_id: UUID) -> NDArray[np.float64]:
    """(K,) by which a label's weight is multiplied for its class; ones once nothing waits."""
    campaign = session.get_one(Campaign, campaign_id)
    drawn = drawn_per_class(session, campaign_id)
    finished, _ = _standing(session, campaign_id)
    if finished >= campaign.question_count:
        return np.ones(len(drawn))
    answered = answered_per_class(session, campaign_id, num_classes=len(drawn))
    return _factors(drawn, answered, is_unfinished=True)


def _factors(
    drawn: NDArray[np.int64], answered: NDArray[np.int64], *, is_unfinished: bool
) -> NDArray[np.float64]:
    # Classes that were asked about less so far count for more, so that the labels stand for uniform draws.
    return drawn / np.maximum(answered, 1) if is_unfinished else np.ones(len(drawn))  # (K,)


def _standing(session: Session, campaign_id: UUID) -> tuple[int, int]:
    """Questions that need no more answers, and live answers, "can't tell" included."""
    finished, answers = session.execute(
        select(
            func.coalesce(func.sum(Tally.finished), 0),
            func.coalesce(func.sum(Tally.yes + Tally.no + Tally.unsure), 0),
        ).where(Tally.campaign_id == campaign_id)
    ).one()
    return int(finished), int(answers)


def drawn_per_class(session: Session, campaign_id: UUID) -> NDArray[np.int64]:
    """(K,) how many questions were drawn about each class."""
    campaign = session.get_one(Campaign, campaign_id)
    session.refresh(campaign, ["classes"])
    return np.array([item.question_count for item in campaign.classes], dtype=np.int64)


def answered_per_class(session: Session, campaign_id: UUID, *, num_classes: int) -> NDArray[np.int64]:
    """(K,) how many labelling questions about each class have a yes or a no."""
    per_question = question_answers(campaign_id).order_by(None).subquery()
    counts = session.execute(
        select(per_question.c.candidate_class, func.count()).group_by(per_question.c.candidate_class)
    )
    result = np.zeros(num_classes, dtype=np.int64)
    for class_, count in counts:
        result[class_] = count
    return result


def simulated_answers(session: Session, campaign_id: UUID) -> int:
    """How many live answers of the campaign simulated annotators gave."""
    query = (
        select(func.coalesce(func.sum(Tally.yes + Tally.no + Tally.unsure), 0))
        .join(User, User.id == Tally.user_id)
        .where(Tally.campaign_id == campaign_id, User.is_simulated)
    )
    return int(session.scalar(query) or 0)
