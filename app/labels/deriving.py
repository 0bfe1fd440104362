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
from app.annotation.consensus import Verdict
from app.annotation.models import ALL_ANSWERS, Tally
from app.annotation.service import pictures_set_aside
from app.campaigns.models import Campaign
from app.labels.believed import Chance, Chances, chances_of
from app.labels.errors import EvaluationGivesNoLabels
from app.labels.importing.statements import imported_labels
from app.quality.service import AnsweredQuestion, Judge, judge_of, question_answers
from clarinet.files.label_table import LabelKind, LabelRow, Labels


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """Every label of a campaign now, and what it rests on. K classes.

    An image with a true label has exactly one row; else it has one row per complementary label (more than
    one only in campaigns of several rounds).
    """

    labels: Labels  # in position order; weights times drawn / answered of the class while unfinished
    drawn: NDArray[np.int64]  # (K,) questions drawn per class
    answered: NDArray[np.int64]  # (K,) of these, how many have a yes or a no
    answer_count: int  # live answers of the campaign, "can't tell" included
    simulated_count: int  # how many of them simulated annotators gave
    is_unfinished: bool  # some question lacks answers, if of nobody at work: what the weights make up for
    imported_count: int  # labels that rest on imports alone
    by_belief_count: int  # labels of questions by a model's belief; then each has its probability
    left_out_count: int  # answered questions by belief that were left out
    set_aside_count: int  # pictures that give none: they cannot be used, or stand beside a class


def require_labels(campaign: Campaign) -> None:
    """Raises EvaluationGivesNoLabels of a campaign that judges a model."""
    if campaign.is_evaluation:
        raise EvaluationGivesNoLabels


def labels(
    session: Session, campaign: Campaign, *, imported: bool = False, as_given: bool = False
) -> Iterator[LabelRow]:
    """The labels of each labelled example, in position order; rows are streamed.

    Where a round followed a model's belief, each label tells the probability of its question, and the classes
    that earlier answers had ruled out.

    `imported`: with labels from elsewhere, whose questions were not drawn uniformly. `as_given`: with the
    noes before a yes there, as `derive` keeps them.

    Raises:
        EvaluationGivesNoLabels: the campaign judges a model.
    """
    require_labels(campaign)
    judge = judge_of(session, campaign, num_classes=campaign.num_classes)
    chances = chances_of(session, campaign, num_classes=campaign.num_classes)
    rows = session.execute(question_answers(campaign.id).execution_options(yield_per=5_000))
    return _combined(
        session, campaign, rows, judge, chances, imported=imported, as_given=as_given and bool(chances)
    )


def _combined(
    session: Session,
    campaign: Campaign,
    rows: Iterable[AnsweredQuestion],
    judge: Judge,
    chances: Chances,
    *,
    imported: bool,
    as_given: bool = False,
) -> Iterator[LabelRow]:
    found = _labels_of_questions(rows, judge, chances)
    if imported:
        found = merge(found, imported_labels(session, campaign), key=attrgetter("position"))
    for _, group in groupby(found, key=attrgetter("example_id")):
        yield from combine(list(group), as_given=as_given)


def _labels_of_questions(
    rows: Iterable[AnsweredQuestion], judge: Judge, chances: Chances
) -> Iterator[LabelRow]:
    uniform = Chance(1 / len(chances.drawn), ()) if chances else None
    judged = ((row, judge(row)) for row in rows)
    for row, given in _as_excluded(judged, chances) if chances else judged:
        if given.kind:
            chance = chances.by_question.get(row.id, uniform)
            yield LabelRow(
                row.position,
                given.kind,
                row.candidate_class,
                given.weight,
                probability=chance.probability if chance else None,
                example_id=row.example_id,
                answers=given.answers,
                excluded=chance.excluded if chance else (),
            )


def _as_excluded(
    judged: Iterable[tuple[AnsweredQuestion, Verdict]], chances: Chances
) -> Iterator[tuple[AnsweredQuestion, Verdict]]:
    """Without questions by belief about images of which a no before them is none any more.

    People took it back while the round was drawn, or later: then its classes were drawn without one that the
    image may have.
    """
    for _, group in groupby(judged, key=lambda item: item[0].example_id):
        found = list(group)
        denied = {row.candidate_class for row, given in found if given.kind is LabelKind.COMPLEMENTARY}
        for row, given in found:
            chance = chances.by_question.get(row.id)
            if chance is None or denied.issuperset(chance.excluded):
                yield row, given


def combine(found: list[LabelRow], *, as_given: bool = False) -> list[LabelRow]:
    """One example's labels from those of its questions and imports, ascending by class. Pure.

    A true label stands alone; `as_given`: beside the noes that came before it, for what weights each answer
    by its probability. Two different true classes contradict each other: then nothing is known. An import
    that says of a class what the answers deny leaves nothing known of that class. What is kept rests
    on all the answers, and weighs as the least sure of them.
    """
    if len(found) == 1:
        return found
    agreed = _agreed(found)
    true = [label for label in agreed if label.kind is LabelKind.TRUE]
    if len({label.class_ for label in true}) > 1:
        return []
    kept = agreed if as_given else true[:1] or agreed
    answers, weight = sum(label.answers for label in kept), min((label.weight for label in kept), default=0)
    in_order = sorted(kept, key=attrgetter("class_"))
    return [label._replace(answers=answers, weight=weight) for label in in_order]


