"""What the JSON API and the forms of the audit, of people and of the review accept and return."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from app.annotation.models import AnswerValue, PausedFor, Purpose
from app.annotation.service import KnownPicture
from app.quality.auditing import Audit
from app.quality.claims import Claims
from app.quality.history import EventKind
from app.quality.people import Person
from app.schemas import Input, Output
from clarinet.files.label_table import LabelKind

MAX_PER_CLASS = 1000
MAX_PICTURES = 10_000
MAX_AGAIN = 10_000  # questions that one request may have asked again


class KnownPictureInput(Input):
    """A picture whose class is known."""

    example_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    class_position: Annotated[int, Field(ge=0, le=2**31 - 1)]

    def known(self) -> KnownPicture:
        """For the service."""
        return KnownPicture(self.example_id, self.class_position)


class GoldInput(Input):
    """Pictures to make gold: these, or random ones of each class, as far as true classes are known."""

    pictures: Annotated[list[KnownPictureInput], Field(max_length=MAX_PICTURES, default_factory=list)]
    per_class: Annotated[int, Field(ge=1, le=MAX_PER_CLASS)] | None = None

    @model_validator(mode="after")
    def one_of_them(self) -> Self:
        """Both or neither would leave open what is wanted."""
        if bool(self.pictures) == (self.per_class is not None):
            raise ValueError("Give either pictures or a number per class")
        return self


class GoldForm(Input):
    """Random known pictures of each class."""

    per_class: Annotated[int, Field(ge=1, le=MAX_PER_CLASS)]


class GoldRead(Output):
    """How many pictures this request made gold, and how many are."""

    marked: int
    pictures: int


class PersonRead(Output):
    """One person in a campaign. Gold counts since they were last let go on; the model estimates the rates."""

    user_id: UUID
    name: str
    is_simulated: bool
    answers: int
    gold_right: int
    gold_wrong: int
    gold_accuracy: float | None
    sensitivity: float | None
    specificity: float | None
    paused_at: datetime | None
    is_paused_by_gold: bool
    paused_for: PausedFor | None
    asked_again: int | None  # questions that they alone answered and that others were asked
    is_left_out: bool
    marked_for: PausedFor | None  # what an admin should look at
    hasty: int  # answers that nobody can have thought about; they count for nothing
    alone: int | None  # answers that stand alone: so many would be asked again


class ClaimsRead(Output):
    """What the model that weighs labels says of a campaign: shares."""

    error: float  # of the images that somebody sees wrongly
    match: float  # how far people err together where yes is right (0: not at all), and where no is
    other: float
    several: int  # questions that more than one person answered
    true: int  # labels, and the share of them that is wrong
    wrong_true: float
    complementary: int
    wrong_complementary: float


class QualityRead(Output):
    """How reliable the people of a campaign are, marked ones first; what a model says is as of
    `computed_at`."""

    gold_pictures: int
    computed_at: datetime | None  # of a large campaign: when a job last worked them out; null: not yet
    claims: ClaimsRead | None
    people: list[PersonRead]

    @classmethod
    def of(
        cls, pictures: int, people: list[Person], claims: Claims | None, *, computed_at: datetime | None
    ) -> Self:
        """For the API."""
        return cls(
            gold_pictures=pictures,
            computed_at=computed_at,
            claims=None if claims is None else ClaimsRead.model_validate(claims),
            people=[PersonRead.model_validate(person) for person in people],
        )


class ChiSquareRead(Output):
    """A chi-square test."""

    statistic: float
    degrees: int
    p_value: float


class ClassAuditRead(Output):
    """One class in the audit."""

    name: str
    drawn: int | None = Field(
        description="questions; to annotators those of the first drawing alone, until the campaign is closed"
    )
    answered: int | None  # questions with a yes or a no
    yes_rate: float | None
    unsure_rate: float | None
    unusable_rate: float | None


class LawRead(Output):
    """How the classes of a drawing were drawn; of a uniform one all is null."""

    by_belief_of: str | None = Field(description="what the model is called; null: uniformly")
    floor_percent: int | None = Field(description="of each probability, shared by all possible classes alike")
    round: int | None = Field(description="of its questions")
    beliefs_digest: str | None = Field(description="SHA-256 of what the model believed, as it is kept")


class DrawingAudit(Output):
    """Questions that were drawn together; the seed is null until the campaign is closed.

    Where `law` is null, what tells of which images it asks is null as well.
    """

    number: int
    drawn_at: datetime
    dataset_version: int | None
    dataset_digest: str | None
    dataset_unchanged: bool
    question_count: int | None
    first_position: int | None = Field(description="of the images that it asks about, in their dataset")
    end_position: int | None = Field(description="one after the last")
    commitment: str
    seed: str | None
    draws_match: bool | None
    commitment_matches: bool | None
    law: LawRead | None = Field(
        description="of a further drawing null to annotators until the campaign is closed"
    )


class AuditRead(Output):
    """What can be checked of a campaign. Recomputed facts are null while the seed is secret.

    What rests on the last check of the draws (`checked_at`) is null before there was one. Of a large campaign
    `yes_by_true_class` is null, too, until a job has counted it (`yes_by_true_class_at`).

    What people answered, and how often yes is right, is null to annotators until the campaign is closed: who
    looks, answers and takes it back would see from what moves which pictures are known, and which answer was
    right.
    """

    passed: bool | None
    checked_at: datetime | None
    alarms: list[str]
    commitment: str
    seed: str | None
    sample_seed: str | None = Field(
        description="of an evaluation: what its pictures were drawn by; null until the campaign is closed, "
        "and to annotators, because later evaluations of the same pictures go on with it"
    )
    sample_size: int | None
    dataset_digest: str
    dataset_unchanged: bool
    draws_match: bool | None
    commitment_matches: bool | None
    uniformity: ChiSquareRead | None = Field(
        description="of the drawn classes: of all rounds of the drawings the most uneven one, "
        "whose p-value is multiplied by their number"
    )
    uniformity_of: int = Field(description="how many rounds of drawings these are; 0 before the first check")
    unsure_by_class: ChiSquareRead | None
    unusable_by_class: ChiSquareRead | None
    expected_yes_rate: float | None
    yes_rate: float | None
    yes_p_value: float | None
    yes_by_true_class: list[list[float | None]] | None  # row: true class; column: class asked about
    yes_by_true_class_at: datetime | None
    drawings: list[DrawingAudit]  # the first stands above as well
    beside_classes: int = Field(
        description="drawn questions that nobody is asked, because their pictures stand beside a class, or "
        "have the same bytes as one that does"
    )
    classes: list[ClassAuditRead]

    @classmethod
    def of(cls, audit: Audit) -> "AuditRead":
        """For the API. It names nobody: everybody signed in may read it."""
        shown = audit.shown
        return cls(
            passed=audit.passed,
            checked_at=audit.checked_at,
            alarms=list(audit.alarms),
            commitment=audit.commitment,
            seed=audit.seed,
            sample_seed=audit.sample[0] if audit.sample else None,
            sample_size=audit.sample[1] if audit.sample else None,
            dataset_digest=audit.dataset_digest,
            dataset_unchanged=audit.dataset_unchanged,
            draws_match=audit.draws_match,
            commitment_matches=audit.commitment_matches,
            drawings=[DrawingAudit.model_validate(item) for item in audit.drawings],
            beside_classes=audit.beside_classes,
            uniformity=audit.uniformity and ChiSquareRead.model_validate(audit.uniformity),
            uniformity_of=audit.uniformity_of,
            unsure_by_class=None
            if audit.hides_answers
            else ChiSquareRead.model_validate(audit.unsure_by_class),
            unusable_by_class=None
            if audit.hides_answers
            else ChiSquareRead.model_validate(audit.unusable_by_class),
            expected_yes_rate=shown(audit.progress.expected_yes_rate),
            yes_rate=shown(audit.progress.counts.yes_rate),
            yes_p_value=shown(audit.yes_p_value),
            yes_by_true_class=None
            if audit.yes_by_true_class is None
            else [list(row) for row in audit.yes_by_true_class],
            yes_by_true_class_at=audit.seen_at,
            classes=[
                ClassAuditRead(
                    name=item.name,
                    drawn=audit.drawn_per_class and audit.drawn_per_class[position],
                    answered=audit.answered(item.counts),
                    yes_rate=shown(item.counts.yes_rate),
                    unsure_rate=shown(item.counts.unsure_rate),
                    unusable_rate=shown(item.counts.unusable_rate),
                )
                for position, item in enumerate(audit.progress.classes)
            ],
        )


class AskAgain(Input):
    """How many questions to ask one more person about, most doubtful first."""

    count: Annotated[int, Field(ge=1, le=MAX_AGAIN)]


class AskedAgain(Output):
    """How many questions wait again."""

    asked: int


class DecisionInput(Input):
    """What is right; "unsure": nobody can tell, so the question gives no label."""

    question_id: Annotated[int, Field(ge=1, le=2**63 - 1)]
    value: Literal[AnswerValue.YES, AnswerValue.NO, AnswerValue.UNSURE]


class DecisionForm(DecisionInput):
    """The same in a form, which knows the question that stands behind it on the page."""

    behind: int | None = None


class PictureReviewInput(Input):
    """What becomes of a picture of which people said that it cannot be used."""

    kept: bool  # true: it is asked about on, and answers make labels again; false: it is left out


class PictureReviewForm(PictureReviewInput):
    """The same in a form, which knows the picture that stands behind it on the page."""

    behind: int | None = None


class UnusablePictureRead(Output):
    """A picture of which somebody said that it cannot be used, or that was reviewed.

    `set_aside`: nobody more is asked about it, and it gives no label. `kept` is null before the review.
    """

    example_id: int
    image_url: str
    said_by: list[str]  # names, in the order in which they said so
    set_aside: bool
    kept: bool | None
    reviewed_by: str | None
    reviewed_at: datetime | None


class UnusablePicturesRead(Output):
    """Pictures by their example's id."""

    items: list[UnusablePictureRead]
    next: int | None  # to be given as `after`


class OpenQuestionRead(Output):
    """A finished question whose label is missing (`kind` null) or in doubt."""

    id: int
    example_id: int
    image_url: str
    candidate_class: int
    class_name: str
    yes: int
    no: int
    unsure: int
    unusable: int
    uncounted: Annotated[int, Field(description="Yes and no of people left out, and hasty ones.")]
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
    """What a reviewer may settle, most doubtful first, and the newest decisions.

    A large campaign's questions are those that a job found in doubt at `computed_at` (null: not yet), without
    what was settled, asked again or answered since.
    """

    computed_at: datetime | None
    open: int
    askable: int  # of these, about which one more person at work may be asked
    questions: list[OpenQuestionRead]
    decided: int
    decisions: list[DecisionRead]
