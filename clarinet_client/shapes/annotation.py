"""What is sent and what comes back about questions, answers and labels.

As the OpenAPI document has it; a test compares them field by field.
Answers may have more fields than are named here: a newer server says more.
"""

from typing import Literal, NotRequired, TypedDict

from clarinet_client.shapes.datasets import ImportState

AnswerValue = Literal["yes", "no", "unsure", "unusable"]


class Empty(TypedDict):
    """Nothing."""


class NamedOnly(TypedDict):
    """A name."""

    name: str


class LeaseRequest(TypedDict):
    """How many questions are wanted; `one_class`: all about the same class."""

    count: NotRequired[int]
    one_class: NotRequired[bool]


class Question(TypedDict):
    """Whether an image shows a class."""

    id: int
    image_url: str
    candidate_class: int
    class_name: str


class Leases(TypedDict):
    """Questions that this person holds until `expires_at`."""

    questions: list[Question]
    expires_at: str | None
    answered_by_me: int
    waiting: int
    lease_s: int


class Renewal(TypedDict):
    """Until when the questions are held now."""

    expires_at: str | None


class Answer(TypedDict):
    """An answer; `key`: a UUID of the sender's. The same key twice is the same answer."""

    question_id: int
    value: AnswerValue
    key: str
    response_ms: NotRequired[int | None]


class Answers(TypedDict):
    """Answers, and how many questions are wanted next."""

    answers: list[Answer]
    next: NotRequired[LeaseRequest | None]


class Outcome(TypedDict):
    """What became of an answer."""

    key: str
    status: Literal["stored", "repeated", "refused"]
    detail: str | None


class Outcomes(TypedDict):
    """What became of each."""

    results: list[Outcome]
    next: Leases | None
    goes_on: bool


class UndoRequest(TypedDict):
    """How many of the latest answers to take back."""

    count: NotRequired[int]


class UndoneAnswer(TypedDict):
    """An answer that was taken back; its question is held again."""

    question: Question
    value: AnswerValue


class Undone(TypedDict):
    """The latest first."""

    undone: list[UndoneAnswer]


class SimulatedAnnotator(TypedDict):
    """A program that answers in a person's place, and its token."""

    token_id: str
    token: str


class LineFault(TypedDict):
    """A line of a file of labels that was not taken."""

    where: str
    why: str


class LabelImport(TypedDict):
    """Answers or labels from elsewhere."""

    id: str
    filename: str
    state: ImportState
    failure: str | None
    faults: list[LineFault]
    notes: list[str]
    yes: int
    no: int
    unsure: int
    unusable: int
    known: int
    left_out: int
    created_at: str


class Disagreement(TypedDict):
    """A picture about which people of imports differ, among themselves or from answers."""

    example_id: int
    position: int
    filename: str | None
    why: str


class Disagreements(TypedDict):
    """How many such pictures there are, and the first of them by position."""

    count: int
    items: list[Disagreement]
