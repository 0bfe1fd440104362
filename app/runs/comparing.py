"""Several runs beside each other: results, curves, and how they differ from the first."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from math import ceil
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.evaluations import service as evaluations
from app.runs import service
from app.runs.differences import (
    Difference,
    LabelDifference,
    between_hits,
    between_samples,
    between_seeds,
    labels_that_differ,
    settings_that_differ,
)
from app.runs.errors import RunNotFound, TooManyToCompare
from app.runs.finding import NOT_COUNTED, WITHOUT_RESULTS
from app.runs.labels import thaw
from app.runs.models import Metric, Run, Trial, TrialState
from app.runs.summary import Summary
from app.storage import Storage, StoredFileDamaged, StoredFileMissing
from clarinet.recipes.config import flattened

TICKS = 6  # on an axis, beside its 0
MOST = 20  # runs side by side
POINTS = 200  # epochs of a curve, at most; its last one always
SAME = LabelDifference(
    are_equal=True,
    mine={"complementary": 0, "true": 0},
    others={"complementary": 0, "true": 0},
    shared=0,
    reweighted=0,
    examples=0,
)


@dataclass(frozen=True, slots=True)
class Point:
    """The accuracy on the target after an epoch: mean, lowest and highest of the seeds that got there."""

    epoch: int
    mean: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A run beside the first one.

    Args:
        run: with its trials, without their results.
        label: what it is called: its name, or where its images come from and go to.
        summary: its figures.
        points: its curve; none where nothing measures the accuracy on its target.
        by_images, by_seeds: how far it is from the first; None for that itself, and where nothing tells.
        labels: how its labels differ from those of the first; None where a file of both cannot be read.
    """

    run: Run
    label: str
    summary: Summary
    points: list[Point]
    by_images: Difference | None
    by_seeds: Difference | None
    labels: LabelDifference | None

    @property
    def ended_well(self) -> int:
        """Seeds, whether anything measures them or not."""
        return sum(trial.state is TrialState.SUCCEEDED for trial in self.run.trials)

    @property
    def may_be_judged(self) -> bool:
        """Whether asking people is what would tell its accuracy."""
        return self.run.is_finished and bool(self.ended_well) and self.summary.people is None

    @property
    def why_not_drawn(self) -> str:
        """In words that continue a sentence, where it has no curve."""
        if self.summary.people is not None:
            return (
                "people measured its accuracy after its end, and no picture of a known class while it trained"
            )
        if not self.summary.scored.images:
            return self.summary.unscored or "no picture of its target measures the accuracy"
        return "no seed has ended well" if self.run.is_finished else "no epoch has ended yet"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs in the order that was asked for, and the values of their configurations that differ."""

    runs: list[Compared]
    settings: list[tuple[str, list[object]]]

    @property
    def is_drawn(self) -> bool:
        """Whether any of them has a curve."""
        return any(each.points for each in self.runs)

    @property
    def epochs(self) -> int:
        """Where the axis of the curves ends."""
        return max((point.epoch for each in self.runs for point in each.points), default=1)


def compare(
    session: Session, storage: Storage, run_ids: Sequence[UUID], *, by: User, now: datetime
) -> Comparison:
    """Runs side by side; each id counts once.

    Raises:
        NotAllowed: `by` is no admin.
        TooManyToCompare: more than MOST.
        RunNotFound: one is not there.
    """
    accounts.require_admin(by)
    wanted = list(dict.fromkeys(run_ids))
    if len(wanted) > MOST:
        raise TooManyToCompare(len(wanted), MOST)
    rows = session.scalars(select(Run).where(Run.id.in_(wanted)).options(WITHOUT_RESULTS))
    by_id = {run.id: run for run in rows}
    if len(by_id) < len(wanted):
        raise RunNotFound
    runs = [by_id[run_id] for run_id in wanted]
    summaries = service.summaries(session, runs, now=now)
    names = service.names_of(session, runs)
    curves, hits = _curves(session, runs), _hits(session, runs)
    found = []
    for run in runs:
        summary, is_first = summaries[run.id], run is runs[0]
        first = summaries[runs[0].id]
        found.append(
            Compared(
                run=run,
                label=run.name or f"{names[run.campaign_id]} → {names[run.target_dataset_id]}",
                summary=summary,
                points=curves.get(run.id, []) if summary.scored.images else [],
                by_images=None
                if is_first
                else _by_people(session, summary, first) or _by_images(run, runs[0], summary, first, hits),
                by_seeds=None if is_first else between_seeds(_accuracies(run), _accuracies(runs[0])),
                labels=_labels(storage, run, runs[0]),
            )
        )
    configs = [
        flattened(run.config) | {"method": run.method, "setting": run.setting, "preset": run.preset}
        for run in runs
    ]
    return Comparison(found, settings_that_differ(configs))


def _accuracies(run: Run) -> list[float]:
    counted = [trial for trial in run.trials if trial.state not in NOT_COUNTED]
    return [trial.target_accuracy for trial in counted if trial.target_accuracy is not None]


def _by_people(session: Session, mine: Summary, first: Summary) -> Difference | None:
    """Where people judged both on the same pictures."""
    if mine.people is None or first.people is None:
        return None
    found = evaluations.compare_two(session, mine.people.evaluation_id, first.people.evaluation_id)
    if found is None:
        return None
    told = found.difference
    basis = f"{found.images:,} pictures that people judged for both"
    return Difference(told.estimate, told.low, told.high, basis)


def _by_images(
    run: Run, other: Run, mine: Summary, first: Summary, hits: Mapping[UUID, list[Any]]
) -> Difference | None:
    if mine.mean is None or first.mean is None or not mine.scored.images or not first.scored.images:
        return None
    if not (mine.is_final and first.is_final):
        found = between_samples(mine.mean, first.mean, mine.scored, first.scored)
        return replace(found, basis=found.basis + "; one of both has not ended")
    told = [hits.get(each.id, []) for each in (run, other)]
    same = [
        (each.target_dataset_id, each.target_version, each.snapshot_facts["classes"], summary.scored)
        for each, summary in ((run, mine), (other, first))
    ]
    if same[0] == same[1] and all(len(of_run) for of_run in told):
        size = mine.scored.images
        return between_hits(*([seed[:size] for seed in of_run] for of_run in told))
    return between_samples(mine.mean, first.mean, mine.scored, first.scored)


def _hits(session: Session, runs: Sequence[Run]) -> dict[UUID, list[Any]]:
    """Which images each seed found the class of, by run id; only of runs whose every seed keeps them."""
    kept = Trial.result["hits"]
    ids = [run.id for run in runs]
    rows = session.execute(select(Trial.run_id, kept).where(Trial.run_id.in_(ids))).all()
    found: dict[UUID, list[Any]] = {}
    for run_id, told in rows:
        if told is not None:
            found.setdefault(run_id, []).append(np.unpackbits(np.frombuffer(b64decode(told), np.uint8)))
    return {run.id: found[run.id] for run in runs if len(found.get(run.id, ())) == len(run.trials)}


def _curves(session: Session, runs: Sequence[Run]) -> dict[UUID, list[Point]]:
    """Curves by run id; a long one is thinned where its rows lie, so that the last epoch stays."""
    # One that is tried again has no accuracy until its next epoch ends.
    trial_ids = [
        trial.id
        for run in runs
        for trial in run.trials
        if trial.state not in NOT_COUNTED and trial.target_accuracy is not None
    ]
    stride = (Metric.epochs + (POINTS - 1)) // POINTS
    accuracy = Metric.target_accuracy
    rows = session.execute(
        select(
            Trial.run_id,
            Metric.epoch,
            func.avg(accuracy),
            func.min(accuracy),
            func.max(accuracy),
            func.count(accuracy),
        )
        .join(Trial, Trial.id == Metric.trial_id)
        .where(
            Metric.trial_id.in_(trial_ids),
            (Metric.epochs - Metric.epoch) % stride == 0,
            accuracy.is_not(None),
        )
        .group_by(Trial.run_id, Metric.epoch)
        .order_by(Metric.epoch)
    )
    points: dict[UUID, list[Point]] = {}
    for run_id, *figures in rows:
        points.setdefault(run_id, []).append(Point(*figures))
    return points


def _labels(storage: Storage, run: Run, first: Run) -> LabelDifference | None:
    if run.snapshot_digest == first.snapshot_digest:
        return SAME
    classes = [len(each.snapshot_facts["classes"]) for each in (run, first)]
    if run.source_dataset_id != first.source_dataset_id or classes[0] != classes[1]:
        return None
    try:
        return _differing(storage, run.snapshot_digest, first.snapshot_digest, classes[0])
    except (StoredFileMissing, StoredFileDamaged):
        return None


@lru_cache(maxsize=256)  # a digest names what never changes
def _differing(storage: Storage, mine: str, others: str, num_classes: int) -> LabelDifference:
    return labels_that_differ(*(thaw(storage, digest, num_classes=num_classes) for digest in (mine, others)))


def ticks_of(epochs: int) -> list[int]:
    """Round numbers of epochs along an axis that ends there."""
    step = next(
        size * 10**power for power in range(9) for size in (1, 2, 5) if epochs / (size * 10**power) <= TICKS
    )
    return [step * number for number in range(ceil(epochs / step) + 1) if step * number <= epochs]
