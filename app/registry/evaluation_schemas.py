"""What the JSON API of evaluations accepts and returns, and the form of one."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from app.campaigns.models import Campaign, CampaignState
from app.campaigns.schemas import Overlap
from app.evaluations.models import Evaluation
from app.evaluations.service import Comparison, Confusion, Plan, Result, Wishes
from app.schemas import Input, Name, Output

HalfWidth = Annotated[float, Field(ge=0.005, le=0.25, allow_inf_nan=False)]
Expected = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Wished(Input):
    """How exactly, and how people are asked."""

    half_width: HalfWidth = Field(default=0.05, description="of the 95 % interval, as a fraction")
    expected: Expected | None = Field(
        default=None, description="accuracy that you expect: near 1 fewer questions do; null: whatever it is"
    )
    drawn_share: Share = Field(
        default=1.0,
        description="questions about a class drawn at random, per question about a prediction: they keep "
        "people from saying yes by habit",
    )
    overlap: Overlap = Field(default=1, description="people who are asked each question")

    asks_which: bool = Field(
        default=False,
        description="after each no people name what the picture shows: tells which classes a model mixes up, "
        "and takes them longer; answers of evaluations that did not ask this are asked for anew",
    )

    by_class: bool = Field(
        default=False,
        description="draw from each predicted class by itself, at least 20 pictures of each: helps where "
        "some are rare; such an evaluation is not compared with others",
    )

    def wishes(self) -> Wishes:
        """For the service."""
        return Wishes(
            half_width=self.half_width,
            expected=self.expected,
            drawn_share=self.drawn_share,
            overlap=self.overlap,
            asks_which=self.asks_which,
            by_class=self.by_class,
        )


class EvaluationPlanInput(_Wished):
    """What an evaluation would take."""


class EvaluationCreate(_Wished):
    """An evaluation to lay out; its campaign is a draft until it is opened."""

    model_id: UUID
    name: Name | None = Field(
        default=None, description="of its campaign; absent: one that tells nothing of the model"
    )


class EvaluationForm(_Wished):
    """The form."""

    model_id: UUID


class EvaluationPlanRead(Output):
    """How many questions it takes."""

    population: int = Field(description="training images of the target that the model predicted")
    sample: int = Field(description="of these, drawn at random")
    known: int = Field(description="of these, whose answer an earlier evaluation has")
    asked: int = Field(description="questions about predictions")
    drawn: int = Field(description="questions about classes drawn at random, mixed in")
    answers: int = Field(description="that people give in all, at least")
    earlier: int = Field(description="evaluations of the same dataset, whose draw it shares")

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """From the plan."""
        return cls.model_validate(plan)


class IntervalRead(Output):
    """A share with its 95 % interval; fractions. Equal ends: every picture was judged."""

    estimate: float
    low: float
    high: float


class EvaluatedClassRead(Output):
    """Images that the model takes for one class."""

    name: str
    sampled: int
    right: int
    wrong: int
    interval: IntervalRead | None


class KnownRead(Output):
    """How often people were right about known pictures."""

    yes_right: int
    yes_asked: int
    no_right: int
    no_asked: int


class FoundClassRead(Output):
    """Pictures that show one class, as people say."""

    name: str
    shown: int = Field(description="pictures of it in the sample")
    right: int = Field(description="of these, that the model takes for it")
    share: float | None = Field(
        description="of all such pictures of the target that the model finds; at most this where the class "
        "of a wrong prediction is not known"
    )
    interval: IntervalRead | None = Field(
        description="null before everything is judged and every wrong prediction has a class, and where "
        "predicted classes were drawn from by themselves"
    )


class ConfusionRead(Output):
    """What pictures show, as people name it after a no, by what the model takes them for."""

    rows: list[list[int]] = Field(
        description="pictures; a row for each class that they show, a column for each predicted one"
    )
    classes: list[FoundClassRead]
    none_of_these: int = Field(
        description="wrong predictions that show none of the classes, or of which people cannot tell: not "
        "counted"
    )
    unnamed: int = Field(
        description="wrong predictions about whose class people are divided, or were never asked: not counted"
    )
    is_whole: bool = Field(description="everything is judged")


class EvaluationResultRead(Output):
    """What people's answers say so far."""

    right: int
    wrong: int
    untold: int = Field(
        description="nobody could tell, people were divided, or the picture cannot be used: not counted"
    )
    waiting: int
    interval: IntervalRead | None = Field(description="of the accuracy, as people see it")
    corrected: IntervalRead | None = Field(
        description="the same with people's errors on known pictures taken into account; null without enough"
    )
    people: int
    simulated: int = Field(description="of these, which are programs")
    several: int = Field(description="images that more than one person judged")
    unanimous: int = Field(description="of these, on which all agreed")
    unanimous_right: int
    classes: list[EvaluatedClassRead]
    known: KnownRead
    is_over: bool


