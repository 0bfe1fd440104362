"""What is sent and what comes back about trainings and models.

As the OpenAPI document has it; a test compares them field by field.
Answers may have more fields than are named here: a newer server says more.
"""

from typing import Any, Literal, TypedDict

from clarinet_client.shapes.datasets import Looks

RunState = Literal["queued", "running", "succeeded", "failed", "cancelled"]


class SourceEstimate(TypedDict):
    """What held-out answers say of the accuracy on the source."""

    estimate: float | None
    low: float | None
    high: float | None
    held_out: int
    needed: int
    missing: int


class RunChoices(TypedDict, total=False):
    """How to train; what is not said follows from the images."""

    method: str
    setting: str
    preset: str | None
    seeds: list[int]
    config: dict[str, bool | int | float | str]
    imported_labels: bool
    uniform_only: bool
    note: str
    processes: int
    download_weights: bool


class NewRun(RunChoices):
    """A training to launch."""

    target_dataset_id: str


class RunSummary(TypedDict):
    """A training: mean and spread of its trials, one for each seed."""

    id: str
    number: int
    campaign_id: str
    source_dataset_id: str
    target_dataset_id: str
    method: str
    setting: str
    preset: str
    state: RunState
    seeds: list[int]
    scored_on: int
    scored_split: Literal["test", "train"]
    scored_of: int
    unscored: str
    mean_accuracy: float | None
    interval_low: float | None
    interval_high: float | None
    chance: float
    is_guessing: bool
    std_accuracy: float | None
    source_estimate: SourceEstimate | None
    epoch: int
    epochs: int
    time_left_s: float | None
    created_at: str
    cancel_requested_at: str | None
    note: str


class Trial(TypedDict):
    """One seed of a training."""

    id: str
    seed: int
    state: RunState
    failure: str | None
    attempts: int
    started_at: str | None
    finished_at: str | None
    target_accuracy: float | None


class Run(RunSummary):
    """The same with what it trains on, by which values, and its trials."""

    looks: Looks | None
    recipe: str
    recipe_warning: str
    config: dict[str, Any]
    label_snapshot: str
    labels: dict[str, Any]
    trials: list[Trial]


class Metric(TypedDict):
    """What a trial reported after an epoch."""

    seed: int
    epoch: int
    epochs: int
    step: int
    seconds: float
    losses: dict[str, float]
    target_accuracy: float | None
    learning_rate: float | None
    pseudo_label_share: float | None
    recorded_at: str


class Model(TypedDict):
    """A trained network that can be downloaded; `card` says what it is."""

    id: str
    trial_id: str
    run_id: str
    campaign_id: str
    source_dataset_id: str
    target_dataset_id: str
    name: str
    version: int
    aliases: list[str]
    archived_at: str | None
    digest: str
    size_bytes: int
    card: dict[str, Any]
    chance: float
    created_at: str


class Picture(TypedDict):
    """What a model says of one picture; `probabilities` are in the order of the classes."""

    name: str
    predicted_class: str | None
    probabilities: list[float] | None
    refused: str | None


class Pictures(TypedDict):
    """What one model says of some pictures, in their order."""

    model_id: str
    name: str
    version: int
    digest: str
    classes: list[str]
    pictures: list[Picture]
