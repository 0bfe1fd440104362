"""What people's answers say of a model's predictions: always from the answers that stand, never stored."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, Uuid, and_, case, column, func, select, table
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign, CampaignState
from app.evaluations.estimating import (
    Interval,
    Stratum,
    accuracy_interval,
    corrected_interval,
    stratified_interval,
)
from app.evaluations.judging import COUNTS, Cell, cells_of
from app.evaluations.models import EvaluatedImage, Evaluation
from clarinet.recipes.counting import many

# Of the registry, which builds on this feature: nothing of it may be imported here.
MODEL = table("model", column("id", Uuid), column("trial_id", Uuid))
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
        people: how many answered; simulated: of these, which are programs.
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
    simulated: int
    several: int
    unanimous: int
    unanimous_right: int
    classes: tuple[ClassResult, ...]
    known: Known
    is_over: bool

    @property
    def by_whom(self) -> str:
        """Who answered, in words."""
        return _by_whom(self.people, self.simulated)

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
    simulated: int  # of these, which are programs
    images: int  # judged
    sample: int  # to be judged in all
    is_over: bool

    @property
    def by_whom(self) -> str:
        """Who answered, in words."""
        return _by_whom(self.people, self.simulated)

    @property
    def in_short(self) -> str:
        """The same where there is little room."""
        return "by people" if self.people > self.simulated else "by simulated annotators"


def _by_whom(people: int, simulated: int) -> str:
    """ "4 people", and programs by their name: nobody shall take their word for people's."""
    real = people - simulated
    told = [many(real, "person", "people")] if real or not simulated else []
    return " and ".join([*told, *([many(simulated, "simulated annotator")] if simulated else [])])


def result_of(session: Session, evaluation: Evaluation) -> Result:
    """What is known of an evaluation."""
    return results_of(session, [evaluation])[evaluation.id]


def results_of(session: Session, evaluations: Sequence[Evaluation]) -> dict[UUID, Result]:
    """What is known of each, by id, in as many statements as of one."""
    ids = [evaluation.id for evaluation in evaluations]
    if not ids:
        return {}
    cells, people, known = cells_of(session, ids), _people(session, ids), _known(session, ids)
    campaign_ids = [evaluation.campaign_id for evaluation in evaluations if evaluation.campaign_id]
    open_ones = set(
        session.scalars(
            select(Campaign.id).where(Campaign.id.in_(campaign_ids), Campaign.state != CampaignState.CLOSED)
        )
    )
    return {
        evaluation.id: _result(
            evaluation,
            cells.get(evaluation.id, []),
            people.get(evaluation.id, (0, 0)),
            known.get(evaluation.id, Known()),
            is_closed=evaluation.campaign_id not in open_ones,
        )
        for evaluation in evaluations
    }


def _result(
    evaluation: Evaluation,
    cells: Sequence[Cell],
    people: tuple[int, int],
    known: Known,
    *,
    is_closed: bool,
) -> Result:
    images, right, wrong, several = _sums(cells, "images", "right", "wrong", "several")
    waiting = 0 if is_closed else sum(cell.unasked for cell in cells)
    is_even = not evaluation.known_count or right + wrong == images
    by_class = None if evaluation.strata is None else _strata_of(cells, evaluation.strata, is_even=is_even)
    return Result(
        right=right,
        wrong=wrong,
        untold=images - right - wrong - waiting,
        waiting=waiting,
        interval=_interval(cells, is_even=is_even, population=evaluation.population)
        if evaluation.strata is None
        else _interval_by_class(cells, evaluation.strata, by_class),
        corrected=None
        if not is_even or several
        else _corrected(
            ([Stratum(1, right, right + wrong)] if right + wrong else None)
            if evaluation.strata is None
            else by_class,
            known,
        ),
        people=people[0],
        simulated=people[1],
        several=several,
        unanimous=sum(cell.unanimous for cell in cells),
        unanimous_right=sum(cell.unanimous_right for cell in cells),
        classes=tuple(
            _of_class(name, class_, cells, evaluation, is_even=is_even)
            for class_, name in enumerate(evaluation.class_names)
        ),
        known=known,
        is_over=waiting == 0,
    )


