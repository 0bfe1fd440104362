"""What is sent and what comes back about campaigns.

As the OpenAPI document has it; a test compares them field by field.
Answers may have more fields than are named here: a newer server says more.
"""

from typing import Literal, NotRequired, TypedDict

CampaignState = Literal["draft", "open", "paused", "closed"]


class ClassOf(TypedDict):
    """A class that people are asked about."""

    position: int
    name: str
    description: str
    question_count: int | None


class NewClass(TypedDict):
    """The same before it is there."""

    name: str
    description: NotRequired[str]
    example_ids: NotRequired[list[int]]


class Policy(TypedDict, total=False):
    """How a campaign asks; what is not said is as on the page."""

    instructions: str
    class_language: str
    confirm_yes: bool
    overlap: int
    consensus: Literal["majority", "dawid-skene"]
    gold_share: float
    gold_bound: float
    least_card_ms: int
    least_page_ms: int
    least_picture_ms: int
    asks_again: bool
    skip_twins: bool
    tells_others: bool
    rounds: int
    modes: Literal["card", "grid", "both"]


class NewCampaign(Policy):
    """A campaign to make."""

    name: str
    dataset_id: str
    classes: NotRequired[list[NewClass]]


class Campaign(TypedDict):
    """One labelling effort."""

    id: str
    name: str
    instructions: str
    dataset_id: str
    state: CampaignState
    is_opening: bool
    opening_failure: str | None
    confirm_yes: bool
    overlap: int
    consensus: Literal["majority", "dawid-skene"]
    gold_share: float | None
    gold_bound: float | None
    skip_twins: bool
    class_language: str
    rounds: int
    modes: Literal["card", "grid", "both"]
    classes: list[ClassOf]
    question_count: int | None
    dataset_version: int | None
    commitment: str | None
    created_at: str
    opened_at: str | None
    closed_at: str | None


class Drawing(TypedDict):
    """Questions that were drawn together."""

    number: int
    dataset_version: int
    question_count: int
    commitment: str | None
    drawn_at: str | None
    failure: str | None


class Drawings(TypedDict):
    """Those of a campaign."""

    items: list[Drawing]
    further_images: int


class AnswerCounts(TypedDict):
    """How many answers of each value."""

    yes: int
    no: int
    unsure: int
    unusable: int


class Progress(TypedDict):
    """How far a campaign is."""

    questions: int
    finished: int
    waiting: int
    fresh: int
    left_over: int
    set_aside: int
    answers: AnswerCounts
    simulated_answers: int
    expected_yes_rate: float | None
    yes_rate: float | None
    answers_per_minute: float | None
    seconds_left: float | None
    agreement: float | None


class ChiSquare(TypedDict):
    """A test of something that should be uniform."""

    statistic: float
    degrees: int
    p_value: float


class Law(TypedDict):
    """How the classes of a drawing were drawn; all is None where uniformly."""

    by_belief_of: str | None
    floor_percent: int | None
    round: int | None
    beliefs_digest: str | None


class DrawingAudit(TypedDict):
    """What an audit found of one drawing; its law may be secret until the campaign is closed."""

    number: int
    dataset_version: int | None
    commitment: str
    draws_match: bool | None
    commitment_matches: bool | None
    law: Law | None


class Audit(TypedDict):
    """Whether a campaign's draws are as promised."""

    passed: bool | None
    checked_at: str | None
    alarms: list[str]
    commitment: str
    seed: str | None
    dataset_unchanged: bool
    draws_match: bool | None
    commitment_matches: bool | None
    uniformity: ChiSquare | None
    uniformity_of: int
    drawings: list[DrawingAudit]
