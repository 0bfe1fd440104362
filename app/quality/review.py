"""Questions that people's answers leave open or in doubt: asked again, or settled by an admin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, exists, func, literal_column, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.consensus import MAX_SLOTS, LabelKind, Verdict, verdict, weighed
from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.campaigns.models import Campaign
from app.campaigns.noting import note
from app.datasets.models import Example
from app.journal.models import Action
from app.quality.errors import AlreadyDecided, DecisionNotFound, QuestionNotFound, QuestionStillAsked
from app.quality.judging import (
    ASKED_SEVERAL,
    Judge,
    judge_of,
    left_out,
    person,
    question_answers,
    yes_and_no,
)
from app.quality.models import Decision

# A label is in doubt if it is wrong with a larger probability than this.
DOUBTFUL_YES = 0.05
DOUBTFUL_NO = 0.4  # of that of a class that nobody was asked about, 1 / K


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

    @property
    def answers(self) -> int:
        """Yes and no."""
        return self.yes + self.no


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """A decision that stands."""

    id: int
    question_id: int
    example_id: int
    candidate_class: int
    value: AnswerValue
    by_name: str
    created_at: datetime


def open_questions(session: Session, campaign: Campaign) -> list[OpenQuestion]:
    """Finished questions without a label, or with one in doubt: most doubtful first.

    `campaign` has its classes. Takes as long as reading what several people were asked.
    """
    found = [*_disputed(session, campaign), *_untold(session, campaign)]
    return sorted(found, key=lambda question: (question.weight, question.position, question.id))


def is_doubtful(given: Verdict, *, num_classes: int) -> bool:
    """Whether one more person should be asked, or there is no label at all."""
    allowed = DOUBTFUL_YES if given.kind is LabelKind.TRUE else DOUBTFUL_NO / num_classes
    return given.kind is None or 1 - given.weight > allowed


def _disputed(session: Session, campaign: Campaign) -> Iterator[OpenQuestion]:
    judge = judge_of(session, campaign, num_classes=campaign.num_classes)
    for query in _perhaps_disputed(campaign, judge):
        for row in session.execute(query.execution_options(yield_per=5_000)):
            given = judge(row)
            if row.id not in judge.decisions and is_doubtful(given, num_classes=campaign.num_classes):
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
    campaign: Campaign, judge: Judge
) -> Iterator[Select[int, int, int, int, int, int, str]]:
    """Finished questions without those, nearly all, to which one person said no who is not doubted."""
    finished = question_answers(campaign.id).where(~Question.is_waiting).order_by(None)
    fitted = judge.reliability
    doubted = [by for by, place in fitted.places.items() if _is_doubted(judge, place)] if fitted else []
    if campaign.confirm_yes:  # a yes asks for a second person, so that only a no stands alone
        yield finished.where(ASKED_SEVERAL)
        if doubted:
            yield finished.where(~ASKED_SEVERAL, Answer.user_id.in_(map(UUID, doubted)))
    else:
        yield finished.having((func.count() > 1) | (yes_and_no()[0] > 0) | func.min(person()).in_(doubted))


def _is_doubted(judge: Judge, place: int) -> bool:
    """Whether the label of a question is in doubt to which only this person said no."""
    assert judge.reliability is not None
    alone = judge.reliability.alone(place, is_yes=False)
    given = weighed(verdict(0, 1, confirm_yes=judge.confirm_yes), alone, num_classes=judge.num_classes)
    return is_doubtful(given, num_classes=judge.num_classes)


def _untold(session: Session, campaign: Campaign) -> Iterator[OpenQuestion]:
    """Questions to which everybody asked said "can't tell", or whose answers are all left out."""
    asked_in_vain = select(Answer.question_id).where(
        # As in the partial index.
        Answer.value == literal_column("'unsure'"),
        Answer.superseded_at.is_(None),
    )
    not_counted = select(Answer.question_id).where(Answer.user_id.in_(left_out(campaign.id)))
    told = exists().where(
        Answer.question_id == Question.id,
        Answer.superseded_at.is_(None),
        Answer.value != AnswerValue.UNSURE,
        Answer.user_id.not_in(left_out(campaign.id)),
    )
    decided = exists().where(Decision.question_id == Question.id, Decision.superseded_at.is_(None))
    rows = session.execute(
        select(Question.id, Question.example_id, Example.position, Question.candidate_class)
        .join(Example, Example.id == Question.example_id)
        .where(
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
            ~Question.is_waiting,
            Question.id.in_(asked_in_vain.union(not_counted)),
            ~told,
            ~decided,
        )
    )
    for id_, example_id, position, candidate_class in rows:
        yield OpenQuestion(id_, example_id, position, candidate_class, 0, 0, None, 0.0)


def most_doubtful(session: Session, campaign: Campaign, *, count: int) -> list[int]:
    """Ids of the `count` most doubtful questions that more people may be asked; `campaign` has its classes.

    May take as long as a page of `open_questions`: give a session that only looks.
    """
    doubtful = [question for question in open_questions(session, campaign) if question.answers < MAX_SLOTS]
    return sorted(question.id for question in doubtful[:count])


def ask_again(
    session: Session, campaign: Campaign, question_ids: Sequence[int], *, by: User, now: datetime
) -> int:
    """Ask one more person about each of these; gives about how many.

    Questions that wait or are settled by now, or have MAX_SLOTS answers, stay as they are.

    Raises:
        NotAllowed: `by` is no admin.
        CampaignNotOpen: the campaign takes no answers.
    """
    accounts.require_admin(by)
    settled = set(
        session.scalars(
            select(Decision.question_id).where(
                Decision.question_id.in_(question_ids), Decision.superseded_at.is_(None)
            )
        )
    )
    asked = annotation.wait_again(
        session, campaign, [id_ for id_ in question_ids if id_ not in settled], by=by, now=now
    )
    note(session, Action.ASKED_AGAIN, campaign, by=by, details={"questions": asked})
    return asked


def decide(
    session: Session, campaign: Campaign, question_id: int, value: AnswerValue, *, by: User, now: datetime
) -> Decision:
    """Settle a question in everybody's place; "unsure" means that nobody can tell, so it has no label.

    Raises:
        NotAllowed: `by` is no admin.
        QuestionNotFound: the campaign has no such labelling question.
        QuestionStillAsked: people are still being asked.
        AlreadyDecided: a decision stands; it must be taken back first.
    """
    accounts.require_admin(by)
    is_waiting = session.scalar(
        select(Question.is_waiting).where(
            Question.id == question_id,
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
        )
    )
    if is_waiting is None:
        raise QuestionNotFound
    if is_waiting:
        raise QuestionStillAsked
    decision = Decision(question_id=question_id, user_id=by.id, value=value, created_at=now)
    try:
        with session.begin_nested():
            session.add(decision)
    except IntegrityError as error:
        raise AlreadyDecided from error
    facts = {"question": question_id, "decision": value}
    note(session, Action.QUESTION_DECIDED, campaign, by=by, details=facts)
    return decision


def take_back_decision(
    session: Session, campaign: Campaign, decision_id: int, *, by: User, now: datetime
) -> None:
    """Let people's answers count again. Twice is once.

    Raises:
        NotAllowed: `by` is no admin.
        DecisionNotFound: the campaign has no such decision.
    """
    accounts.require_admin(by)
    decision = session.scalar(
        select(Decision)
        .join(Question, Question.id == Decision.question_id)
        .where(Decision.id == decision_id, Question.campaign_id == campaign.id)
        .with_for_update(of=Decision)
    )
    if decision is None:
        raise DecisionNotFound
    if decision.superseded_at is None:
        decision.superseded_at = now
        facts = {"question": decision.question_id, "decision": decision.value}
        note(session, Action.DECISION_TAKEN_BACK, campaign, by=by, details=facts)


def standing_decisions(
    session: Session, campaign_id: UUID, *, limit: int
) -> tuple[int, Sequence[ShownDecision]]:
    """How many decisions stand, and the newest of them."""
    query = (
        select(
            Decision.id,
            Decision.question_id,
            Question.example_id,
            Question.candidate_class,
            Decision.value,
            User.name,
            Decision.created_at,
        )
        .join(Question, Question.id == Decision.question_id)
        .join(User, User.id == Decision.user_id)
        .where(Question.campaign_id == campaign_id, Decision.superseded_at.is_(None))
    )
    count = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.execute(query.order_by(Decision.id.desc()).limit(limit))
    return count, [ShownDecision(*row) for row in rows]