def _interval(cells: Sequence[Cell], *, is_even: bool, population: int | None) -> Interval | None:
    """Of the share that is right, among so many pictures; None where nothing tells it.

    What nobody can tell is left out of the share, and counts as a picture that nobody was asked about: it may
    be right or wrong. So a share is counted, and not estimated, only where each picture was judged.

    Answers that were known before are about predictions that another model shares, which are right more often
    than the others. Unless every image is judged (`is_even`), both parts count by how many images they have.
    """
    strata = []
    for part in _parts(cells, is_even=is_even):
        images, right, judged = _sums(part, "images", "right", "judged")
        if not judged:
            return None
        strata.append(Stratum(images, right, judged))
    if len(strata) > 1:
        return stratified_interval(strata)
    if not strata:
        return None
    return accuracy_interval(strata[0].yes, strata[0].asked, population)


def _strata_of(
    cells: Sequence[Cell], strata: Sequence[Sequence[int]], *, is_even: bool
) -> list[Stratum] | None:
    """Where each class was drawn from by itself: each counts by its pictures in the target.

    A class of which nobody could tell a picture counts for nothing; while some are to be judged, nothing is
    told.
    """
    found = []
    for class_, (population, sampled, _) in enumerate(strata):
        own = [cell for cell in cells if cell.class_ == class_]
        for part in _parts(own, is_even=is_even):
            images, right, judged, unasked = _sums(part, "images", "right", "judged", "unasked")
            if judged:
                found.append(Stratum(population * images / sampled, right, judged))
            elif unasked:
                return None
    return found or None


def _interval_by_class(
    cells: Sequence[Cell], strata: Sequence[Sequence[int]], found: Sequence[Stratum] | None
) -> Interval | None:
    """Of the share that is right, of what is known by class."""
    if found is None:
        return None
    if all(sampled == has for has, sampled, _ in strata) and not sum(cell.unasked for cell in cells):
        right, judged = _sums(cells, "right", "judged")
        return accuracy_interval(right, judged, sum(has for has, _, _ in strata))
    return stratified_interval(found)


def _of_class(
    name: str, class_: int, cells: Sequence[Cell], evaluation: Evaluation, *, is_even: bool
) -> ClassResult:
    own = [cell for cell in cells if cell.class_ == class_]
    images, right, wrong = _sums(own, "images", "right", "wrong")
    population = None  # how many the target has is known of what was drawn class by class, or as a whole
    if evaluation.is_whole:
        population = images
    elif evaluation.strata is not None:
        population = evaluation.strata[class_][0]
    return ClassResult(name, images, right, wrong, _interval(own, is_even=is_even, population=population))


def _parts(cells: Sequence[Cell], *, is_even: bool) -> list[list[Cell]]:
    """Those whose answers were known apart from the others, unless that makes no difference."""
    if is_even:
        return [list(cells)] if cells else []
    parts = [[cell for cell in cells if cell.is_known is known] for known in (True, False)]
    return [part for part in parts if part]


def _sums(cells: Sequence[Cell], *names: str) -> list[int]:
    return [sum(getattr(cell, name) for cell in cells) for name in names]


def _corrected(parts: Sequence[Stratum] | None, known: Known) -> Interval | None:
    if not parts or not known.yes_asked or not known.no_asked:
        return None
    return corrected_interval(
        stratified_interval(parts) if len(parts) > 1 else accuracy_interval(parts[0].yes, parts[0].asked),
        gold_yes_right=known.yes_right,
        gold_yes_asked=known.yes_asked,
        gold_no_right=known.no_right,
        gold_no_asked=known.no_asked,
    )


