"""What a question's answers say by its campaign's policy: majority, people's reliability, decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.orm import Session

from app.annotation.consensus import Verdict, verdict, weighed
from app.annotation.models import (
    OF_CLASS,
    Answer,
    AnswerValue,
    Participant,
    Purpose,
    Question,
    Tally,
)
from app.campaigns.by_belief import by_belief_numbers
from app.campaigns.confirming import Confirming
from app.campaigns.models import Campaign, Consensus
from app.datasets.models import Example
from app.quality import dependence, looking
from app.quality.believed import ByBelief, weigh_answers
from app.quality.claims import Claims, claims_of
from app.quality.dawid_skene import INDEPENDENT, Dependence
from app.quality.models import Decision
from app.quality.uncounted import by_belief, hasty, person, set_aside
from clarinet.files.label_table import LabelKind

# question id, example id, position, candidate class, yes, no, one of those who answered (see `person`)
AnsweredQuestion = Row[int, int, int, int, int, int, str]


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """What the model of `dawid_skene` says of a campaign's answers."""

    places: dict[str, int]  # P people, as `person` writes them
    sensitivity: NDArray[np.float64]  # (P,)
    specificity: NDArray[np.float64]  # (P,)
    prior: float
    question_ids: NDArray[np.int64]  # (S,) with several answers, ascending
    probability: NDArray[np.float64]  # (S,) that yes is right
    dependence: Dependence = INDEPENDENT  # how far people err together
    evidence: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # (P,) see `looking`
    answered: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # (P,) yes and no
    single: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # (P,) that stand alone
    claims: Claims | None = None

    def probability_yes(self, row: AnsweredQuestion) -> float | None:
        """That yes is right; None for a question or a person that came after the model was fitted."""
        if row.yes + row.no == 1:
            return (
                None if row.by not in self.places else self.alone(self.places[row.by], is_yes=bool(row.yes))
            )
        place = int(np.searchsorted(self.question_ids, row.id))
        if place == len(self.question_ids) or self.question_ids[place] != row.id:
            return None
        return float(self.probability[place])

    def rates(self) -> dict[str, tuple[float, float, float, int, int]]:
        """By person: sensitivity, specificity, evidence, answers, and how many of them stand alone."""
        return {
            by: (
                float(self.sensitivity[place]),
                float(self.specificity[place]),
                float(self.evidence[place]),
                int(self.answered[place]),
                int(self.single[place]),
            )
            for by, place in self.places.items()
        }

    def alone(self, place: int, *, is_yes: bool) -> float:
        """That yes is right where one person answered and nobody else."""
        sensitivity, specificity = float(self.sensitivity[place]), float(self.specificity[place])
        if_yes = self.prior * (sensitivity if is_yes else 1 - sensitivity)
        if_no = (1 - self.prior) * (1 - specificity if is_yes else specificity)
        return if_yes / (if_yes + if_no)


@dataclass(frozen=True, slots=True)
class Judge:
    """A campaign's rule for turning the answers to one question into a label."""

    confirm_yes: bool
    num_classes: int
    reliability: Reliability | None  # None: majority
    decisions: dict[int, AnswerValue]  # by question id; they stand above answers
    # Questions by a model's belief: the model of people rests on questions that match once in K.
    by_belief: dict[int, ByBelief] = field(default_factory=dict)

    def __call__(self, row: AnsweredQuestion) -> Verdict:
        """The label of one question."""
        decided = self.decisions.get(row.id)
        if decided is not None:
            kind = {AnswerValue.YES: LabelKind.TRUE, AnswerValue.NO: LabelKind.COMPLEMENTARY}.get(decided)
            return Verdict(kind, row.yes + row.no, 1.0 if kind else 0.0)
        found = verdict(row.yes, row.no, confirm_yes=self.confirm_yes)
        if self.reliability is None or found.kind is None:
            return found
        if row.id in self.by_belief:
            return self.by_belief[row.id].weigh(found, num_classes=self.num_classes)
        probability = self.reliability.probability_yes(row)
        if probability is None:  # its first answer came since
            return Verdict(None, found.answers, 0.0)
        return weighed(found, probability, num_classes=self.num_classes)


def judge_of(
    session: Session, campaign: Campaign, *, num_classes: int, fitted: Reliability | None = None
) -> Judge:
    """The rule of a campaign, with what its answers say about people so far.

    `fitted`: what `reliability` gave in this very transaction, so that it need not be fitted twice.
    """
    people = None
    if campaign.consensus is Consensus.DAWID_SKENE:
        people = fitted or reliability(session, campaign, num_classes=num_classes)
    return Judge(
        confirm_yes=Confirming(campaign.confirm_yes, campaign.overlap, num_classes).of_yes,
        num_classes=num_classes,
        reliability=people,
        decisions=live_decisions(session, campaign.id),
        by_belief=_by_belief(session, campaign, people) if people else {},
    )


