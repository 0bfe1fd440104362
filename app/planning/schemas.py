"""What the routes of the planner accept and return."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from app.campaigns.classes import MAX_CLASSES, MIN_CLASSES
from app.planning.offers import KWAY_SECONDS
from app.schemas import Input, Output

Classes = Annotated[int, Field(ge=MIN_CLASSES, le=MAX_CLASSES)]
Price = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Budget = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0.01, le=3600, allow_inf_nan=False)]
Error = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Overlap = Annotated[int, Field(ge=1, le=3)]


class PlanInput(Input):
    """What a plan rests on. What is left out is measured in the campaign, or else assumed."""

    budget: Budget = 100.0
    price: Price | None = Field(default=None, description="of one yes/no answer, in the unit of the budget")
    seconds: Seconds | None = Field(default=None, description="one yes/no answer takes")
    error: Error | None = Field(default=None, description="share of images that one person sees wrongly")
    classes: Classes | None = None
    overlap: Overlap | None = Field(default=None, description="people asked each question whatever they say")
    kway_seconds: Seconds = Field(default=KWAY_SECONDS, description="choosing one of the classes takes")
    page_seconds: Seconds | None = Field(
        default=None, description="a yes/no question takes on a page of several"
    )


class PlanForm(Input):
    """The same from a form, with the error in percent."""

    budget: Budget = 100.0
    price: Price | None = None
    seconds: Seconds | None = None
    error_percent: Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False)] | None = None
    classes: Classes | None = None
    overlap: Overlap | None = None
    kway_seconds: Seconds = KWAY_SECONDS
    page_seconds: Seconds | None = None

    def asked(self) -> PlanInput:
        """As the API has it."""
        fields = self.model_dump(exclude={"error_percent"})
        error = None if self.error_percent is None else self.error_percent / 100
        return PlanInput(**fields, error=error)


class BasisRead(Output):
    """A figure that the plan rests on, and where it comes from: given, measured or assumed."""

    value: float
    source: str


class DependenceRead(Output):
    """How far people err together where yes is right, and where no is; 0: not at all."""

    match: float
    other: float


class OfferRead(Output):
    """What the budget buys: `confirmed` and `single` ask yes/no, `k-way` chooses one class of all."""

    name: str
    seconds: float
    price: float
    answers: int
    images: int
    true_labels: int
    complementary_labels: int
    undecided: int
    wrong_true: float
    wrong_complementary: float
    hours: float
    price_per_image: float


class LearningPointRead(Output):
    """What a run of the campaign reached with the answers there were."""

    run_id: UUID
    number: int
    method: str
    setting: str
    answers: int
    complementary: int
    true: int
    mean_accuracy: float
    std_accuracy: float | None
    lowest_accuracy: float | None
    highest_accuracy: float | None
    chance: float = Field(description="the accuracy of guessing among the classes")
    seeds: int


class MinutesPointRead(Output):
    """What was reached after so many minutes of one annotator's work."""

    minutes: float
    answers: int
    mean: float
    lowest: float
    highest: float
    seeds: int


class MinutesLineRead(Output):
    """One way of labelling: `uniform-card`, `uniform-page`, `again`, `others`, `ordinary` or `runs`."""

    way: str
    seconds: float
    points: list[MinutesPointRead]


class MinutesRead(Output):
    """A studied task's ways beside each other, and the campaign's own runs."""

    looks: str
    lines: list[MinutesLineRead]


class PlanRead(Output):
    """What a budget buys."""

    budget: float
    kway_seconds: float
    price: BasisRead
    seconds: BasisRead
    error: BasisRead
    dependence: DependenceRead
    classes: BasisRead
    overlap: BasisRead
    card_seconds: BasisRead
    page_seconds: BasisRead | None
    offers: list[OfferRead]
    minutes: list[MinutesRead]
    runs: list[LearningPointRead]
