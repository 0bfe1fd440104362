"""Runs, their trials (one per seed) and what these report while they train."""

import enum
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    String,
    Text,
    UniqueConstraint,
    Uuid,
    select,
    type_coerce,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from app.campaigns.models import Campaign
from app.claims import Claimable
from app.db import Base, BigId, enum_column
from app.runs.faults import Fault
from clarinet.recipes.choices import DoingKind
from clarinet.recipes.doing import Doing


class TrialState(enum.StrEnum):
    """A trial's life; a run's state follows from its trials."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Priority(enum.StrEnum):
    """Which runs' trials go before those of others."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


NOTE = 500  # most characters of what people write beside a run
NAME = 120  # of what they call it
TAG = 40
MOST_TAGS = 20
TRACEPARENT = 55  # characters, as W3C's Trace Context has it


class Run(Base):
    """One request to train: method, setting, config, frozen labels, target, seeds."""

    __tablename__ = "run"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    number: Mapped[int] = mapped_column(unique=True)  # what people call it: "run 7"
    campaign_id: Mapped[UUID] = mapped_column(ForeignKey("campaign.id", ondelete="RESTRICT"), index=True)
    target_dataset_id: Mapped[UUID] = mapped_column(ForeignKey("dataset.id", ondelete="RESTRICT"), index=True)
    # The type is said, because that of a foreign key is known only once both tables are.
    source_dataset_id: Mapped[UUID] = column_property(
        type_coerce(
            select(Campaign.dataset_id)
            .where(Campaign.id == campaign_id)
            .correlate_except(Campaign)
            .scalar_subquery(),
            Uuid(),
        )
    )
    # Numbers of the versions of both datasets that it trains on, whatever joins them later.
    source_version: Mapped[int] = mapped_column(default=1, server_default="1")
    target_version: Mapped[int] = mapped_column(default=1, server_default="1")
    method: Mapped[str] = mapped_column(String(40))
    setting: Mapped[str] = mapped_column(String(8))
    preset: Mapped[str] = mapped_column(String(40))
    # Of one worker's host that share each batch of a trial, each on a GPU of its own.
    processes: Mapped[int] = mapped_column(default=1, server_default="1")
    config: Mapped[dict[str, Any]]  # every TrainConfig field but the seed
    snapshot_digest: Mapped[str] = mapped_column(String(64))  # content address of the frozen labels
    snapshot_facts: Mapped[
        dict[str, Any]
    ]  # counts by kind and class, how many answers are simulated, unfinished?
    created_by_id: Mapped[UUID] = mapped_column(ForeignKey("user.id", ondelete="RESTRICT"))
    created_at: Mapped[datetime]
    cancel_requested_at: Mapped[datetime | None]
    # Since then nobody takes its trials, and those that train are being handed back.
    paused_at: Mapped[datetime | None]
    priority: Mapped[Priority] = mapped_column(
        enum_column(Priority), default=Priority.NORMAL, server_default=Priority.NORMAL.value
    )
    # What people write beside it, so that they know it again; nothing of the training follows from it.
    note: Mapped[str] = mapped_column(String(NOTE), default="", server_default="")
    name: Mapped[str] = mapped_column(String(NAME), default="", server_default="")
    tags: Mapped[list[str]] = mapped_column(default=list, server_default="[]")
    archived_at: Mapped[datetime | None]  # put away by people: lists leave it out until they are asked for it
    # Of the request that launched it, where that is traced: whichever message wakes a worker, its trials
    # belong to that trace.
    traceparent: Mapped[str | None] = mapped_column(String(TRACEPARENT))
    sweep_id: Mapped[UUID | None] = mapped_column(index=True)  # runs that were launched together share one

    trials: Mapped[list["Trial"]] = relationship(lazy="raise", order_by="Trial.seed", back_populates="run")

    @property
    def state(self) -> TrialState:
        """Running while any trial is; failed or cancelled if any trial ended so; else as all trials agree."""
        states = {trial.state for trial in self.trials}
        if TrialState.RUNNING in states or (TrialState.QUEUED in states and len(states) > 1):
            return TrialState.RUNNING
        for state in (TrialState.QUEUED, TrialState.FAILED, TrialState.CANCELLED):
            if state in states:
                return state
        return TrialState.SUCCEEDED

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in (TrialState.QUEUED, TrialState.RUNNING)

    @property
    def is_paused(self) -> bool:
        """Whether people let it wait; one that has ended does not."""
        return self.paused_at is not None and not self.is_finished


class DeletedRun(Base):
    """The number of a run that was deleted, so that no other is called by it."""

    __tablename__ = "deleted_run"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    deleted_at: Mapped[datetime]
    snapshot_digest: Mapped[str | None] = mapped_column(String(64))  # until upkeep has seen who else uses it


