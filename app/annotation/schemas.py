"""What the JSON API of annotation accepts and returns."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AliasPath, Field

from app.annotation.models import AnswerValue
from app.annotation.public_ids import PublicIds
from app.annotation.service import (
    LEASE,
    UNDO_LIMIT,
    Leased,
    LeasedQuestion,
    Outcome,
    OwnFigures,
    Status,
    SubmittedAnswer,
)
from app.campaigns.classes import MAX_CLASSES
from app.languages import gettext
from app.schemas import Input, Output

MAX_COUNT = 100
MAX_ANSWERS = 200
MAX_RESPONSE_MS = 24 * 3600 * 1000


class LeaseRequest(Input):
    """How many questions to hold; those held already count.

    `one_class`: take new ones only of the class that comes first in the queue, for a page about one class.
    """

    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 20
    one_class: bool = False


class QuestionRead(Output):
    """ "Is this a *class_name*?" about one picture.

    `id` stands for it in this campaign, and answers name it. Exports have the question's own number; the
    answer's `key` joins the two.
    """

    id: int
    image_url: str
    candidate_class: int
    class_name: str

    @classmethod
    def of(cls, question: LeasedQuestion, ids: PublicIds, address_of: Callable[[int], str]) -> "QuestionRead":
        """With its public id and the address of its picture."""
        return cls(
            id=ids.of(question.id),
            image_url=address_of(question.example_id),
            candidate_class=question.candidate_class,
            class_name=question.class_name,
        )


class LeasesRead(Output):
    """The questions this person holds.

    `waiting` says about how many more may be asked of this person. It falls by one with each answer, whatever
    that says and whatever it was about. Where nothing is held, it is 0 unless something may come later.
    """

    questions: list[QuestionRead]
    expires_at: datetime | None  # when the first of them may go to somebody else
    answered_by_me: int
    waiting: int  # about so many answers may still be asked of this person
    lease_s: int

    @classmethod
    def of(cls, leased: Leased, ids: PublicIds, address_of: Callable[[int], str]) -> "LeasesRead":
        """With the questions' public ids and the addresses of their pictures."""
        return cls(
            questions=[QuestionRead.of(question, ids, address_of) for question in leased.questions],
            expires_at=min((question.expires_at for question in leased.questions), default=None),
            answered_by_me=leased.standing.answered_by_me,
            waiting=leased.standing.waiting,
            lease_s=int(LEASE.total_seconds()),
        )


class AnswerInput(Input):
    """An answer. The same key twice is the same answer.

    "unsure" says that the question cannot be answered; "unusable" that the picture cannot be used, whatever
    is asked about it. Once two people said so, nobody more is asked about it, and an admin keeps it or leaves
    it out.

    `response_ms` is the time from the picture's first frame to the answer, without breaks. On a page of
    several pictures each has the page's time divided by their number, and `page` says how many they were.
    Null: not known, for example because the person was away.

    `shows` follows a no where the campaign asks for it (`asks_which`): the position of the class that the
    picture shows instead, or -1 for none of them or where nobody can tell. It makes no label. `named_ms` is
    the time from the no to that, which `response_ms` leaves out; it is paid like the other.

    An answer that nobody can have thought about is kept, and says nothing about its question: the campaign
    says how long a look is at least, and the server compares with the time since it gave the question out.
    """

    question_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    value: AnswerValue
    response_ms: Annotated[int, Field(ge=0, le=MAX_RESPONSE_MS)] | None = None
    page: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1
    shows: Annotated[int, Field(ge=-1, lt=MAX_CLASSES)] | None = None
    named_ms: Annotated[int, Field(ge=0, le=MAX_RESPONSE_MS)] | None = None
    key: UUID

    def submitted(self, ids: PublicIds) -> SubmittedAnswer:
        """For the service."""
        question_id = ids.question_id(self.question_id)
        return SubmittedAnswer(question_id, self.value, self.response_ms, self.key, self.page)


class AnswersInput(Input):
    """A batch of answers, and how many questions to hold after them."""

    answers: Annotated[list[AnswerInput], Field(min_length=1, max_length=MAX_ANSWERS)]
    next: LeaseRequest | None = None


class OutcomeRead(Output):
    """What became of one answer; `detail` says why it was refused. Of known pictures it tells no more."""

    key: UUID
    status: Status
    detail: str | None

    @classmethod
    def of(cls, outcome: Outcome) -> "OutcomeRead":
        """In the language that speaks now."""
        return cls(
            key=outcome.key,
            status=outcome.status,
            detail=None if outcome.detail is None else gettext(outcome.detail),
        )


