"""Questions that people's answers leave open or in doubt: asked again, or settled by a reviewer."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation import service as annotation
from app.annotation.consensus import MAX_SLOTS
from app.annotation.models import Answer, AnswerValue, Purpose, Question
from app.campaigns.drawings import last_drawn
from app.campaigns.models import Campaign, CampaignState
from app.campaigns.noting import note
from app.datasets.models import Example
from app.journal.models import Action
from app.quality.doubts import OpenQuestion, open_questions
from app.quality.errors import AlreadyDecided, DecisionNotFound, QuestionNotFound, QuestionStillAsked
from app.quality.judging import decides_in
from app.quality.models import Decision, DoubtfulQuestion, KeptFigures
from app.quality.precomputed import is_large
from app.quality.said import with_all_said


@dataclass(frozen=True, slots=True)
class Doubts:
    """What may be settled."""

    computed_at: datetime | None  # when all answers were looked at; None: a job has yet to do it
    count: int
    askable: int  # of these, about how many one more person may be asked
    questions: Sequence[OpenQuestion]  # the most doubtful of them


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """A decision that stands."""

    id: int
    question_id: int
    example_id: int
    position: int
    candidate_class: int
    value: AnswerValue
    by_id: UUID
    by_name: str
    created_at: datetime


def doubts(
    session: Session, campaign: Campaign, *, limit: int, now: datetime, recompute: bool = False
) -> Doubts:
    """The `limit` most doubtful questions and how many there are; `campaign` has its classes.

    Of a large campaign those that a job found, without what was settled, asked again or answered since.
    `recompute`: look at all answers of a large campaign as well, which takes seconds for a million.
    """
    if recompute or not is_large(campaign):
        found = open_questions(session, campaign)
        shown = with_all_said(session, found[:limit])
        return Doubts(now, len(found), sum(question.may_be_asked for question in found), shown)
    kept = session.get(KeptFigures, campaign.id)
    if kept is None:
        return Doubts(None, 0, 0, [])
    people = annotation.people_at_work(session, campaign.id)
    still_in_doubt = _still_in_doubt(campaign, kept, people)
    count = session.scalar(select(func.count()).select_from(DoubtfulQuestion).where(*still_in_doubt)) or 0
    may_be_asked = _may_be_asked(campaign, people)
    askable = session.scalar(
        select(func.count()).select_from(DoubtfulQuestion).where(may_be_asked, *still_in_doubt)
    )
    rows = session.execute(
        select(
            Question.id,
            Question.example_id,
            DoubtfulQuestion.position,
            Question.candidate_class,
            DoubtfulQuestion.yes,
            DoubtfulQuestion.no,
            DoubtfulQuestion.kind,
            DoubtfulQuestion.weight,
            may_be_asked,
        )
        .join(DoubtfulQuestion, DoubtfulQuestion.question_id == Question.id)
        .where(*still_in_doubt)
        .order_by(*MOST_DOUBTFUL_FIRST)
        .limit(limit)
    )
    shown = with_all_said(session, [OpenQuestion(*row) for row in rows])
    return Doubts(kept.computed_at, kept.unlisted_count + count, askable or 0, shown)


def _may_be_asked(campaign: Campaign, people: Collection[UUID]) -> ColumnElement[bool]:
    """Whether somebody at work is left who did not answer."""
    if campaign.state is CampaignState.CLOSED:
        return false()
    is_asked_of_all = annotation.is_asked_of_all(DoubtfulQuestion.question_id, people)
    return and_(DoubtfulQuestion.yes + DoubtfulQuestion.no < MAX_SLOTS, ~is_asked_of_all)


def most_doubtful(session: Session, campaign: Campaign, *, count: int) -> list[int]:
    """Ids of the `count` most doubtful questions that more people may be asked; `campaign` has its classes.

    Of a large campaign at most those that a job listed; else this takes as long as `open_questions`, so give
    a session that only looks.
    """
    if not is_large(campaign):
        found = [question for question in open_questions(session, campaign) if question.may_be_asked]
        return sorted(question.id for question in found[:count])
    kept = session.get(KeptFigures, campaign.id)
    if kept is None:
        return []
    people = annotation.people_at_work(session, campaign.id)
    query = select(DoubtfulQuestion.question_id).where(
        _may_be_asked(campaign, people), *_still_in_doubt(campaign, kept, people)
    )
    return sorted(session.scalars(query.order_by(*MOST_DOUBTFUL_FIRST).limit(count)))


# As open_questions does.
MOST_DOUBTFUL_FIRST = (DoubtfulQuestion.weight, DoubtfulQuestion.position, DoubtfulQuestion.question_id)


def _still_in_doubt(
    campaign: Campaign, kept: KeptFigures, people: Collection[UUID]
) -> tuple[ColumnElement[bool], ...]:
    """Which of the questions listed then nobody settled, asked again or answered since.

    A look at each by its id: of joins PostgreSQL makes reading all questions and all answers.
    """
    settled = exists().where(
        Decision.question_id == DoubtfulQuestion.question_id, Decision.superseded_at.is_(None)
    )
    waits = select(Question.is_waiting).where(Question.id == DoubtfulQuestion.question_id)
    is_set_aside = select(Question.is_set_aside).where(Question.id == DoubtfulQuestion.question_id)
    last_answer = select(func.max(Answer.created_at)).where(
        Answer.question_id == DoubtfulQuestion.question_id, Answer.superseded_at.is_(None)
    )
    return (
        DoubtfulQuestion.campaign_id == kept.campaign_id,
        ~settled,
        ~is_set_aside.correlate(DoubtfulQuestion).scalar_subquery(),
        or_(
            ~waits.correlate(DoubtfulQuestion).scalar_subquery(),
            annotation.nobody_is_left(campaign, DoubtfulQuestion.question_id, people),
        ),
        last_answer.scalar_subquery() <= kept.computed_at,
    )


def ask_again(
    session: Session, campaign: Campaign, question_ids: Sequence[int], *, by: User, now: datetime
) -> int:
    """Ask one more person about each of these; gives about how many.

    Those stay as they are that wait or are settled by now, have MAX_SLOTS answers, or were answered by all at
    work.

    Raises:
        NotAllowed: `by` is no reviewer.
        CampaignNotOpen: the campaign takes no answers.
    """
    accounts.require_reviewer(by)
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
        NotAllowed: `by` is no reviewer.
        QuestionNotFound: the campaign has no such labelling question.
        QuestionStillAsked: people are still being asked.
        AlreadyDecided: a decision stands; it must be taken back first.
    """
    accounts.require_reviewer(by)
    is_waiting = session.scalar(
        select(Question.is_waiting).where(
            Question.id == question_id,
            Question.campaign_id == campaign.id,
            Question.purpose == Purpose.LABELLING,
            Question.drawing <= last_drawn(campaign.id).scalar_subquery(),
        )
    )
    if is_waiting is None:
        raise QuestionNotFound
    if is_waiting:
        people = annotation.people_at_work(session, campaign.id)
        is_over = annotation.nobody_is_left(campaign, Question.id, people)
        if not session.scalar(select(Question.id).where(Question.id == question_id, is_over)):
            raise QuestionStillAsked
        annotation.wait_no_longer(session, campaign, question_id, by=by, now=now)
    decision = Decision(question_id=question_id, user_id=by.id, value=value, created_at=now)
    try:
        with session.begin_nested():
            session.add(decision)
    except IntegrityError as error:
        raise AlreadyDecided from error
    facts = {"question": question_id, "decision": value}
    note(session, Action.QUESTION_DECIDED, campaign, by=by, details=facts)
    return decision


