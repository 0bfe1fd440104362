"""What a question's answers say by its campaign's policy: majority, people's reliability, decisions."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, Row, Select, String, case, func, or_, select, type_coerce
from sqlalchemy.orm import Session

from app.annotation.consensus import LabelKind, Verdict, verdict, weighed
from app.annotation.models import Answer, AnswerValue, Participant, Purpose, Question
from app.campaigns.models import Campaign, Consensus
from app.datasets.models import Example
from app.quality import dawid_skene
from app.quality.models import Decision

# question id, example id, position, candidate class, yes, no
AnsweredQuestion = Row[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """What Dawid and Skene's model says of a campaign's answers."""

    question_ids: NDArray[np.int64]  # (Q,) with a yes or a no, ascending
    user_ids: tuple[UUID, ...]  # (P,)
    answers: NDArray[np.int64]  # (P,) yes/no answers by each person
    estimate: dawid_skene.Estimate

    def probability_yes(self, question_id: int) -> float | None:
        """That yes is right; None for a question that had no answer when the model was fitted."""
        place = int(np.searchsorted(self.question_ids, question_id))
        if place == len(self.question_ids) or self.question_ids[place] != question_id:
            return None
        return float(self.estimate.probability_yes[place])


@dataclass(frozen=True, slots=True)
class Judge:
    """A campaign's rule for turning the answers to one question into a label."""

    confirm_yes: bool
    num_classes: int
    reliability: Reliability | None  # None: majority
    decisions: dict[int, AnswerValue]  # by question id; they stand above answers

    def __call__(self, row: AnsweredQuestion) -> Verdict:
        """The label of one question."""
        decided = self.decisions.get(row.id)
        if decided is not None:
            kind = {AnswerValue.YES: LabelKind.TRUE, AnswerValue.NO: LabelKind.COMPLEMENTARY}.get(decided)
            return Verdict(kind, row.yes + row.no, 1.0 if kind else 0.0)
        found = verdict(row.yes, row.no, confirm_yes=self.confirm_yes)
        if self.reliability is None or found.kind is None:
            return found
        probability = self.reliability.probability_yes(row.id)
        if probability is None:  # its first answer came since
            return Verdict(None, found.answers, 0.0)
        return weighed(found, probability, num_classes=self.num_classes)


def judge_of(session: Session, campaign: Campaign, *, num_classes: int) -> Judge:
    """The rule of a campaign, with what its answers say about people so far."""
    by_people = campaign.consensus is Consensus.DAWID_SKENE
    return Judge(
        confirm_yes=campaign.confirm_yes,
        num_classes=num_classes,
        reliability=reliability(session, campaign, num_classes=num_classes) if by_people else None,
        decisions=live_decisions(session, campaign.id),
    )


def live_decisions(session: Session, campaign_id: UUID) -> dict[int, AnswerValue]:
    """What admins settled, by question id."""
    rows = session.execute(
        select(Decision.question_id, Decision.value)
        .join(Question, Question.id == Decision.question_id)
        .where(Question.campaign_id == campaign_id, Decision.superseded_at.is_(None))
    )
    return {row.question_id: row.value for row in rows}


def reliability(session: Session, campaign: Campaign, *, num_classes: int) -> Reliability:
    """Fit the model to the yes and no answers of the campaign, gold included: about a second per million.

    Memory: about 60 bytes per answer.
    """
    # Plain values as the driver gives them: mapped ones take three times as long as the query.
    is_yes = case((Answer.value == AnswerValue.YES, 1), else_=0)
    query = (
        select(
            Answer.question_id,
            type_coerce(Answer.user_id, String),
            is_yes,
            type_coerce(Question.is_match, Integer),
        )
        .join(Question, Question.id == Answer.question_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose != Purpose.EVALUATION,
            Answer.superseded_at.is_(None),
            Answer.value != AnswerValue.UNSURE,
            Answer.user_id.not_in(left_out(campaign.id)),
        )
    )
    rows = session.connection().execute(query, execution_options={"yield_per": 20_000})
    places: dict[str, int] = {}
    dtype = [("question", np.int64), ("person", np.int32), ("is_yes", np.bool_), ("known", np.float32)]
    table = np.fromiter(
        (
            (
                question_id,
                places.setdefault(user_id, len(places)),
                said_yes,
                np.nan if is_match is None else is_match,
            )
            for question_id, user_id, said_yes, is_match in rows
        ),
        dtype=dtype,
    )
    ids, first, questions = np.unique(table["question"], return_index=True, return_inverse=True)
    people = table["person"].astype(np.int64)
    found = dawid_skene.estimate(
        questions.astype(np.int64),
        people,
        table["is_yes"],
        prior=1 / num_classes,
        known=table["known"][first].astype(np.float64),
        num_people=len(places),
    )
    user_ids = tuple(UUID(str(user_id)) for user_id in places)  # digits in SQLite, an object in PostgreSQL
    return Reliability(ids, user_ids, np.bincount(people, minlength=len(places)), found)


def left_out(campaign_id: UUID) -> Select[UUID]:
    """Ids of the people whose answers make no labels."""
    return select(Participant.user_id).where(Participant.campaign_id == campaign_id, Participant.is_left_out)


def question_answers(campaign_id: UUID) -> Select[int, int, int, int, int, int]:
    """Questions with a yes, a no or a decision, by position: id, example id, position, class, yes, no."""
    yes = func.sum(case((Answer.value == AnswerValue.YES, 1), else_=0))
    no = func.sum(case((Answer.value == AnswerValue.NO, 1), else_=0))
    decided = (
        select(Decision.question_id)
        .join(Question, Question.id == Decision.question_id)
        .where(Question.campaign_id == campaign_id, Decision.superseded_at.is_(None))
    )
    return (
        select(
            Question.id,
            Question.example_id,
            Example.position.label("position"),
            Question.candidate_class,
            yes.label("yes"),
            no.label("no"),
        )
        .join(Example, Example.id == Question.example_id)
        .join(Answer, Answer.question_id == Question.id)
        .where(
            Question.campaign_id == campaign_id,
            Question.purpose == Purpose.LABELLING,
            Answer.superseded_at.is_(None),
            or_(Answer.user_id.not_in(left_out(campaign_id)), Question.id.in_(decided)),
            or_(Answer.value != AnswerValue.UNSURE, Question.id.in_(decided)),
        )
        .group_by(Question.id, Question.example_id, Example.position, Question.candidate_class)
        .order_by(Example.position, Question.id)
    )
