"""What the JSON API of runs accepts and returns."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    WrapValidator,
)

from app.evaluations.service import Measured
from app.runs.configs import Recipe, readable
from app.runs.estimates import estimate_of
from app.runs.faults import Fault
from app.runs.models import MOST_TAGS, NAME, NOTE, TAG, Metric, Priority, Run, Trial, TrialState
from app.runs.summary import Summary
from app.schemas import Input, Output, few_fields, printable, printable_lines
from clarinet.recipes.choices import DoingKind, Looks
from clarinet.recipes.source_accuracy import SourceEstimate

RunNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]  # what the column holds
Note = Annotated[str, StringConstraints(max_length=NOTE), WrapValidator(printable_lines)]

RunName = Annotated[str, StringConstraints(max_length=NAME), AfterValidator(printable)]
# A comma separates tags where they are typed in one line.
Tag = Annotated[
    str, StringConstraints(min_length=1, max_length=TAG, pattern=r"^[^,]*$"), AfterValidator(printable)
]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS)]

MOST_PROCESSES = 64  # of a trial, on one host
MOST_SETTINGS = 200  # hyper-parameters; a method has some ninety


def _few_settings(given: object) -> object:
    return few_fields(given, MOST_SETTINGS)


class RunCreate(Input):
    """A run to start: one trial per seed over the labels the campaign has at this moment."""

    method: str = Field(
        default="clarinet-plus", description="clarinet-plus, or one of the paper's, as in the form"
    )
    setting: str = Field(default="cc", description="cc: complementary labels only; pc: true labels as well")
    imported_labels: bool = Field(
        default=False, description="also the campaign's labels from elsewhere, which nobody drew uniformly"
    )
    uniform_only: bool = Field(
        default=False, description="without the labels of questions by a model's belief"
    )
    preset: str | None = Field(
        default=None,
        description="of the method, as in the form; absent or default: what fits the images; quick: the same "
        "of clarinet-plus, quickly; digits or photographs: that, whatever the images are",
    )
    seeds: list[StrictInt] = Field(default=[0], max_length=1000, description="1 to 20, each once")
    target_dataset_id: UUID
    config: Annotated[
        dict[str, StrictBool | StrictInt | StrictFloat | StrictStr], BeforeValidator(_few_settings)
    ] = Field(
        default={}, max_length=MOST_SETTINGS, description="single hyper-parameters that replace the preset's"
    )
    note: Note = Field(default="", description="what people should know about it, in their own words")
    processes: StrictInt = Field(
        default=1,
        ge=1,
        le=MOST_PROCESSES,
        description="of one worker that share each batch, each on a GPU of its own; it learns what one does",
    )
    download_weights: bool = Field(
        default=False,
        description="a worker may download trained weights that no worker has; else such a run is refused",
    )


class RunUpdate(Input):
    """What to change of a run; fields that are left out stay."""

    name: RunName | None = Field(default=None, description="what people call it; empty: by its number alone")
    note: Note | None = None
    priority: Priority | None = Field(
        default=None, description="high: its trials go before those of all other runs; low: behind them"
    )
    tags: Tags | None = Field(default=None, description="in place of those it has; without commas")
    archived: StrictBool | None = Field(
        default=None, description="put away: lists leave it out until they are asked for it"
    )


class TryAgain(Input):
    """Failed trials to queue again."""

    seeds: list[StrictInt] | None = Field(
        default=None, max_length=1000, description="of which; absent: of all that failed"
    )


class PriorityForm(Input):
    """The form of a run's priority."""

    priority: Priority


class NoteForm(Input):
    """The form of a run's note; an empty one takes the note away."""

    note: Note = ""


class SourceEstimateRead(Output):
    """The accuracy on the source, as complementary labels tell it that were held out; fractions.

    No accuracy on the target, and too low where some of these labels are wrong and nothing says so.
    """

    estimate: float | None = Field(description="null until enough labels are held out")
    low: float | None = Field(description="lower end of its 95 % confidence interval (Clopper and Pearson)")
    high: float | None = Field(description="upper end")
    held_out: int = Field(description="labels that estimate it")
    needed: int = Field(description="held-out labels that an estimate needs")
    missing: int = Field(description="about how many more “no” answers it takes until they are held out")


class DoingRead(Output):
    """What a trial does while no epoch ends."""

    kind: DoingKind
    done: int = Field(description="images, or steps of the fine-tuning")
    total: int