def _agreed(found: list[LabelRow]) -> list[LabelRow]:
    """One label per class: the answers' own where an import says the same, none where it denies them."""
    by_class: dict[int, list[LabelRow]] = {}
    for label in found:
        by_class.setdefault(label.class_, []).append(label)
    return [
        min(group, key=attrgetter("imported"))
        for group in by_class.values()
        if len({label.kind for label in group}) == 1
    ]


def weighted(rows: Iterable[LabelRow], factors: NDArray[np.float64]) -> Iterator[LabelRow]:
    """Rows whose weight is multiplied by their class's of (2, K) factors; imported labels keep theirs.

    The first are of uniform questions, the second of those by a model's belief.
    """
    uniform, by_belief = factors.tolist()
    for row in rows:
        by_class = by_belief if row.excluded else uniform
        yield row if row.imported else row._replace(weight=row.weight * by_class[row.class_])


def derive(
    session: Session, campaign_id: UUID, *, imported: bool = False, uniform_only: bool = False
) -> Derived:
    """Every label of a campaign, for a run to freeze. 60,000 examples take well below a second.

    With questions by a model's belief, an image with a yes keeps the noes that came before it: the estimate
    by 1/q is unbiased over answers as they were given, and over no part of them.

    `imported`: with labels from elsewhere, which weigh 1. `uniform_only`: without questions by belief.

    Raises:
        EvaluationGivesNoLabels: the campaign judges a model.
    """
    campaign = session.get_one(Campaign, campaign_id)
    require_labels(campaign)
    drawn = drawn_per_class(session, campaign_id)
    judge = judge_of(session, campaign, num_classes=len(drawn))
    chances = chances_of(session, campaign, num_classes=len(drawn))
    questions = session.execute(question_answers(campaign_id)).all()
    left_out = 0
    if uniform_only and chances:
        count = len(questions)
        questions = [row for row in questions if row.id not in chances.by_question]
        left_out, drawn = count - len(questions), drawn - chances.drawn
        chances = Chances({}, np.zeros_like(drawn))
    finished, answer_count = _standing(session, campaign_id)
    is_unfinished = finished < campaign.question_count
    answered = _answered(((row.id, row.candidate_class) for row in questions), chances)  # (2, K)
    factors = _factors(drawn, answered, chances, is_unfinished=is_unfinished)
    found = _combined(session, campaign, questions, judge, chances, imported=imported, as_given=bool(chances))
    rows = list(weighted(found, factors))
    return Derived(
        labels=Labels.of(rows, num_classes=len(drawn), named=dict(enumerate(campaign.class_names))),
        drawn=drawn,
        answered=answered.sum(0),
        answer_count=answer_count,
        simulated_count=simulated_answers(session, campaign_id),
        is_unfinished=is_unfinished,
        imported_count=sum(row.imported for row in rows),
        by_belief_count=sum(bool(row.excluded) for row in rows),
        left_out_count=left_out,
        set_aside_count=len(session.scalars(pictures_set_aside(campaign_id)).all()),
    )


def class_factors(session: Session, campaign_id: UUID) -> NDArray[np.float64]:
    """(2, K) by which a label's weight is multiplied for its class, as `weighted` takes them.

    Ones once nothing waits.
    """
    campaign = session.get_one(Campaign, campaign_id)
    drawn = drawn_per_class(session, campaign_id)
    finished, _ = _standing(session, campaign_id)
    if finished >= campaign.question_count:
        return np.ones((2, len(drawn)))
    chances = chances_of(session, campaign, num_classes=len(drawn))
    if not chances:
        of_all = answered_per_class(session, campaign_id, num_classes=len(drawn))
        answered = np.stack([of_all, np.zeros_like(of_all)])
    else:
        rows = session.execute(question_answers(campaign_id))
        answered = _answered(((row.id, row.candidate_class) for row in rows), chances)
    return _factors(drawn, answered, chances, is_unfinished=True)


def _answered(rows: Iterable[tuple[int, int]], chances: Chances) -> NDArray[np.int64]:
    """(2, K) how many questions about each class have a yes or a no: uniform ones, and those by belief."""
    answered = np.zeros((2, len(chances.drawn)), np.int64)
    for id_, class_ in rows:
        answered[int(id_ in chances.by_question), class_] += 1
    return answered


def _factors(
    drawn: NDArray[np.int64], answered: NDArray[np.int64], chances: Chances, *, is_unfinished: bool
) -> NDArray[np.float64]:
    """(2, K), each kind of questions for itself: a later round that waits changes nothing of the first."""
    both = np.stack([drawn - chances.drawn, chances.drawn])  # (2, K)
    # Classes that were asked about less so far count for more, so that the labels stand for what was drawn.
    return both / np.maximum(answered, 1) if is_unfinished else np.ones(both.shape)


def _standing(session: Session, campaign_id: UUID) -> tuple[int, int]:
    """Questions that need no more answers, and live answers, "can't tell" included."""
    finished, answers = session.execute(
        select(
            func.coalesce(func.sum(Tally.finished), 0),
            func.coalesce(func.sum(ALL_ANSWERS), 0),
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
        select(func.coalesce(func.sum(ALL_ANSWERS), 0))
        .join(User, User.id == Tally.user_id)
        .where(Tally.campaign_id == campaign_id, User.is_simulated)
    )
    return int(session.scalar(query) or 0)
