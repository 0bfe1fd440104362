"""Which questions have no label, or one in doubt, and get no more answers: worked out from all that can be.

These are finished ones, and those that wait in vain because everybody at work has answered them, or because
the campaign is closed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import ColumnElement, CompoundSelect, Select, exists, func, literal_column, or_, select, union
from sqlalchemy.orm import Session

from app.annotation import service as annotation
from app.annotation.consensus import MAX_SLOTS, Verdict, verdict, weighed, wrong
from app.annotation.models import OF_CLASS, Answer, Purpose, Question
from app.campaigns.by_belief import by_belief_numbers
from app.campaigns.models import Campaign, CampaignState
from app.datasets.models import Example
from app.quality.judging import (
    ASKED_SEVERAL,
    Judge,
    Reliability,
    judge_of,
    left_out,
    question_answers,
    yes_and_no,
)
from app.quality.models import Decision
from app.quality.uncounted import person
from clarinet.files.label_table import LabelKind

# A label is in doubt if it is wrong with a larger probability than this.
DOUBTFUL_YES = 0.05
DOUBTFUL = 0.4  # of that of a class that nobody was asked about, 1 / K; of a yes, too, where that is more


# As in the partial indexes.
_UNSURE = Answer.value == literal_column("'unsure'")
_UNUSABLE = Answer.value == literal_column("'unusable'")


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A finished question whose label is missing or in doubt."""

    id: int
    example_id: int
    position: int
    candidate_class: int
    yes: int
    no: int
    kind: LabelKind | None
    weight: float  # of the label; 0 without one
    may_be_asked: bool = True  # of one more person at work
    unsure: int = 0  # these three stand in what is shown alone
    unusable: int = 0
    uncounted: int = 0  # yes and no of people left out, and hasty ones

    @property
    def answers(self) -> int:
        """Yes and no."""
        return self.yes + self.no


def open_questions(
    session: Session, campaign: Campaign, *, fitted: Reliability | None = None
) -> list[OpenQuestion]:
    """Questions that get no more answers without a label, or with one in doubt: most doubtful first.

    `campaign` has its classes. Takes as long as reading what several people were asked. `fitted`: as in
    `judge_of`.
    """
    judge = judge_of(session, campaign, num_classes=campaign.num_classes, fitted=fitted)
    people = annotation.people_at_work(session, campaign.id)
    is_over = or_(~Question.is_waiting, annotation.nobody_is_left(campaign, Question.id, people))
    found = [*_disputed(session, campaign, judge, is_over), *_untold(session, campaign, is_over)]
    asked_of_all = _asked_of_all(session, campaign, people)
    in_order = sorted(found, key=lambda question: (question.weight, question.position, question.id))
    return [
        replace(question, may_be_asked=question.answers < MAX_SLOTS and not asked_of_all(question.id))
        for question in in_order
    ]


def _asked_of_all(session: Session, campaign: Campaign, people: Collection[UUID]) -> Callable[[int], bool]:
    """Whether all these people have answered a question that is in doubt."""
    if len(people) <= 1 or campaign.state is CampaignState.CLOSED:
        return lambda _: True  # whoever is alone answered all that has answers
    all_answered = annotation.is_asked_of_all(Question.id, people)
    in_vain = Question.id.in_(_asked_in_vain())
    here = select(Question.id).where(Question.campaign_id == campaign.id, all_answered)
    found = {id_ for which in (ASKED_SEVERAL, in_vain) for id_ in session.scalars(here.where(which))}
    return found.__contains__


def _asked_in_vain(*more: Select[int]) -> CompoundSelect[int]:
    """Of all campaigns, the questions to which somebody said neither yes nor no; and more."""
    said = (
        select(Answer.question_id).where(which, Answer.superseded_at.is_(None))
        for which in (_UNSURE, _UNUSABLE)
    )
    return union(*said, *more)


