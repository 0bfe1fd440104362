"""What people's answers say of a model's predictions: always from the answers that stand, never stored."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, func, select
from sqlalchemy.orm import Session

from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign, CampaignState
from app.evaluations.estimating import (
    Interval,
    Stratum,
    accuracy_interval,
    corrected_interval,
    stratified_interval,
)
from app.evaluations.judging import COUNTS, Image, images_judged, is_unasked, verdict_of
from app.evaluations.models import EvaluatedImage, Evaluation

FEWEST = 30  # judged images before a run's page tells an accuracy


@dataclass(frozen=True, slots=True)
class ClassResult:
    """Images that the model takes for one class."""

    name: str
    sampled: int
    right: int
    wrong: int
    interval: Interval | None  # of the share that is right; None before anybody judged one


@dataclass(frozen=True, slots=True)
class Known:
    """Known pictures: how often people were right where yes is, and where no is."""

    yes_right: int = 0
    yes_asked: int = 0
    no_right: int = 0
    no_asked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What is known so far.

    Args:
        right, wrong: images by what most people said of the prediction.
        untold: judged by nobody for good: people could not tell, were divided, or the picture cannot be used.
        waiting: to be judged yet.
        interval: of the accuracy; None before anybody judged an image that was not known before.
        corrected: the same with people's errors on known pictures taken into account, which makes it wider;
            None without enough of these, and where several people judge each image.
        people: how many answered.
        several: images that more than one person judged.
        unanimous: of these, on which all agreed; unanimous_right: that the prediction is right.
        classes: by predicted class.
        known: what known pictures tell of people.
        is_over: nothing more will be judged.
    """

    right: int
    wrong: int
    untold: int
    waiting: int
    interval: Interval | None
    corrected: Interval | None
    people: int
    several: int
    unanimous: int
    unanimous_right: int
    classes: tuple[ClassResult, ...]
    known: Known
    is_over: bool

    @property
    def judged(self) -> int:
        """Images that people judged."""
        return self.right + self.wrong

    @property
    def shown(self) -> Interval | None:
        """The accuracy to be told: the corrected one where there is one."""
        return self.corrected or self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run's accuracy as people measured it."""

    evaluation_id: UUID
    interval: Interval
    people: int
    images: int  # judged
    sample: int  # to be judged in all
    is_over: bool


def result_of(session: Session, evaluation: Evaluation) -> Result:
    """What is known of an evaluation."""
    rows = session.execute(images_judged(evaluation.id)).all()
    campaign = session.get(Campaign, evaluation.campaign_id) if evaluation.campaign_id else None
    is_closed = campaign is None or campaign.state is CampaignState.CLOSED
    verdicts = [verdict_of(row) for row in rows]
    right, wrong = verdicts.count(True), verdicts.count(False)
    waiting = 0 if is_closed else sum(map(is_unasked, rows))
    is_even = not evaluation.known_count or right + wrong == len(rows)
    several = [
        (row, found)
        for row, found in zip(rows, verdicts, strict=True)
        if not row.is_set_aside and row.yes + row.no > 1
    ]
    unanimous = [found for row, found in several if not row.yes or not row.no]
    known = _known(session, evaluation)
    return Result(
        right=right,
        wrong=wrong,
        untold=len(rows) - right - wrong - waiting,
        waiting=waiting,
        interval=_interval(rows, is_even=is_even),
        corrected=_corrected(right, right + wrong, known) if is_even and not several else None,
        people=_people(session, [evaluation.id]).get(evaluation.id, 0),
        several=len(several),
        unanimous=len(unanimous),
        unanimous_right=unanimous.count(True),
        classes=tuple(
            _of_class(name, [row for row in rows if row.class_ == class_], is_even=is_even)
            for class_, name in enumerate(evaluation.class_names)
        ),
        known=known,
        is_over=waiting == 0,
    )


