"""Charts of the tables: accuracy by epoch and by answers, as SVG."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from clarinet.reproduction.charts import Series, line_chart
from clarinet.reproduction.grouping import Group, named_preset, setting_of
from clarinet.reproduction.trials import Trial


def curves(groups: Sequence[Group]) -> dict[str, str]:
    """File name to SVG: for each task and setting the accuracy by epoch, and by answers where these vary."""
    drawn: dict[str, str] = {}
    by_setting: dict[tuple[str, str], list[Group]] = {}
    by_answers: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for group in groups:
        trial = group.trial
        if not trial.answers and not trial.label_noise:
            by_setting.setdefault((trial.task, setting_of(trial)), []).append(group)
        if trial.answers and group.accuracies:
            name = f"{_name(trial)}, {setting_of(replace(trial, answers=0))}"
            line = by_answers.setdefault(trial.task, {}).setdefault(name, [])
            line.append((trial.answers, statistics.fmean(group.accuracies)))
    for (task, setting), members in by_setting.items():
        series = [Series(_name(group.trial), points) for group in members if (points := _mean_curve(group))]
        if series:
            file = f"{task.replace('>', '')}-{setting.replace(', ', '-').replace(' ', '-')}.svg"
            title = f"{_titled(task, members)}, {setting}: accuracy on the target by epoch"
            drawn[file] = line_chart(title, "epoch", "accuracy in %, mean of the seeds", series)
    for task, lines in by_answers.items():
        series = [Series(name, sorted(points)) for name, points in lines.items()]
        title = f"{_titled(task, groups)}: accuracy on the target by answers"
        drawn[f"{task.replace('>', '')}-answers.svg"] = line_chart(
            title, "source images with one label", "accuracy in %, mean of the seeds", series
        )
    return drawn


def _titled(task: str, groups: Sequence[Group]) -> str:
    made = any(group.is_regenerated for group in groups if group.trial.task == task)
    return f"{task} (regenerated)" if made else task


def _name(trial: Trial) -> str:
    return f"{trial.method} ({named_preset(trial)})"


def _mean_curve(group: Group) -> list[tuple[float, float]]:
    """(epoch, mean accuracy in %) over the seeds that ended."""
    runs = [dict(record["result"]["curve"]) for record in group.records if "result" in record]
    epochs = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    values = [(epoch, [run[epoch] for run in runs]) for epoch in epochs]
    return [(epoch, 100 * statistics.fmean(found)) for epoch, found in values if None not in found]
