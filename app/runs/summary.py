"""Figures over the seeds of a run: mean, spread, time left, curves. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any

from app.evaluations.service import Measured
from app.runs.configs import epochs_of
from app.runs.estimates import estimate_of, is_too_small, over_seeds
from app.runs.models import Metric, Run, Trial, TrialState
from clarinet.recipes.scoring import MOST_PER_EPOCH, ScoredOn
from clarinet.recipes.source_accuracy import SourceEstimate

# An accuracy with the ends of its interval, where it has one.
Point = tuple[float | None, float | None, float | None]
# Of many epochs a curve needs no more points than a screen shows.
MOST_POINTS = 400
SHORTEST_S = 0.5  # less left would be shown as none


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Mean and spread over the seeds that have a value; fractions.

    Args:
        mean, spread: of the target accuracy; spread is the sample standard deviation, None for one seed.
        lowest, highest: of the seeds, where the mean is of several.
        seeds: how many the mean is over.
        low, high: ends of the 95 % sampling interval of the mean; None without one.
        chance: the accuracy of guessing among the classes.
        scored: the images of the target that score; none where its accuracy stays unmeasured.
        unscored: which do not, in words; "" where all do.
        people: the accuracy as people measured it; None where labelled test images score, or nobody did.
        source: estimated accuracy on the source, or what it lacks; None where nothing is told of it.
        source_is_small: whether the source has too few pictures for that, whatever people answer.
        source_by_trial: the same of single seeds, by trial id.
        is_final: whether every seed has ended well.
        time_left_s: seconds until the last seed ends at the present pace; None while unknown.
        epoch, epochs: of all seeds together.
        places: where its waiting trials stand in the queue, by trial id.
        setback: the first sentence of why a worker could not train one of them; "" where all get on.
    """

    mean: float | None
    spread: float | None
    lowest: float | None
    highest: float | None
    seeds: int
    low: float | None
    high: float | None
    chance: float
    scored: ScoredOn
    unscored: str
    people: Measured | None
    source: SourceEstimate | None
    source_is_small: bool
    source_by_trial: dict[Any, SourceEstimate]
    is_final: bool
    time_left_s: float | None
    epoch: int
    epochs: int
    places: Mapping[Any, int]
    setback: str

    @property
    def is_guessing(self) -> bool:
        """Whether the run has ended well and its headline, which is whole, cannot be told from guessing."""
        if self.people is not None:
            return self.people.is_over and is_guessing(self.people.interval.low, self.chance)
        return self.is_final and is_guessing(self.low, self.chance)

    @property
    def is_ending(self) -> bool:
        """Whether every epoch is done, and scoring and publishing are left, whose time no epoch tells."""
        return self.time_left_s is not None and self.epoch >= self.epochs

    @property
    def is_late(self) -> bool:
        """Whether an epoch takes longer than those before it did, so that the time left has run out."""
        return self.time_left_s is not None and self.time_left_s < SHORTEST_S and not self.is_ending

    @property
    def place(self) -> int | None:
        """Where the next of them stands."""
        return min(self.places.values(), default=None)


def is_guessing(low: float | None, chance: float) -> bool:
    """Whether the lower end of an accuracy's interval is not above chance; False without an interval."""
    return low is not None and low <= chance