def get_decision(session: Session, campaign: Campaign, decision_id: int, *, by: User) -> Decision:
    """One decision that stands.

    Raises:
        NotAllowed: `by` is no reviewer.
        DecisionNotFound: the campaign has no such decision, or it was taken back.
    """
    accounts.require_reviewer(by)
    decision = session.scalar(_decision(campaign, decision_id))
    if decision is None or decision.superseded_at is not None:
        raise DecisionNotFound
    return decision


def _decision(campaign: Campaign, decision_id: int) -> Select[Decision]:
    return (
        select(Decision)
        .join(Question, Question.id == Decision.question_id)
        .where(Decision.id == decision_id, Question.campaign_id == campaign.id)
    )


def take_back_decision(
    session: Session, campaign: Campaign, decision_id: int, *, by: User, now: datetime
) -> None:
    """Let people's answers count again. Twice is once.

    Raises:
        NotAllowed: `by` is no reviewer.
        DecisionNotFound: the campaign has no such decision.
    """
    accounts.require_reviewer(by)
    decision = session.scalar(_decision(campaign, decision_id).with_for_update(of=Decision))
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
            Example.position,
            Question.candidate_class,
            Decision.value,
            User.id,
            User.name,
            Decision.created_at,
        )
        .join(Question, Question.id == Decision.question_id)
        .join(Example, Example.id == Question.example_id)
        .join(User, User.id == Decision.user_id)
        .where(decides_in(campaign_id), Decision.superseded_at.is_(None))
    )
    count = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.execute(query.order_by(Decision.id.desc()).limit(limit))
    return count, [ShownDecision(*row) for row in rows]