def is_doubtful(given: Verdict, *, num_classes: int, prior: float | None = None) -> bool:
    """Whether one more person should be asked, or there is no label at all. `prior`: as in `weighed`."""
    allowed = DOUBTFUL / num_classes
    if given.kind is LabelKind.TRUE:
        allowed = max(allowed, DOUBTFUL_YES)
    return given.kind is None or wrong(given, num_classes=num_classes, prior=prior) > allowed


def _disputed(
    session: Session, campaign: Campaign, judge: Judge, is_over: ColumnElement[bool]
) -> Iterator[OpenQuestion]:
    believed = by_belief_numbers(session, campaign.id)
    for query in _perhaps_disputed(campaign, judge, is_over, believed):
        for row in session.execute(query.execution_options(yield_per=5_000)):
            given = judge(row)
            prior = judge.by_belief[row.id].prior if row.id in judge.by_belief else None
            if row.id not in judge.decisions and is_doubtful(
                given, num_classes=campaign.num_classes, prior=prior
            ):
                yield OpenQuestion(
                    row.id,
                    row.example_id,
                    row.position,
                    row.candidate_class,
                    row.yes,
                    row.no,
                    given.kind,
                    given.weight,
                )


def _perhaps_disputed(
    campaign: Campaign, judge: Judge, is_over: ColumnElement[bool], believed: Sequence[int]
) -> Iterator[Select[int, int, int, int, int, int, str]]:
    """Without those, nearly all, to which one person said no who is not doubted; of two classes, or yes.

    What one person's word is worth in the drawings `believed`, each question says for itself.
    """
    finished = question_answers(campaign.id).where(is_over).order_by(None)
    fitted = judge.reliability
    # A yes asks for a second person, so that only a no stands alone; between two classes both may.
    alone = (False, True) if campaign.confirming.of_part else (False,)
    doubted = (
        [by for by, place in fitted.places.items() if any(_is_doubted(judge, place, is_yes=x) for x in alone)]
        if fitted
        else []
    )
    by_belief = Question.drawing.in_(believed if fitted else ())
    if campaign.confirming.of_yes or campaign.confirming.of_part:
        yield finished.where(ASKED_SEVERAL)
        if doubted or (believed and fitted):
            yield finished.where(~ASKED_SEVERAL, or_(Answer.user_id.in_(map(UUID, doubted)), by_belief))
    else:
        yield finished.having(
            (func.count() > 1)
            | (yes_and_no()[0] > 0)
            | func.min(person()).in_(doubted)
            | func.min(Question.drawing).in_(believed if fitted else ())
        )


def _is_doubted(judge: Judge, place: int, *, is_yes: bool) -> bool:
    """Whether the label of a question is in doubt to which only this person answered, and so."""
    assert judge.reliability is not None
    alone = judge.reliability.alone(place, is_yes=is_yes)
    said = verdict(int(is_yes), int(not is_yes), confirm_yes=judge.confirm_yes)
    given = weighed(said, alone, num_classes=judge.num_classes)
    return is_doubtful(given, num_classes=judge.num_classes)


def _untold(session: Session, campaign: Campaign, is_over: ColumnElement[bool]) -> Iterator[OpenQuestion]:
    """Questions to which nobody asked could say yes or no, or whose answers are all left out."""
    not_counted = select(Answer.question_id).where(Answer.user_id.in_(left_out(campaign.id)))
    told = exists().where(
        Answer.question_id == Question.id,
        Answer.superseded_at.is_(None),
        Answer.value.in_(OF_CLASS),
        ~Answer.is_hasty,
        Answer.user_id.not_in(left_out(campaign.id)),
    )
    decided = exists().where(Decision.question_id == Question.id, Decision.superseded_at.is_(None))
    rows = session.execute(
        select(Question.id, Question.example_id, Example.position, Question.candidate_class)
        .join(Example, Example.id == Question.example_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
            ~Question.is_set_aside,
            is_over,
            Question.id.in_(_asked_in_vain(not_counted)),
            ~told,
            ~decided,
        )
    )
    for id_, example_id, position, candidate_class in rows:
        yield OpenQuestion(id_, example_id, position, candidate_class, 0, 0, None, 0.0)
