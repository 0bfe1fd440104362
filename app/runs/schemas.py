"""What the JSON API of runs accepts and returns."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from app.runs.configs import Recipe, readable
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.summary import Summary
from app.schemas import Input, Output
from clarinet.recipes.choices import Looks

RunNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]  # what the column holds


class RunCreate(Input):
    """A run to start: one trial per seed over the labels the campaign has at this moment."""

    method: str = Field(
        default="clarinet-plus", description="clarinet-plus, or one of the paper's, as in the form"
    )
    setting: str = Field(default="cc", description="cc: complementary labels only; pc: true labels as well")
    imported_labels: bool = Field(
        default=False, description="also the campaign's labels from elsewhere, which nobody drew uniformly"
    )
    preset: str | None = Field(
        default=None,
        description="of the method, as in the form; absent or default: what fits the images; quick: the same "
        "of clarinet-plus, quickly; digits or photographs: that, whatever the images are",
    )
    seeds: list[StrictInt] = Field(default=[0], description="1 to 20, each once")
    target_dataset_id: UUID
    config: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] = Field(
        default={}, description="single hyper-parameters that replace the preset's"
    )


class TrialRead(Output):
    """One seed of a run. Accuracies are fractions; `result` is there once it has ended well."""

    id: UUID
    seed: int
    state: TrialState
    failure: str | None
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    target_accuracy: float | None
    source_accuracy_estimate: float | None
    result: dict[str, Any] | None


class RunSummary(Output):
    """A run in a list. Accuracies are fractions, over the seeds that have one."""

    id: UUID
    number: int
    campaign_id: UUID
    target_dataset_id: UUID
    method: str
    setting: str
    preset: str
    state: TrialState
    seeds: list[int]
    mean_accuracy: float | None = Field(description="on the target's test split")
    std_accuracy: float | None = Field(description="sample standard deviation over the seeds")
    estimated_source_accuracy: float | None = Field(description="from held-out complementary labels")
    estimated_source_accuracy_error: float | None = Field(description="its standard error")
    epoch: int = Field(description="epochs done, over all seeds")
    epochs: int = Field(description="epochs to do, over all seeds")
    time_left_s: float | None
    created_at: datetime
    cancel_requested_at: datetime | None

    @classmethod
    def facts(cls, run: Run, summary: Summary) -> dict[str, Any]:
        """The fields that a list and a single run share."""
        return {
            "id": run.id,
            "number": run.number,
            "campaign_id": run.campaign_id,
            "target_dataset_id": run.target_dataset_id,
            "method": run.method,
            "setting": run.setting,
            "preset": run.preset,
            "state": run.state,
            "seeds": [trial.seed for trial in run.trials],
            "mean_accuracy": summary.mean,
            "std_accuracy": summary.spread,
            "estimated_source_accuracy": summary.estimate,
            "estimated_source_accuracy_error": summary.estimate_error,
            "epoch": summary.epoch,
            "epochs": summary.epochs,
            "time_left_s": summary.time_left_s,
            "created_at": run.created_at,
            "cancel_requested_at": run.cancel_requested_at,
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
            trials=[TrialRead.model_validate(trial) for trial in run.trials],
        )


class RunList(Output):
    """A page of runs, newest first; give `next` as `before` for the page after it."""

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
    source_accuracy_estimate: float | None
    source_accuracy_error: float | None
    recorded_at: datetime

    @classmethod
    def of(cls, trial: Trial, metric: Metric) -> Self:
        """From the two rows."""
        return cls(
            seed=trial.seed,
            epoch=metric.epoch,
            epochs=metric.epochs,
            step=metric.step,
            seconds=metric.seconds,
            losses=metric.losses,
            target_accuracy=metric.target_accuracy,
            source_accuracy_estimate=metric.source_accuracy_estimate,
            source_accuracy_error=metric.source_accuracy_error,
            recorded_at=metric.recorded_at,
        )


class MetricList(Output):
    """Metrics by seed and epoch."""

    items: list[MetricRead]
    next: None = None
