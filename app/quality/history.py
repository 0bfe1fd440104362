"""What happened to one example in a campaign: who was asked what, who answered, who settled it.

Pieced together from answers, decisions and slots. Of these only slots are ever deleted or taken over, when
somebody could not tell or let them run out. Leasing keeps no log of its own: that would double the writes of
the one statement that everybody waits for.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.annotation.models import Answer, AnswerValue, Lease, Purpose, Question
from app.campaigns.models import Campaign
from app.datasets.errors import ExampleNotFound
from app.datasets.models import Example
from app.quality.models import Decision


class EventKind(enum.StrEnum):
    """What happened."""

    ANSWERED = "answered"
    TAKEN_BACK = "taken-back"
    DECIDED = "decided"
    DECISION_TAKEN_BACK = "decision-taken-back"
    HELD = "held"  # until `at`; in the past: it ran out and nobody took the slot since


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a question about the example."""

    at: datetime
    kind: EventKind
    question_id: int
    purpose: Purpose
    round: int
    candidate_class: int
    by_id: UUID
    by_name: str
    value: AnswerValue | None = None
    response_ms: int | None = None


@dataclass(frozen=True, slots=True)
class History:
    """An example's questions and what happened to them, oldest first."""

    example_id: int
    position: int
    width: int
    height: int
    questions: int
    events: tuple[Event, ...]


def history(session: Session, campaign: Campaign, example_id: int, *, by: User) -> History:
    """Everything that is known of one example in this campaign.

    Raises:
        NotAllowed: `by` is no reviewer.
        ExampleNotFound: the campaign asks nothing about such an example.
    """
    accounts.require_reviewer(by)
    questions = session.scalars(
        select(Question).where(Question.campaign_id == campaign.id, Question.example_id == example_id)
    ).all()
    if not questions:
        raise ExampleNotFound
    example = session.get_one(Example, example_id)
    events = [event for question in questions for event in _events(session, question)]
    return History(
        example_id=example_id,
        position=example.position,
        width=example.width,
        height=example.height,
        questions=len(questions),
        events=tuple(sorted(events, key=lambda event: event.at)),
    )


def _events(session: Session, question: Question) -> Iterator[Event]:
    about = (question.id, question.purpose, question.round, question.candidate_class)
    answers = select(Answer, User.name).join(User, User.id == Answer.user_id)
    for answer, name in session.execute(answers.where(Answer.question_id == question.id)):
        said = (answer.user_id, name, answer.value)
        yield Event(answer.created_at, EventKind.ANSWERED, *about, *said, response_ms=answer.response_ms)
        if answer.superseded_at is not None:
            yield Event(answer.superseded_at, EventKind.TAKEN_BACK, *about, *said)
    decisions = select(Decision, User.name).join(User, User.id == Decision.user_id)
    for decision, name in session.execute(decisions.where(Decision.question_id == question.id)):
        settled = (decision.user_id, name, decision.value)
        yield Event(decision.created_at, EventKind.DECIDED, *about, *settled)
        if decision.superseded_at is not None:
            yield Event(decision.superseded_at, EventKind.DECISION_TAKEN_BACK, *about, *settled)
    held = select(Lease.expires_at, User.id, User.name).join(User, User.id == Lease.user_id)
    for expires_at, by_id, name in session.execute(
        held.where(Lease.question_id == question.id, Lease.expires_at.is_not(None))
    ):
        assert expires_at is not None  # the query left these out
        yield Event(expires_at, EventKind.HELD, *about, by_id, name)