class TrialRead(Output):
    """One seed of a run. Accuracies are fractions; `result` is there once it has ended well."""

    id: UUID
    seed: int
    state: TrialState
    failure: str | None
    fault: Fault | None = Field(description="whose its failure or last setback is; null: nobody knows")
    attempts: int
    setbacks: int = Field(
        description="attempts that a worker's or the database's fault ended; not counted above"
    )
    setback: str | None = Field(description="why, the last time")
    not_before: datetime | None = Field(description="until then it rests after a setback")
    place: int | None = Field(description="in the queue while it waits; 1 is the next one")
    started_at: datetime | None
    finished_at: datetime | None
    target_accuracy: float | None
    source_estimate: SourceEstimateRead | None
    doing: DoingRead | None = Field(description="what it does until its next epoch ends; mostly null")
    result: dict[str, Any] | None

    @classmethod
    def of(cls, trial: Trial, estimate: SourceEstimate | None, place: int | None) -> Self:
        """From the row, what its last epoch told of the source, and its place in the queue."""
        names = cls.model_fields.keys() - {"source_estimate", "doing", "place"}
        own = {name: getattr(trial, name) for name in names}
        return cls(**own, source_estimate=estimate, doing=trial.doing_now, place=place)


class MeasuredRead(Output):
    """The accuracy as people measured it, who judged a random sample of the predictions; fractions."""

    evaluation_id: UUID
    accuracy: float
    low: float = Field(description="lower end of its 95 % interval")
    high: float
    people: int
    simulated: int = Field(description="of these, which are programs")
    images: int = Field(description="that they judged")
    sample: int = Field(description="that they were to judge")
    is_over: bool = Field(description="false while people are asked")

    @classmethod
    def of(cls, found: Measured | None) -> Self | None:
        """From what the answers say."""
        if found is None:
            return None
        return cls(
            evaluation_id=found.evaluation_id,
            accuracy=found.interval.estimate,
            low=found.interval.low,
            high=found.interval.high,
            people=found.people,
            simulated=found.simulated,
            images=found.images,
            sample=found.sample,
            is_over=found.is_over,
        )


class RunSummary(Output):
    """A run in a list. Accuracies are fractions, over the seeds that have one."""

    id: UUID
    number: int
    campaign_id: UUID
    source_dataset_id: UUID
    target_dataset_id: UUID
    source_version: int = Field(description="of the campaign's dataset, as it was at launch")
    target_version: int = Field(description="of the target, as it was at launch")
    method: str
    setting: str
    preset: str
    state: TrialState
    seeds: list[int]
    scored_on: int = Field(
        description="images of the target that score, whose class is known and one of the campaign's; 0: its "
        "accuracy is not measured"
    )
    scored_split: Literal["test", "train"] = Field(
        description="which they are: test images, or, where none of those scores, the images that the target "
        "trains on; training sees these without their classes"
    )
    scored_of: int = Field(description="how many images that split of the target has")
    unscored: str = Field(description="which of the target's images do not score, and why; empty: all do")
    mean_accuracy: float | None = Field(description="on the images that score")
    interval_low: float | None = Field(
        description="lower end of its 95 % sampling interval (Clopper and Pearson)"
    )
    interval_high: float | None = Field(description="upper end")
    chance: float = Field(description="the accuracy of guessing among the classes")
    is_guessing: bool = Field(
        description="it ended well, and its accuracy cannot be told from chance: its interval reaches that"
    )
    measured_by_people: MeasuredRead | None = Field(
        description="where no labelled test image of the target scores, and people were asked"
    )
    std_accuracy: float | None = Field(description="sample standard deviation over the seeds")
    lowest_accuracy: float | None = Field(description="of several seeds")
    highest_accuracy: float | None = Field(description="of several seeds")
    source_estimate: SourceEstimateRead | None = Field(
        description="over the seeds; null where the labels tell nothing of it, or the run has not begun"
    )
    epoch: int = Field(description="epochs done, over all seeds")
    epochs: int = Field(description="epochs to do, over all seeds")
    time_left_s: float | None
    created_at: datetime
    cancel_requested_at: datetime | None
    paused_at: datetime | None = Field(description="since when people let it wait; null: it goes on")
    priority: Priority
    processes: int = Field(description="that share each batch of a trial, each on a GPU of its own")
    place: int | None = Field(description="of its next trial in the queue; 1 is the next one of all")
    note: str
    name: str
    tags: list[str]
    archived_at: datetime | None = Field(description="when somebody put it away")
    sweep_id: UUID | None = Field(description="shared by runs that were launched together")

    @classmethod
    def facts(cls, run: Run, summary: Summary) -> dict[str, Any]:
        """The fields that a list and a single run share."""
        return {
            "id": run.id,
            "number": run.number,
            "campaign_id": run.campaign_id,
            "source_dataset_id": run.source_dataset_id,
            "target_dataset_id": run.target_dataset_id,
            "source_version": run.source_version,
            "target_version": run.target_version,
            "method": run.method,
            "setting": run.setting,
            "preset": run.preset,
            "state": run.state,
            "seeds": [trial.seed for trial in run.trials],
            "mean_accuracy": summary.mean,
            "measured_by_people": MeasuredRead.of(summary.people),
            "std_accuracy": summary.spread,
            "lowest_accuracy": summary.lowest,
            "highest_accuracy": summary.highest,
            "scored_on": summary.scored.images,
            "scored_split": summary.scored.split,
            "scored_of": summary.scored.of,
            "unscored": summary.unscored,
            "interval_low": summary.low,
            "interval_high": summary.high,
            "chance": summary.chance,
            "is_guessing": summary.is_guessing,
            "source_estimate": summary.source,
            "epoch": summary.epoch,
            "epochs": summary.epochs,
            "time_left_s": summary.time_left_s,
            "created_at": run.created_at,
            "cancel_requested_at": run.cancel_requested_at,
            "paused_at": run.paused_at,
            "priority": run.priority,
            "processes": run.processes,
            "place": summary.place,
            "note": run.note,
            "name": run.name,
            "tags": run.tags,
            "archived_at": run.archived_at,
            "sweep_id": run.sweep_id,
        }

    @classmethod
    def of(cls, run: Run, summary: Summary) -> Self:
        """From a run whose trials are loaded."""
        return cls(**cls.facts(run, summary))