class Trial(Claimable, Base):
    """One seed of a run."""

    __tablename__ = "trial"
    __table_args__ = (
        UniqueConstraint("run_id", "seed"),
        CheckConstraint("seed >= 0", name="seed_not_negative"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    seed: Mapped[int]
    state: Mapped[TrialState] = mapped_column(enum_column(TrialState), default=TrialState.QUEUED, index=True)
    failure: Mapped[str | None] = mapped_column(Text)
    queued_at: Mapped[datetime]  # last time it was nudged
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    target_accuracy: Mapped[float | None]  # fraction, on the target's images that score, last epoch
    result: Mapped[dict[str, Any] | None]  # per_class_accuracy, confusion, steps, epochs, seconds, versions
    # Seconds of training before people let it try again: its time limit does not count them.
    excused_s: Mapped[float] = mapped_column(default=0.0, server_default="0")
    # The newest of its metrics, kept with it so that lists need not look through all; see `last_metric_of`.
    last_metric: Mapped[dict[str, Any] | None]
    # What its process does while no epoch ends, and how much of it is done; all three or none.
    doing: Mapped[DoingKind | None] = mapped_column(String(20))
    doing_done: Mapped[int | None]
    doing_total: Mapped[int | None]
    fault: Mapped[Fault | None] = mapped_column(enum_column(Fault))  # of its failure or last setback
    # Attempts that were not its own fault, which `attempts` does not count; why, the last time.
    setbacks: Mapped[int] = mapped_column(default=0, server_default="0")
    setback: Mapped[str | None] = mapped_column(Text)
    not_before: Mapped[datetime | None]  # until then nobody takes it after a setback
    avoided: Mapped[list[str]] = mapped_column(default=list, server_default="[]")  # workers that set it back
    launches: Mapped[int] = mapped_column(
        default=0, server_default="0"
    )  # as jobs of a cluster, since a claim
    launched_at: Mapped[datetime | None]  # the last of them

    run: Mapped[Run] = relationship(lazy="raise", back_populates="trials")

    @property
    def doing_now(self) -> Doing | None:
        """What it does while no epoch ends; None where epochs tell how far it is, or nobody trains it."""
        return doing_of(self.doing, self.doing_done, self.doing_total)


def doing_of(kind: DoingKind | None, done: int | None, total: int | None) -> Doing | None:
    """The three columns of a trial as one."""
    return None if kind is None or done is None or total is None else Doing(kind, done, total)


class Metric(Base):
    """What a trial reported after one epoch."""

    __tablename__ = "metric"
    __table_args__ = (UniqueConstraint("trial_id", "epoch"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    trial_id: Mapped[UUID] = mapped_column(ForeignKey("trial.id", ondelete="CASCADE"))
    epoch: Mapped[int]
    epochs: Mapped[int]  # how many there will be
    step: Mapped[int]
    seconds: Mapped[float]  # of training so far, over all attempts
    losses: Mapped[dict[str, Any]]
    target_accuracy: Mapped[float | None]
    source_estimate: Mapped[dict[str, Any] | None]  # the library's SourceEstimate; see estimates.py
    # What versions up to 0.1.0 wrote in its place, with its standard error; it may lie below 0.
    source_accuracy_estimate: Mapped[float | None]
    source_accuracy_error: Mapped[float | None]
    # Of the classifier at the epoch's end, and which share of the target's images train by their predicted
    # class; both None where there is none, and of trainings that did not tell them yet.
    learning_rate: Mapped[float | None]
    pseudo_label_share: Mapped[float | None]
    recorded_at: Mapped[datetime]


# What `Trial.last_metric` keeps of a metric; `recorded_at` is there as well, as text.
KEPT = (
    "epoch",
    "epochs",
    "step",
    "seconds",
    "losses",
    "target_accuracy",
    "source_estimate",
    "source_accuracy_estimate",
    "source_accuracy_error",
    "learning_rate",
    "pseudo_label_share",
)
# What is left of it where people let the trial try again: how far it was, and nothing that it has reached.
HOW_FAR = ("epoch", "epochs", "step", "seconds")


def kept_of(metric: Metric) -> dict[str, Any]:
    """A metric as its trial keeps the newest one."""
    kept = {name: getattr(metric, name) for name in KEPT}
    return kept | {"recorded_at": metric.recorded_at.isoformat()}


def last_metric_of(trial: Trial) -> Metric | None:
    """The newest metric of a trial, as it keeps it: never to be added to a session."""
    if trial.last_metric is None:
        return None
    kept = {name: trial.last_metric.get(name) for name in KEPT}
    at = datetime.fromisoformat(trial.last_metric["recorded_at"])
    return Metric(trial_id=trial.id, recorded_at=at, **kept)


def without_figures(kept: dict[str, Any] | None) -> dict[str, Any] | None:
    """A kept metric that tells how far a trial was and counts for nothing, until its next epoch ends."""
    if kept is None:
        return None
    empty: dict[str, Any] = dict.fromkeys(KEPT) | {"losses": {}}
    return kept | empty | {name: kept[name] for name in HOW_FAR}


class Worker(Base):
    """A worker process that was seen lately; a silent one is not "up"."""

    __tablename__ = "worker"

    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    queues: Mapped[str] = mapped_column(String(80))
    device: Mapped[str] = mapped_column(String(120))
    seen_at: Mapped[datetime]
    # Of an earlier version that still beats nothing more is known.
    host: Mapped[str] = mapped_column(String(120), default="", server_default="")
    process: Mapped[str] = mapped_column(
        String(160), default="", server_default=""
    )  # its trials' claims begin so
    version: Mapped[str] = mapped_column(String(40), default="", server_default="")
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)  # of what it trains on
    memory_free_bytes: Mapped[int | None] = mapped_column(BigInteger)
    started_at: Mapped[datetime | None]
    # Names of trained weights that were downloaded there; None: nobody looked.
    weights: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    trouble: Mapped[str | None] = mapped_column(Text)  # why it takes no trainings, in a sentence
    # Into so many it can split a run: its GPUs, else its cores. 0: none of the queue's; None: not told.
    most_processes: Mapped[int | None]
