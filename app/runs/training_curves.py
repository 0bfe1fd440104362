"""How a run trained: losses, pseudo-labels, learning rate and throughput by epoch, for the plots. Pure."""

import re
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from app.runs.configs import epochs_of
from app.runs.models import Metric, Run
from clarinet.recipes.config import flattened

# What lowers each loss, by its name in the metrics.
ABOUT = {
    "complementary": "of the labels that say what an image is not",
    "true": "of the labels that say what an image is",
    "class_floor": "where a class is predicted more rarely than its floor allows",
    "neighbours": "where an image is predicted otherwise than the source images that look most like it",
    "source_self_training": "where a source image is not predicted as the averaged network surely does",
    "target_self_training": "where a distorted target image is not predicted as the clean one surely is",
    "adversarial": "of telling source from target by their features, which the network learns to prevent",
    "discrepancy": "how far the features of source and target lie apart",
    "confusion": "how often pairs of classes are both likely for one target image",
    "contrast": "of telling two views of an image from those of others, before any label is used",
}
MOST_POINTS = 200  # of each curve: there are many

LOSS = "Loss: "

Figure = Callable[[Metric], float | None]


def training_curves(run: Run, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Id, title, what it is about and plot of each figure that was told, with its seeds.

    A loss that was 0 in every epoch has no plot. What nobody has explained has "" in the place of that.

    Args:
        run: with its trials.
        metrics: of all trials, by trial and epoch.
    """
    names = dict.fromkeys(name for metric in metrics for name in metric.losses)
    values = flattened(run.config)
    has_rounds = values.get("kept_features") and not values.get("bottleneck")
    paces = {} if has_rounds else _paces(metrics)
    figures: list[tuple[str, str, Figure]] = [
        (f"{LOSS}{name.replace('_', ' ')}", "number", lambda metric, name=name: metric.losses.get(name))  # type: ignore[misc]
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
        plot = _plot(run, metrics, unit, figure)
        if plot is not None:
            id_ = "training-" + re.sub(r"[^a-z]+", "-", title.lower())
            is_flat = title.startswith(LOSS) and not any(
                value for series in plot["series"] for value in series["values"]
            )
            about = ABOUT.get(title.removeprefix(LOSS).replace(" ", "_"), "")
            found.append({"id": id_, "title": title, "about": about, "plot": None if is_flat else plot})
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


def _plot(run: Run, metrics: Sequence[Metric], unit: str, figure: Figure) -> dict[str, Any] | None:
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
        "y_name": "share" if unit == "share" else "value",
        "unit": unit,
        "x_min": 1,  # all charts of a page begin together, whatever epoch a figure begins at
        "x_max": epochs_of(run.config),
        "series": [
            {"name": f"seed {trial.seed}", "values": [by_trial[trial.id].get(epoch) for epoch in kept]}
            for trial in run.trials
        ],
        "lines": [],
    }
