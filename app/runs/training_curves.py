"""How a run trained: losses, pseudo-labels, learning rate and throughput by epoch, for the plots. Pure."""

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from app.runs.configs import epochs_of
from app.runs.models import Metric, Run
from clarinet.recipes.config import flattened

MOST_POINTS = 200  # of each curve: there are many

Figure = Callable[[Metric], float | None]


def training_curves(run: Run, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Id, title and plot of each figure that was told, with its seeds.

    Args:
        run: with its trials.
        metrics: of all trials, by trial and epoch.
    """
    names = dict.fromkeys(name for metric in metrics for name in metric.losses)
    paces = _paces(metrics) if not flattened(run.config).get("kept_features") else {}
    figures: list[tuple[str, str, Figure]] = [
        (f"Loss: {name.replace('_', ' ')}", "number", lambda metric, name=name: metric.losses.get(name))  # type: ignore[misc]
        for name in names
    ]
    figures += [
        (
            "Target images that train by their predicted class",
            "share",
            lambda metric: metric.pseudo_label_share,
        ),
        ("Learning rate", "number", lambda metric: metric.learning_rate),
        ("Steps a second", "number", lambda metric: paces.get((metric.trial_id, metric.epoch))),
    ]
    found = []
    for title, unit, figure in figures:
        plot = _plot(run, metrics, title, unit, figure)
        if plot is not None:
            id_ = "training-" + re.sub(r"[^a-z]+", "-", title.lower())
            found.append({"id": id_, "title": title, "plot": plot})
    return found


def _paces(metrics: Sequence[Metric]) -> dict[tuple[Any, int], float]:
    """Steps a second of each epoch, by trial and epoch; without what a gap between epochs would hide."""
    found, before = {}, None
    for metric in metrics:
        is_next = before is not None and (before.trial_id, before.epoch + 1) == (
            metric.trial_id,
            metric.epoch,
        )
        step, seconds = (before.step, before.seconds) if before is not None and is_next else (0, 0.0)
        if (is_next or metric.epoch == 1) and metric.seconds > seconds:
            found[metric.trial_id, metric.epoch] = (metric.step - step) / (metric.seconds - seconds)
        before = metric
    return found


def _plot(
    run: Run, metrics: Sequence[Metric], title: str, unit: str, figure: Figure
) -> dict[str, Any] | None:
    """As curve.js takes it; None where no epoch told the figure."""
    by_trial: dict[Any, dict[int, float]] = {trial.id: {} for trial in run.trials}
    for metric in metrics:
        value = figure(metric)
        if value is not None:
            by_trial[metric.trial_id][metric.epoch] = value
    epochs = sorted({epoch for values in by_trial.values() for epoch in values})
    if not epochs:
        return None
    stride = max(1, ceil(len(epochs) / MOST_POINTS))
    kept = [epoch for place, epoch in enumerate(reversed(epochs)) if place % stride == 0][::-1]
    return {
        "x": kept,
        "x_name": "epoch",
        "y_name": title,
        "unit": unit,
        "x_max": epochs_of(run.config),
        "series": [
            {"name": f"seed {trial.seed}", "values": [by_trial[trial.id].get(epoch) for epoch in kept]}
            for trial in run.trials
        ],
        "lines": [],
    }