class StratumRead(Output):
    """Pictures that the model takes for one class."""

    population: int = Field(description="in the target")
    sampled: int = Field(description="of these, drawn at random")
    end: int = Field(description="of the random order of all pictures, behind the last of these")


class EvaluationRead(Output):
    """A random sample of the target's images, judged by people."""

    id: UUID
    run_id: UUID
    model_id: UUID
    campaign_id: UUID | None = Field(description="where people are asked; null: every answer was known")
    campaign_state: CampaignState | None
    dataset_id: UUID
    dataset_version: int
    half_width: float
    population: int
    sample_size: int
    strata: list[StratumRead] | None = Field(
        description="where each predicted class was drawn from by itself, in the order of the classes; null: "
        "each picture had the same chance"
    )
    known_count: int
    asked_count: int
    drawn_count: int
    predictions_digest: str = Field(description="SHA-256 of the file of predictions beside the model")
    created_at: datetime
    chance: float = Field(description="the accuracy of guessing among the classes")
    result: EvaluationResultRead
    confusion: ConfusionRead | None = Field(
        description="null where nobody named what a picture shows, and in lists"
    )

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        campaign: Campaign | None,
        result: Result,
        confusion: Confusion | None = None,
    ) -> Self:
        """From the row and what its answers say."""
        own = cls.model_fields.keys() - {"campaign_state", "result", "confusion", "strata", "chance"}
        return cls(
            **{name: getattr(evaluation, name) for name in own},
            chance=1 / len(evaluation.class_names),
            campaign_state=campaign.state if campaign else None,
            strata=evaluation.strata
            and [
                StratumRead(population=population, sampled=sampled, end=end)
                for population, sampled, end in evaluation.strata
            ],
            result=EvaluationResultRead.model_validate(result),
            confusion=None if confusion is None else ConfusionRead.model_validate(confusion),
        )


class EvaluationList(Output):
    """A page of evaluations, newest first; give `next` as `after` for the page after it."""

    items: list[EvaluationRead]
    next: UUID | None


class JudgedDifferenceRead(Output):
    """By McNemar's test; fractions."""

    estimate: float = Field(description="accuracy of this model less that of the other")
    low: float
    high: float
    p_value: float


class JudgedComparisonRead(Output):
    """Two models on the images that people judged for both."""

    evaluation_id: UUID
    run_id: UUID
    images: int
    only_this: int = Field(description="images that only this one's model has right")
    only_other: int
    difference: JudgedDifferenceRead

    @classmethod
    def of(cls, found: Comparison) -> Self:
        """From a comparison."""
        return cls(
            evaluation_id=found.other.id,
            run_id=found.other.run_id,
            images=found.images,
            only_this=found.only_this,
            only_other=found.only_other,
            difference=JudgedDifferenceRead.model_validate(found.difference),
        )


class ComparisonList(Output):
    """An evaluation beside those of other models on the same dataset."""

    items: list[JudgedComparisonRead]
    next: str | None = Field(default=None, description="null: the list is whole")