def summarise(
    run: Run,
    latest: dict[Any, Metric],
    *,
    scored: ScoredOn,
    unscored: str = "",
    places: Mapping[Any, int] = MappingProxyType({}),
    people: Measured | None = None,
    source_images: int | None = None,
    now: datetime,
) -> Summary:
    """The figures of a run whose trials are loaded.

    Args:
        run: with its trials.
        latest: the last metric of each trial, by trial id.
        scored: the images of the target that score.
        unscored: which do not.
        places: of trials that wait, by trial id; those of other runs may be among them.
        people: what people's answers say.
        source_images: that people can be asked about; None where that is not known.
        now: to count the time since a metric was reported.
    """
    # A seed that failed or was cancelled has figures of an unfinished training; they would spoil the mean.
    counted = [trial for trial in run.trials if trial.state not in (TrialState.FAILED, TrialState.CANCELLED)]
    accuracies = [trial.target_accuracy for trial in counted if trial.target_accuracy is not None]
    last = [latest[trial.id] for trial in run.trials if trial.id in latest]
    estimates = {
        trial.id: found
        for trial in run.trials
        if trial.id in latest and (found := estimate_of(run, latest[trial.id])) is not None
    }
    source = over_seeds([estimates[trial.id] for trial in counted if trial.id in estimates])
    is_several = len(accuracies) > 1
    mean = fmean(accuracies) if accuracies else None
    low, high = None, None
    if mean is not None and scored.images:
        is_whole = all(trial.state is TrialState.SUCCEEDED for trial in counted)
        low, high = scored.interval(mean, most=None if is_whole else MOST_PER_EPOCH)
    epochs = epochs_of(run.config)
    return Summary(
        mean=mean,
        low=low,
        high=high,
        spread=stdev(accuracies) if is_several else None,
        lowest=min(accuracies) if is_several else None,
        highest=max(accuracies) if is_several else None,
        seeds=len(accuracies),
        chance=1 / len(run.snapshot_facts["classes"]),
        scored=scored,
        unscored=unscored,
        people=people,
        source=source,
        source_is_small=source is not None and is_too_small(source, run, source_images),
        source_by_trial=estimates,
        is_final=all(trial.state is TrialState.SUCCEEDED for trial in run.trials),
        time_left_s=_time_left(run, latest, now),
        epoch=sum(metric.epoch for metric in last),
        epochs=epochs * len(run.trials),
        places={trial.id: places[trial.id] for trial in run.trials if trial.id in places},
        setback=next(
            (
                _first_sentence(trial.setback)
                for trial in run.trials
                if is_set_back(trial, latest.get(trial.id))
            ),
            "",
        ),
    )


def is_set_back(trial: Trial, metric: Metric | None) -> bool:
    """Whether a worker could not train it, and no epoch has ended since; `metric`: its last one."""
    if not trial.setback or trial.state not in (TrialState.QUEUED, TrialState.RUNNING):
        return False
    return metric is None or trial.not_before is None or metric.recorded_at < trial.not_before


def _first_sentence(reason: str | None) -> str:
    return (reason or "").partition("\n")[0].partition(". ")[0].removesuffix(".")


def _time_left(run: Run, latest: dict[Any, Metric], now: datetime) -> float | None:
    running = [trial for trial in run.trials if trial.state is TrialState.RUNNING]
    if not running:
        return None
    paces = [metric.seconds / metric.epoch for metric in latest.values() if metric.epoch]
    if not paces:
        return None
    pace = fmean(paces)
    epochs = epochs_of(run.config)

    def left(trial: Trial) -> float:
        metric = latest.get(trial.id)
        if metric is None:
            return epochs * pace
        own = metric.seconds / metric.epoch
        since = max(0.0, (now - metric.recorded_at).total_seconds())
        return max(0.0, (metric.epochs - metric.epoch) * own - since)

    queued = sum(trial.state is TrialState.QUEUED for trial in run.trials)
    return max(map(left, running)) + ceil(queued / len(running)) * epochs * pace


def curve(
    run: Run, metrics: Sequence[Metric], *, on_target: bool, lines: Sequence[dict[str, object]] = ()
) -> dict[str, Any]:
    """Accuracy by epoch and seed, as the page's plot takes it; thinned to MOST_POINTS epochs.

    The accuracy is the one on the target where that is measured, else the estimate on the source with the
    ends of its interval. `lines` are references for the first: name and value.
    """
    by_trial: dict[Any, dict[int, Point]] = {trial.id: {} for trial in run.trials}
    for metric in metrics:
        found = None if on_target else estimate_of(run, metric)
        point = (found.estimate, found.low, found.high) if found else (metric.target_accuracy, None, None)
        by_trial[metric.trial_id][metric.epoch] = point
    epochs = sorted({metric.epoch for metric in metrics})
    stride = max(1, ceil(len(epochs) / MOST_POINTS))
    kept = [epoch for place, epoch in enumerate(reversed(epochs)) if place % stride == 0][::-1]
    return {
        "x": kept,
        "x_name": "epoch",
        "y_name": "on the target" if on_target else "estimated on the source",
        "y_title": "Accuracy",
        "x_min": 1,
        "x_max": epochs_of(run.config),  # the axis stands still while the curve grows
        "series": [_series(trial, by_trial[trial.id], kept, on_target=on_target) for trial in run.trials],
        "lines": list(lines) if on_target else [],
    }


def _series(
    trial: Trial, points: dict[int, Point], epochs: Sequence[int], *, on_target: bool
) -> dict[str, Any]:
    rows = [points.get(epoch, (None, None, None)) for epoch in epochs]
    drawn = {"name": f"seed {trial.seed}", "values": [value for value, _, _ in rows]}
    return (
        drawn
        if on_target
        else drawn | {"low": [low for _, low, _ in rows], "high": [high for *_, high in rows]}
    )
