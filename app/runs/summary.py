"""Figures over the seeds of a run: mean, spread, time left, curves. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from statistics import fmean, stdev
from typing import Any

from app.runs.configs import epochs_of
from app.runs.models import Metric, Run, Trial, TrialState

# Of many epochs a curve needs no more points than a screen shows.
MOST_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Mean and spread over the seeds that have a value; fractions.

    Args:
        mean, spread: of the target accuracy; spread is the sample standard deviation, None for one seed.
        estimate, estimate_error: mean estimated accuracy on the source and its standard error.
        seeds: how many the mean is over.
        is_final: whether every seed has ended well.
        time_left_s: seconds until the last seed ends at the present pace; None while unknown.
        epoch, epochs: of all seeds together.
    """

    mean: float | None
    spread: float | None
    estimate: float | None
    estimate_error: float | None
    seeds: int
    is_final: bool
    time_left_s: float | None
    epoch: int
    epochs: int


def summarise(run: Run, latest: dict[Any, Metric], *, now: datetime) -> Summary:
    """The figures of a run whose trials are loaded.

    Args:
        run: with its trials.
        latest: the last metric of each trial, by trial id.
        now: to count the time since a metric was reported.
    """
    # A seed that failed or was cancelled has figures of an unfinished training; they would spoil the mean.
    counted = [trial for trial in run.trials if trial.state not in (TrialState.FAILED, TrialState.CANCELLED)]
    accuracies = [trial.target_accuracy for trial in counted if trial.target_accuracy is not None]
    last = [latest[trial.id] for trial in run.trials if trial.id in latest]
    estimates = [
        trial.source_accuracy_estimate for trial in counted if trial.source_accuracy_estimate is not None
    ]
    errors = [metric.source_accuracy_error for metric in last if metric.source_accuracy_error is not None]
    epochs = epochs_of(run.config)
    return Summary(
        mean=fmean(accuracies) if accuracies else None,
        spread=stdev(accuracies) if len(accuracies) > 1 else None,
        estimate=fmean(estimates) if estimates else None,
        # The held-out labels differ by seed but come from one campaign: averaging would promise too much.
        estimate_error=fmean(errors) if errors else None,
        seeds=len(accuracies),
        is_final=all(trial.state is TrialState.SUCCEEDED for trial in run.trials),
        time_left_s=_time_left(run, latest, now),
        epoch=sum(metric.epoch for metric in last),
        epochs=epochs * len(run.trials),
    )


def _time_left(run: Run, latest: dict[Any, Metric], now: datetime) -> float | None:
    running = [trial for trial in run.trials if trial.state is TrialState.RUNNING]
    paces = [metric.seconds / metric.epoch for metric in latest.values() if metric.epoch]
    if not running or not paces:
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


def curve(run: Run, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Accuracy by epoch and seed, as the page's plot and the API take it; thinned to MOST_POINTS epochs.

    The accuracy is the one on the target where labels exist, else the estimate on the source.
    """
    on_target = any(metric.target_accuracy is not None for metric in metrics)
    by_trial: dict[Any, dict[int, float | None]] = {trial.id: {} for trial in run.trials}
    for metric in metrics:
        value = metric.target_accuracy if on_target else metric.source_accuracy_estimate
        by_trial[metric.trial_id][metric.epoch] = value
    epochs = sorted({metric.epoch for metric in metrics})
    stride = max(1, ceil(len(epochs) / MOST_POINTS))
    kept = [epoch for place, epoch in enumerate(reversed(epochs)) if place % stride == 0][::-1]
    return {
        "x": kept,
        "x_name": "epoch",
        "x_max": epochs_of(run.config),  # the axis stands still while the curve grows
        "series": [
            {"name": f"seed {trial.seed}", "values": [by_trial[trial.id].get(epoch) for epoch in kept]}
            for trial in run.trials
        ],
        "lines": [],
    }