class RunRead(RunSummary):
    """A run with its configuration, its trials and the labels it rests on."""

    looks: Looks | None = Field(description="of the images; null where nobody has looked at both datasets")
    recipe: str = Field(description="what is trained, in words; empty where this version cannot read it")
    recipe_warning: str = Field(description="what to say of a recipe that is not for such images, or empty")
    config: dict[str, Any] = Field(description="hyper-parameters by their groups")
    label_snapshot: str = Field(description="SHA-256 of the frozen labels")
    labels: dict[str, Any] = Field(description="counts by kind and class, and how many answers are simulated")
    trials: list[TrialRead]

    @classmethod
    def read(cls, run: Run, summary: Summary, recipe: Recipe | None) -> Self:
        """From a run whose trials are loaded."""
        return cls(
            **cls.facts(run, summary),
            looks=recipe.looks if recipe else None,
            recipe=recipe.sentence if recipe else "",
            recipe_warning=recipe.misfit if recipe else "",
            config=readable(run.config),
            label_snapshot=run.snapshot_digest,
            labels=run.snapshot_facts,
            trials=[
                TrialRead.of(trial, summary.source_by_trial.get(trial.id), summary.places.get(trial.id))
                for trial in run.trials
            ],
        )


class RunList(Output):
    """A page of runs; give `next` as `after`, with the same filters and order, for the page after it."""

    items: list[RunSummary]
    next: int | None


class MetricRead(Output):
    """What a trial reported after an epoch."""

    seed: int
    epoch: int
    epochs: int
    step: int
    seconds: float = Field(description="of training so far, over all attempts")
    losses: dict[str, float]
    target_accuracy: float | None
    source_estimate: SourceEstimateRead | None
    learning_rate: float | None = Field(
        description="of the classifier at the epoch's end; null where there is none, or nobody told it"
    )
    pseudo_label_share: float | None = Field(
        description="share of the target's images that train by the class that the network predicts; null "
        "where none ever does, or nobody told it"
    )
    recorded_at: datetime

    @classmethod
    def of(cls, run: Run, trial: Trial, metric: Metric) -> Self:
        """From the three rows."""
        return cls(
            seed=trial.seed,
            epoch=metric.epoch,
            epochs=metric.epochs,
            step=metric.step,
            seconds=metric.seconds,
            losses=metric.losses,
            target_accuracy=metric.target_accuracy,
            source_estimate=estimate_of(run, metric),
            learning_rate=metric.learning_rate,
            pseudo_label_share=metric.pseudo_label_share,
            recorded_at=metric.recorded_at,
        )


class MetricList(Output):
    """Metrics by seed and epoch."""

    items: list[MetricRead]
    next: str | None = Field(default=None, description="null: the list is whole")
