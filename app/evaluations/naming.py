"""Which classes a model takes for which, by what people name after a no."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, AnswerValue, Naming, Question
from app.annotation.naming import NONE_OF_THEM
from app.evaluations.estimating import Interval, accuracy_interval
from app.evaluations.judging import COUNTS, images_judged, is_unasked, verdict_of
from app.evaluations.models import EvaluatedImage, Evaluation


@dataclass(frozen=True, slots=True)
class Found:
    """Pictures that show one class, as people say.

    Args:
        name: of the class.
        shown: pictures of it in the sample.
        right: of these, that the model takes for it.
        share: of all such pictures of the target; None where the sample has none. At most this where the
            class of a wrong prediction is not known: it may be this one.
        interval: of that share; None before everything is judged and every wrong prediction has a class, and
            where parts of the target count by different weights.
    """

    name: str
    shown: int
    right: int
    share: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """What pictures show, as people say, by what the model takes them for.

    Args:
        rows: counts of pictures; a row for each class that they show, a column for each predicted one.
        classes: how much of each class the model finds.
        none_of_these: wrong predictions of which most say that they show none of the classes, or that they
            cannot tell: not counted.
        unnamed: those about which people are divided, or whom nobody asked: not counted.
        is_whole: everything is judged.
    """

    rows: tuple[tuple[int, ...], ...]
    classes: tuple[Found, ...]
    none_of_these: int
    unnamed: int
    is_whole: bool


def confusion_of(session: Session, evaluation: Evaluation) -> Confusion | None:
    """By the right predictions and what people named after a no; None where nobody named anything."""
    votes = _votes(session, evaluation)
    if not votes:
        return None
    num_classes = len(evaluation.class_names)
    counts = [[0] * num_classes for _ in range(num_classes)]
    none_of_these, unnamed, untold, is_whole = 0, 0, 0, True
    for row in session.execute(images_judged([evaluation.id])):
        is_right = verdict_of(row)
        is_whole = is_whole and not is_unasked(row)
        if is_right is None:
            untold += 1
            continue
        shown = row.class_ if is_right else _most(votes.get(row.example_id, Counter()))
        if shown is None:
            unnamed += 1
        elif shown == NONE_OF_THEM:
            none_of_these += 1
        else:
            counts[shown][row.class_] += 1
    weights = None
    if evaluation.strata is not None:  # of a picture by its predicted class
        weights = {class_: has / max(drawn, 1) for class_, (has, drawn, _) in enumerate(evaluation.strata)}
    is_certain = is_whole and not none_of_these and not unnamed
    beside = untold if evaluation.is_whole else None
    classes = tuple(
        _found(name, class_, counts[class_], weights, is_certain=is_certain, beside=beside)
        for class_, name in enumerate(evaluation.class_names)
    )
    return Confusion(tuple(map(tuple, counts)), classes, none_of_these, unnamed, is_whole)


def _found(
    name: str,
    class_: int,
    row: Sequence[int],
    weights: Mapping[int, float] | None,
    *,
    is_certain: bool,
    beside: int | None,
) -> Found:
    """What is known of a class.

    `beside`: pictures of the target of which nobody could tell anything, each of which may show the class;
    None: the target has more than were asked about.
    """
    shown, right = sum(row), row[class_]
    if not shown:
        return Found(name, 0, 0, None, None)
    if weights is None:
        population = None if beside is None else shown + beside
        interval = accuracy_interval(right, shown, population) if is_certain else None
        return Found(name, shown, right, right / shown, interval)
    weighted = [count * weights.get(predicted, 0.0) for predicted, count in enumerate(row)]
    total = sum(weighted)
    return Found(name, shown, right, weighted[class_] / total if total else None, None)


def named_of(session: Session, model_id: UUID, example_id: int) -> list[tuple[int | None, int]]:
    """What people named that a picture shows after their no to a model's prediction: class and how often.

    The most frequent first; None: none of the classes, or they could not tell.
    """
    count = func.count(Answer.id.distinct())  # models share answers, and one has several evaluations
    rows = session.execute(
        select(Naming.class_, count)
        .join(Answer, Answer.id == Naming.answer_id)
        .join(Question, COUNTS)
        .join(EvaluatedImage, EvaluatedImage.question_id == Question.id)
        .join(Evaluation, Evaluation.id == EvaluatedImage.evaluation_id)
        .where(
            Evaluation.model_id == model_id,
            EvaluatedImage.example_id == example_id,
            Answer.value == AnswerValue.NO,
            ~Answer.is_hasty,
        )
        .group_by(Naming.class_)
        .order_by(count.desc(), Naming.class_)
    )
    return [(class_, number) for class_, number in rows]


def _votes(session: Session, evaluation: Evaluation) -> dict[int, Counter[int]]:
    """By example how many people named each class, or none of them."""
    rows = session.execute(
        select(EvaluatedImage.example_id, Naming.class_, func.count())
        .join(Question, Question.id == EvaluatedImage.question_id)
        .join(Answer, COUNTS)
        .join(Naming, Naming.answer_id == Answer.id)
        .where(
            EvaluatedImage.evaluation_id == evaluation.id,
            Answer.value == AnswerValue.NO,
            ~Answer.is_hasty,
        )
        .group_by(EvaluatedImage.example_id, Naming.class_)
    )
    votes: dict[int, Counter[int]] = {}
    for example_id, class_, count in rows:
        votes.setdefault(example_id, Counter())[NONE_OF_THEM if class_ is None else class_] += count
    return votes


def _most(votes: Counter[int]) -> int | None:
    """What most people named; None where they are divided, or nobody did."""
    first, second = (*votes.most_common(2), (None, 0), (None, 0))[:2]
    return None if first[1] == second[1] else first[0]