class OutcomesRead(Output):
    """What became of a batch, in its order; and the questions held now, if any were asked for.

    `next` is null also where none may be had: the campaign is not open, or this person is paused. Then
    `goes_on` is false, and a screen does well to ask on no more.
    """

    results: list[OutcomeRead]
    next: LeasesRead | None
    goes_on: bool

    @classmethod
    def of(
        cls,
        outcomes: Sequence[Outcome],
        leased: Leased | None,
        ids: PublicIds,
        address_of: Callable[[int], str],
        *,
        goes_on: bool,
    ) -> "OutcomesRead":
        """With the questions' public ids and the addresses of their pictures."""
        return cls(
            results=[OutcomeRead.of(item) for item in outcomes],
            next=None if leased is None else LeasesRead.of(leased, ids, address_of),
            goes_on=goes_on,
        )


class Empty(Input):
    """Nothing to say."""


class UndoInput(Input):
    """How many of the last answers to take back: one, or those of a page."""

    count: Annotated[int, Field(ge=1, le=UNDO_LIMIT)] = 1


class UndoneRead(Output):
    """A question that is this person's again, and what they had said."""

    question: QuestionRead
    value: AnswerValue


class UndoRead(Output):
    """What was taken back, in the order in which it had been answered."""

    undone: list[UndoneRead]


class RenewalRead(Output):
    """Until when the leases hold now; null if there are none."""

    expires_at: datetime | None


class AnswerCounts(Output):
    """Answers that stand."""

    yes: int
    no: int
    unsure: int
    unusable: int


Answers = Annotated[AnswerCounts, Field(validation_alias="counts")]
YesRate = Annotated[float | None, Field(validation_alias=AliasPath("counts", "yes_rate"))]
UnsureRate = Annotated[float | None, Field(validation_alias=AliasPath("counts", "unsure_rate"))]
UnusableRate = Annotated[float | None, Field(validation_alias=AliasPath("counts", "unusable_rate"))]


class ClassProgressRead(Output):
    """Answers about one class. `yes_rate` is over first answers, without confirmations."""

    position: int
    name: str
    drawn: int
    answers: Answers
    yes_rate: YesRate
    unsure_rate: UnsureRate
    unusable_rate: UnusableRate


class AnnotatorProgressRead(Output):
    """Answers by one person."""

    user_id: UUID
    name: str
    is_simulated: bool
    answers: Answers
    yes_rate: YesRate
    unsure_rate: UnsureRate
    unusable_rate: UnusableRate
    mean_ms: float | None = Field(
        description="per answer whose time is known; where people name what a picture shows, with that"
    )
    last_at: datetime


class CostRead(Output):
    """In the currency of the campaign's price."""

    so_far: float
    to_go: float | None


class ProgressRead(Output):
    """How far a campaign is."""

    questions: int
    finished: int
    waiting: int
    fresh: int  # of these, which nobody has answered
    left_over: int = Field(
        description="further ones: everybody at work has answered, or met the picture as a known one"
    )
    set_aside: int  # pictures that cannot be used: they give no label until an admin keeps them
    answers: Answers
    simulated_answers: int
    expected_yes_rate: float | None
    yes_rate: YesRate
    answers_per_minute: float | None
    seconds_left: float | None
    agreement: float | None
    cost: CostRead | None
    classes: list[ClassProgressRead]
    annotators: list[AnnotatorProgressRead]


class ChangeInput(Input):
    """What one of my last answers becomes. The same key twice is the same change."""

    question_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    value: AnswerValue
    key: UUID


class ChangeRead(Output):
    """What became of it: stored, or repeated."""

    status: Status


class OwnAnswerRead(Output):
    """An answer of mine that stands."""

    question_id: int
    image_url: str
    candidate_class: int
    class_name: str
    value: AnswerValue
    created_at: datetime
    others: AnswerValue | None


class OwnAnswersRead(Output):
    """My last answers in a campaign, at most 200, newest first.

    `may_change`: the campaign is open, so that each of them may be changed. `others` is what most other
    people said, where the campaign tells it: once it is closed (`tells_others`).
    """

    items: list[OwnAnswerRead]
    may_change: bool
    tells_others: bool


class OwnFiguresRead(Output):
    """My answers in a campaign.

    `agreement` is the share of others' answers to the same questions that said the same, over those
    `agreement_judged` of the first `agreement_over` questions that I answered which others answered, too. It
    moves once per hundred questions, and nothing else moves
    it: no undo, no change, nobody's later answer. Null, and of 0, where others answered too few.
    """

    answers: AnswerCounts
    mean_ms: float | None = Field(
        description="per answer, in steps of 100 ms, over the first questions whose time is known: "
        "hundreds of them, null before there are any"
    )
    agreement: float | None
    agreement_over: int
    agreement_judged: int

    @classmethod
    def of(cls, figures: OwnFigures) -> "OwnFiguresRead":
        """For the API."""
        return cls(
            answers=AnswerCounts(**figures.counts),
            mean_ms=figures.mean_ms,
            agreement=figures.agreement,
            agreement_over=figures.agreement_over,
            agreement_judged=figures.agreement_judged,
        )