def _by_belief(session: Session, campaign: Campaign, people: Reliability) -> dict[int, ByBelief]:
    numbers = by_belief_numbers(session, campaign.id)
    if not numbers:
        return {}
    answers = (
        select(Answer.question_id, person(), _IS_YES, Question.probability)
        .join(Question, Question.id == Answer.question_id)
        .where(*_enters(campaign), Question.purpose == Purpose.LABELLING, Question.drawing.in_(numbers))
    )
    rates = {by: rates[:2] for by, rates in people.rates().items() if rates[3]}  # who answered others, too
    return weigh_answers(session.connection().execute(answers), rates)


def live_decisions(session: Session, campaign_id: UUID) -> dict[int, AnswerValue]:
    """What admins settled, by question id."""
    rows = session.execute(
        select(Decision.question_id, Decision.value).where(
            decides_in(campaign_id), Decision.superseded_at.is_(None)
        )
    )
    return {row.question_id: row.value for row in rows}


def decides_in(campaign_id: UUID) -> ColumnElement[bool]:
    """Whether a decision is about a question of this campaign.

    A look for each decision: of a join SQLite makes reading all questions of the campaign.
    """
    campaign = select(Question.campaign_id).where(Question.id == Decision.question_id).correlate(Decision)
    return campaign.scalar_subquery() == campaign_id


def reliability(session: Session, campaign: Campaign, *, num_classes: int) -> Reliability:
    """Fit the model to the yes and no answers of the campaign, gold included.

    Most questions have one answer, and come counted by person. Each person's sums are kept with every answer;
    the answers to questions that several people are asked are taken off. So a million answers cost what their
    disagreements cost.
    """
    places: dict[str, int] = {}
    believed = by_belief_numbers(session, campaign.id)
    asked_several = ASKED_SEVERAL & Question.drawing.not_in(believed) if believed else ASKED_SEVERAL
    several = _table(session, _answers_to(campaign, asked_several), places)
    gold = _table(session, _answers_to(campaign, _IS_GOLD), places)
    table = np.concatenate([_alone(session, campaign, several, places, believed), several, gold])
    ids, first, questions = np.unique(table["question"], return_index=True, return_inverse=True)
    people = table["person"].astype(np.int64)
    prior, known = 1 / num_classes, table["known"][first].astype(np.float64)
    times = table["times"][first].astype(np.float64)
    answers = questions.astype(np.int64), people, table["is_yes"]
    found = dependence.fit(*answers, prior=prior, known=known, num_people=len(places), times=times)
    is_several = ids >= 0
    is_drawn = is_several & np.isnan(known)
    yes = np.bincount(questions, table["is_yes"], len(ids))[is_drawn].astype(np.int64)
    total = np.bincount(questions, minlength=len(ids))[is_drawn]
    singles = ids < 0
    is_yes_alone = table["is_yes"][first][singles].astype(np.int64)
    return Reliability(
        places=places,
        sensitivity=found.sensitivity,
        specificity=found.specificity,
        prior=prior,
        question_ids=ids[is_several],
        probability=found.probability_yes[is_several],
        dependence=found.dependence,
        evidence=looking.evidence(*answers, prior=prior, known=known, found=found, times=times),
        answered=_counted(people, table["times"], len(places)),
        single=_counted(people[table["question"] < 0], table["times"][table["question"] < 0], len(places)),
        claims=claims_of(
            found,
            _counted(people, table["times"], len(places)),
            yes=np.concatenate([yes, is_yes_alone]),
            no=np.concatenate([total - yes, 1 - is_yes_alone]),
            probability=np.concatenate([found.probability_yes[is_drawn], found.probability_yes[singles]]),
            times=np.concatenate([np.ones(len(yes)), times[singles]]),
            confirm_yes=Confirming(campaign.confirm_yes, campaign.overlap, num_classes).of_yes,
        ),
    )