def _known(session: Session, ids: Collection[UUID]) -> dict[UUID, Known]:
    """In the campaigns whose answers judge the images of each evaluation."""
    asked_in = (
        select(EvaluatedImage.evaluation_id, Question.campaign_id)
        .join(Question, EvaluatedImage.question_id == Question.id)
        .where(EvaluatedImage.evaluation_id.in_(ids))
        .distinct()
        .subquery()
    )
    rows = session.execute(
        select(
            asked_in.c.evaluation_id,
            Question.is_match,
            func.sum(_is(AnswerValue.YES)),
            func.sum(_is(AnswerValue.NO)),
        )
        .join(Question, Question.campaign_id == asked_in.c.campaign_id)
        .join(Answer, COUNTS)
        .where(Question.purpose == Purpose.GOLD, ~Question.is_set_aside)
        .group_by(asked_in.c.evaluation_id, Question.is_match)
    )
    said: dict[UUID, dict[bool, tuple[int, int]]] = {}
    for evaluation_id, is_match, yes, no in rows:
        said.setdefault(evaluation_id, {})[bool(is_match)] = (int(yes or 0), int(no or 0))
    found = {}
    for evaluation_id, counts in said.items():
        (right_yes, wrong_yes), (wrong_no, right_no) = counts.get(True, (0, 0)), counts.get(False, (0, 0))
        found[evaluation_id] = Known(right_yes, right_yes + wrong_yes, right_no, right_no + wrong_no)
    return found


def _is(value: AnswerValue) -> ColumnElement[int]:
    return case((and_(Answer.value == value, ~Answer.is_hasty), 1), else_=0)


def _people(session: Session, ids: Collection[UUID]) -> dict[UUID, tuple[int, int]]:
    """How many answered, and how many of these are programs."""
    rows = session.execute(
        select(
            EvaluatedImage.evaluation_id,
            func.count(Answer.user_id.distinct()),
            func.count(case((User.is_simulated, Answer.user_id)).distinct()),
        )
        .join(Question, Question.id == EvaluatedImage.question_id)
        .join(Answer, COUNTS)
        .join(User, User.id == Answer.user_id)
        .where(EvaluatedImage.evaluation_id.in_(ids))
        .group_by(EvaluatedImage.evaluation_id)
    )
    return {evaluation_id: (int(count), int(simulated)) for evaluation_id, count, simulated in rows}


def measured_by_people(session: Session, run_ids: Collection[UUID]) -> dict[UUID, Measured]:
    """Of runs whose predictions enough people judged, the newest evaluation that tells an accuracy."""
    return _measured(session, Evaluation.run_id, run_ids)


def models_by_people(session: Session, model_ids: Collection[UUID]) -> dict[UUID, Measured]:
    """The same of models; a run has one for each of its seeds, and people judged one of them."""
    return _measured(session, Evaluation.model_id, model_ids)


def trials_by_people(session: Session, trial_ids: Collection[UUID]) -> dict[UUID, Measured]:
    """The same of a run's seeds."""
    rows = session.execute(select(MODEL.c.id, MODEL.c.trial_id).where(MODEL.c.trial_id.in_(trial_ids)))
    trial_of = dict(rows.all())
    return {
        trial_of[model_id]: found for model_id, found in models_by_people(session, trial_of.keys()).items()
    }


def _measured(
    session: Session, of: InstrumentedAttribute[UUID], ids: Collection[UUID]
) -> dict[UUID, Measured]:
    rows = session.scalars(
        select(Evaluation).where(of.in_(ids)).order_by(Evaluation.created_at.desc(), Evaluation.id)
    ).all()
    results = results_of(session, rows)
    found: dict[UUID, Measured] = {}
    for evaluation in rows:
        result, judged_one = results[evaluation.id], getattr(evaluation, of.key)
        if judged_one in found or result.shown is None:
            continue
        if result.judged >= min(FEWEST, evaluation.sample_size):
            found[judged_one] = Measured(
                evaluation_id=evaluation.id,
                interval=result.shown,
                people=result.people,
                simulated=result.simulated,
                images=result.judged,
                sample=evaluation.sample_size,
                is_over=result.is_over,
            )
    return found
