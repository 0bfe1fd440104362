"""What the JSON API and the forms of the review accept and return."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.annotation.consensus import LabelKind
from app.annotation.history import EventKind
from app.annotation.models import AnswerValue, Purpose
from app.schemas import Input, Output

MAX_AGAIN = 10_000  # questions that one request may have asked again


class AskAgain(Input):
    """How many questions to ask one more person about, most doubtful first."""

    count: Annotated[int, Field(ge=1, le=MAX_AGAIN)]


class AskedAgain(Output):
    """How many questions wait again."""

    asked: int


class DecisionInput(Input):
    """What is right; "unsure": nobody can tell, so the question gives no label."""

    question_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    value: AnswerValue


class OpenQuestionRead(Output):
    """A finished question whose label is missing (`kind` null) or in doubt."""

    id: int
    example_id: int
    image_url: str
    candidate_class: int
    class_name: str
    yes: int
    no: int
    kind: LabelKind | None
    weight: float


class DecisionRead(Output):
    """A decision that stands."""

    id: int
    question_id: int
    value: AnswerValue
    by_name: str
    created_at: datetime


class EventRead(Output):
    """One thing that happened to a question about an example; a slot is held until `at`."""

    at: datetime
    kind: EventKind
    question_id: int
    purpose: Purpose
    round: int
    candidate_class: int
    by_name: str
    value: AnswerValue | None
    response_ms: int | None


class HistoryRead(Output):
    """What is known of one example in a campaign, oldest first."""

    example_id: int
    position: int
    questions: int
    events: list[EventRead]


class ReviewRead(Output):
    """What an admin may settle, most doubtful first, and the newest decisions."""

    open: int
    questions: list[OpenQuestionRead]
    decided: int
    decisions: list[DecisionRead]