def _counted(people: NDArray[np.int64], times: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """(P,) answers of each person."""
    return np.bincount(people, times, count).astype(np.int64)


_IS_YES = case((and_(Answer.value == AnswerValue.YES, ~Answer.is_hasty), 1), else_=0)
_ROW = [
    ("question", np.int64),
    ("person", np.int32),
    ("is_yes", np.bool_),
    ("known", np.float32),
    ("times", np.int64),
]


def _enters(campaign: Campaign) -> tuple[ColumnElement[bool], ...]:
    """Which answers say something about people."""
    return (
        Question.campaign_id == campaign.id,
        Question.purpose != Purpose.EVALUATION,
        Answer.superseded_at.is_(None),
        Answer.value.in_(OF_CLASS),
        ~Answer.is_hasty,
        ~Question.is_set_aside,
        Answer.user_id.not_in(left_out(campaign.id)),
    )


# Literals, because a partial index is used for them only. Known pictures ask for no second person.
ASKED_SEVERAL = Question.slots > literal_column("1")
_IS_GOLD = Question.purpose == literal_column("'gold'")


def _answers_to(campaign: Campaign, which: ColumnElement[bool]) -> Select[int, str, int, int | None]:
    """The answers to some questions, as _table takes them."""
    return (
        select(Answer.question_id, person(), _IS_YES, cast(Question.is_match, Integer))
        .join(Question, Question.id == Answer.question_id)
        .where(*_enters(campaign), which)
    )


def _alone(
    session: Session,
    campaign: Campaign,
    several: NDArray[np.void],
    places: dict[str, int],
    believed: Sequence[int],
) -> NDArray[np.void]:
    """Everybody's answers but those to questions that several people are asked, each kind as one row.

    In an evaluation there are none: yes is as common as the model is right, so that known pictures alone tell
    of people.

    Nobody else answered these questions, so that all of a person's yes tell the same, and so do all no. Those
    of the drawings `believed` are left out: yes is right more often there than once in K.
    """
    if campaign.is_evaluation:
        return np.zeros(0, dtype=_ROW)
    sums = select(cast(Tally.user_id, String), func.sum(Tally.no), func.sum(Tally.yes)).where(
        Tally.campaign_id == campaign.id, Tally.user_id.not_in(left_out(campaign.id))
    )
    told = {
        places.setdefault(by, len(places)): counts
        for by, *counts in session.connection().execute(
            sums.group_by(Tally.user_id).having(func.sum(Tally.yes + Tally.no) > 0)
        )
    }
    alone = np.zeros((len(places), 2), dtype=np.int64)  # (P, 2) no and yes
    for place, counts in told.items():
        alone[place] = counts
    np.subtract.at(alone, (several["person"], several["is_yes"].astype(np.int64)), 1)
    others = [by_belief(campaign.id, believed)] if believed else []
    for said_nothing in (hasty(campaign.id), set_aside(campaign.id), *others):
        for by, said_yes, count in session.connection().execute(said_nothing):
            if by in places:
                alone[places[by], int(said_yes)] -= count
    people, values = np.nonzero(alone > 0)
    table = np.zeros(len(people), dtype=_ROW)
    table["question"] = -1 - np.arange(len(people))  # each stands for many questions
    table["person"], table["is_yes"], table["known"] = people, values, np.nan
    table["times"] = alone[people, values]
    return table


def _table(
    session: Session, query: Select[int, str, int, int | None], places: dict[str, int]
) -> NDArray[np.void]:
    """Rows as in _ROW; `places` gets the people that are new in it."""
    rows = session.connection().execute(query, execution_options={"yield_per": 20_000})
    return np.fromiter(
        (
            (
                question_id,
                places.setdefault(by, len(places)),
                said_yes,
                np.nan if is_match is None else is_match,
                1,
            )
            for question_id, by, said_yes, is_match in rows
        ),
        dtype=_ROW,
    )


def left_out(campaign_id: UUID) -> Select[UUID]:
    """Ids of the people whose answers make no labels."""
    return select(Participant.user_id).where(Participant.campaign_id == campaign_id, Participant.is_left_out)


def yes_and_no() -> tuple[ColumnElement[int], ColumnElement[int]]:
    """How many of a question's answers are yes, and how many no."""
    return func.sum(_IS_YES), func.sum(
        case((and_(Answer.value == AnswerValue.NO, ~Answer.is_hasty), 1), else_=0)
    )


def question_answers(campaign_id: UUID) -> Select[int, int, int, int, int, int, str]:
    """Questions with a yes, a no or a decision, by position, as rows of AnsweredQuestion."""
    yes, no = yes_and_no()
    decided = select(Decision.question_id).where(Decision.superseded_at.is_(None))
    return (
        select(
            Question.id,
            Question.example_id,
            Example.position.label("position"),
            Question.candidate_class,
            yes.label("yes"),
            no.label("no"),
            func.min(person()).label("by"),
        )
        .join(Example, Example.id == Question.example_id)
        .join(Answer, Answer.question_id == Question.id)
        .where(
            Question.campaign_id == campaign_id,
            Question.purpose == Purpose.LABELLING,
            ~Question.is_set_aside,
            Answer.superseded_at.is_(None),
            or_(Answer.user_id.not_in(left_out(campaign_id)), Question.id.in_(decided)),
            or_(and_(Answer.value.in_(OF_CLASS), ~Answer.is_hasty), Question.id.in_(decided)),
        )
        .group_by(Question.id, Question.example_id, Example.position, Question.candidate_class)
        .order_by(Example.position, Question.id)
    )