def _interval(rows: Sequence[Image], *, is_even: bool) -> Interval | None:
    """Of the share that is right; None where nothing tells it.

    Answers that were known before are about predictions that another model shares, which are right more often
    than the others. Unless every image is judged (`is_even`), both parts count by how many images they have.
    """
    parts = (
        [list(rows)]
        if is_even
        else [[row for row in rows if row.is_known is known] for known in (True, False)]
    )
    strata = []
    for part in filter(None, parts):
        verdicts = [verdict_of(row) for row in part]
        right, judged = verdicts.count(True), len(part) - verdicts.count(None)
        if not judged:
            return None
        strata.append(Stratum(len(part), right, judged))
    if len(strata) > 1:
        return stratified_interval(strata)
    return accuracy_interval(strata[0].yes, strata[0].asked) if strata else None


def _of_class(name: str, rows: Sequence[Image], *, is_even: bool) -> ClassResult:
    verdicts = [verdict_of(row) for row in rows]
    return ClassResult(
        name, len(rows), verdicts.count(True), verdicts.count(False), _interval(rows, is_even=is_even)
    )


def _corrected(right: int, asked: int, known: Known) -> Interval | None:
    if not asked or not known.yes_asked or not known.no_asked:
        return None
    return corrected_interval(
        right,
        asked,
        gold_yes_right=known.yes_right,
        gold_yes_asked=known.yes_asked,
        gold_no_right=known.no_right,
        gold_no_asked=known.no_asked,
    )


def _known(session: Session, evaluation: Evaluation) -> Known:
    """In the campaigns whose answers judge the evaluation's images."""
    asked_in = (
        select(Question.campaign_id)
        .join(EvaluatedImage, EvaluatedImage.question_id == Question.id)
        .where(EvaluatedImage.evaluation_id == evaluation.id)
        .distinct()
    )
    rows = session.execute(
        select(Question.is_match, func.sum(_is(AnswerValue.YES)), func.sum(_is(AnswerValue.NO)))
        .join(Answer, COUNTS)
        .where(Question.campaign_id.in_(asked_in), Question.purpose == Purpose.GOLD, ~Question.is_set_aside)
        .group_by(Question.is_match)
    )
    said = {bool(is_match): (int(yes or 0), int(no or 0)) for is_match, yes, no in rows}
    (right_yes, wrong_yes), (wrong_no, right_no) = said.get(True, (0, 0)), said.get(False, (0, 0))
    return Known(right_yes, right_yes + wrong_yes, right_no, right_no + wrong_no)


def _is(value: AnswerValue) -> ColumnElement[int]:
    return case((and_(Answer.value == value, ~Answer.is_hasty), 1), else_=0)


def _people(session: Session, ids: Collection[UUID]) -> dict[UUID, int]:
    rows = session.execute(
        select(EvaluatedImage.evaluation_id, func.count(Answer.user_id.distinct()))
        .join(Question, Question.id == EvaluatedImage.question_id)
        .join(Answer, COUNTS)
        .where(EvaluatedImage.evaluation_id.in_(ids))
        .group_by(EvaluatedImage.evaluation_id)
    )
    return {evaluation_id: int(count) for evaluation_id, count in rows}


def measured_by_people(session: Session, run_ids: Collection[UUID]) -> dict[UUID, Measured]:
    """Of runs whose predictions enough people judged, the newest evaluation that tells an accuracy."""
    found: dict[UUID, Measured] = {}
    rows = session.scalars(
        select(Evaluation)
        .where(Evaluation.run_id.in_(run_ids))
        .order_by(Evaluation.created_at.desc(), Evaluation.id)
    )
    for evaluation in rows.all():
        if evaluation.run_id in found:
            continue
        result = result_of(session, evaluation)
        if result.judged >= min(FEWEST, evaluation.sample_size) and result.shown is not None:
            found[evaluation.run_id] = Measured(
                evaluation_id=evaluation.id,
                interval=result.shown,
                people=result.people,
                images=result.judged,
                sample=evaluation.sample_size,
                is_over=result.is_over,
            )
    return found
