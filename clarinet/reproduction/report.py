"""The paper's tables with our numbers beside its own, as Markdown."""

import json
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from clarinet.recipes.counting import is_or_are, many
from clarinet.recipes.upgrade import RENAMED
from clarinet.reproduction.grouping import Group, Record, grouped, named_preset, setting_of
from clarinet.reproduction.paper import ABLATION, CC, TRUE_ONLY, WITH_TRUE, Printed
from clarinet.reproduction.tasks import PAPER_TASKS
from clarinet.reproduction.trials import OWN_METHOD, TRUE_ONLY_METHODS, Trial

PAPER_PRESET = "paper"
HEADINGS = {
    "cc": "CC-UDA: complementary labels alone",
    "pc": "PC-UDA: true labels as well",
    "ablation": "Ablation",
    "answers": "Accuracy against the number of answers",
    "noise": "Accuracy against wrong labels",
}


def tables(groups: Sequence[Group]) -> dict[str, list[list[str]]]:
    """Rows of cells by table: cc, pc, ablation, answers, noise; a table's first row is its header.

    Tables without a trial are left out.
    """
    plain = [g for g in groups if not g.trial.answers and not g.trial.label_noise]
    ablations = {method for _, method in ABLATION}
    whole = {"clarinet"} if any(g.trial.method in ablations for g in plain) else set()
    chosen = {
        "cc": [g for g in plain if g.trial.setting == "cc" and g.trial.method not in ablations],
        "pc": [g for g in plain if g.trial.setting == "pc"],
        "ablation": [g for g in plain if g.trial.setting == "cc" and g.trial.method in ablations | whole],
        "answers": [g for g in groups if g.trial.answers],
        "noise": [g for g in groups if g.trial.label_noise and not g.trial.answers],
    }
    columns: dict[str, dict[str, Callable[[Trial], str]]] = {
        "pc": {"true labels": lambda trial: f"{trial.true_labels:,}"},
        "answers": {
            "answers": lambda trial: f"{trial.answers:,}",
            "setting": lambda trial: setting_of(replace(trial, answers=0)),
        },
        "noise": {
            "wrong labels": lambda trial: f"{100 * trial.label_noise:g} %",
            "setting": lambda trial: setting_of(replace(trial, label_noise=0.0)),
        },
    }
    found = {}
    for name, members in chosen.items():
        if not members:
            continue
        more = columns.get(name, {})
        header = ["task", "method", "protocol", *more, "seeds", "ours", "paper"]
        rows: list[list[str]] = []
        kinds: dict[tuple[str, ...], list[Group]] = {}
        for group in members:
            trial, cells = group.trial, [value(group.trial) for value in more.values()]
            task = f"{trial.task} (regenerated)" if group.is_regenerated else trial.task
            seeds = str(len(group.accuracies))
            rows.append(
                [task, trial.method, _protocol(group), *cells, seeds, accuracies_of(group), _papers(trial)]
            )
            # The steps of a protocol differ between tasks.
            kinds.setdefault((trial.method, named_preset(trial), *cells), []).append(group)
        found[name] = [
            header,
            *rows,
            *(row for kind, of_kind in kinds.items() for row in _average(kind, of_kind)),
        ]
    return found


def remarks(name: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Sentences to read with a table of `tables`: its name and its rows, the first of which is the header."""
    methods = {row[rows[0].index("method")] for row in rows[1:]}
    own = sorted(methods & TRUE_ONLY_METHODS)
    two_steps = sorted(method for method in methods if method.startswith("gac+"))
    told = []
    if name == "pc" and own:
        told.append(
            f"{', '.join(own)}: the true labels alone; the paper's column is its *true only*, for which it "
            "does not name the method."
        )
    if two_steps:
        told.append(
            f"{', '.join(two_steps)}: half of the epochs for each step. Preset `paper` has 500 for each; the "
            "paper says 500 in all, and not what that means for two steps."
        )
    return told


def _average(kind: tuple[str, ...], groups: list[Group]) -> list[list[str]]:
    """The row of means over the paper's seven tasks, once all of them are done."""
    by_task = {group.trial.task: group for group in groups if group.accuracies}
    if not by_task.keys() >= set(PAPER_TASKS):
        return []
    seven = [by_task[task] for task in PAPER_TASKS]
    ours = statistics.fmean(statistics.fmean(group.accuracies) for group in seven)
    printed = [printed for group in seven if (printed := _printed(group.trial))]
    papers = f"{statistics.fmean(one.mean for one in printed):.2f}" if len(printed) == len(seven) else "-"
    seeds = str(min(len(group.accuracies) for group in seven))
    return [["average", *kind, seeds, f"{ours:.2f}", papers]]


def _renamed(commands: Iterable[str]) -> list[str]:
    """A sentence on hyper-parameters that commands call as they were called when they were typed."""
    typed = sorted(set(re.findall(r"--set (\w+)=", " ".join(commands))) & RENAMED.keys())
    if not typed:
        return []
    told = ", ".join(f"`{name}` (now `{RENAMED[name]}`)" for name in typed)
    return [f"The commands name hyper-parameters as they were called then: {told}."]


def _protocol(group: Group) -> str:
    """The preset and its length; anything but the paper's own is said to be so, with what is held out."""
    steps = next((record["result"]["steps"] for record in group.records if "result" in record), 0)
    other = "; not the paper's"
    changes, config = dict(group.trial.changes), group.config
    if config and group.trial.preset == PAPER_PRESET and changes.keys() <= {"held_out_share"}:
        share = config.reports.held_out_share if config.losses.complementary_loss != "none" else 0.0
        other = f"; {100 * share:g} % of the complementary labels held out" if share else ""
    return f"{named_preset(group.trial)} ({steps:,} steps{other})"


def accuracies_of(group: Group) -> str:
    """Mean and deviation of a group in %, or what became of its trials."""
    values = group.accuracies
    diverged = f"{group.failures} diverged" if group.failures else ""
    if not values:
        return diverged or "-"
    return f"{statistics.fmean(values):.2f}{_spread(values)}" + (f" ({diverged})" if diverged else "")


def _spread(values: Sequence[float]) -> str:
    """The standard deviation; where it would reach beyond 0 or 100 the lowest and the highest value."""
    if len(values) == 1:
        return ""
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    if deviation <= min(mean, 100 - mean):
        return f" +- {deviation:.2f}"
    return f", {min(values):.2f} to {max(values):.2f}"


def _printed(trial: Trial) -> Printed | None:
    """What the paper prints for a trial; for our own method what it prints for CLARINET."""
    if trial.answers or trial.label_noise:
        return None
    method = "clarinet" if trial.method == OWN_METHOD else trial.method
    if trial.setting == "pc":
        table: Mapping[tuple[str, int], Printed] = TRUE_ONLY if method in TRUE_ONLY_METHODS else WITH_TRUE
        known = method == "clarinet" or method in TRUE_ONLY_METHODS
        return table.get((trial.task, trial.true_labels)) if known else None
    return CC.get((trial.task, method)) or ABLATION.get((trial.task, method))


def _papers(trial: Trial) -> str:
    printed = _printed(trial)
    if printed is None:
        return "-"
    spread = f" +- {printed.deviation:.2f}" if printed.deviation is not None else ""
    return f"{printed.mean:.2f}{spread}" + (" (CLARINET)" if trial.method == OWN_METHOD else "")


def markdown(records: Sequence[Record], charts: Iterable[str] = ()) -> str:
    """The whole report.

    Args:
        records: of finished trials, at least one.
        charts: file names of charts that lie beside it.
    """
    groups = grouped(records)
    parts = [
        "# The paper's tables, reproduced",
        "Accuracy on the target's test set in %, mean and standard deviation over the seeds (lowest and "
        "highest where the deviation would reach beyond 100); last epoch. "
        "Each seed draws labels, weights and batches anew. Target labels only score. *Paper* is what the "
        "paper prints, of five experiments; beside `clarinet-plus` stands its CLARINET. A row whose protocol "
        "is not the paper's sets another training beside the paper's number. Curves before their last point "
        "rest on 2,000 test images.",
    ]
    for name, rows in tables(groups).items():
        parts += [f"## {HEADINGS[name]}", table(rows), *remarks(name, rows)]
    parts += [f"![{chart.removesuffix('.svg')}]({chart})" for chart in charts]
    parts += ["## What the numbers rest on", *_grounds(groups)]
    return "\n\n".join(parts) + "\n"


def _grounds(groups: Sequence[Group]) -> list[str]:
    """Data, seeds, time, machine and command, as they were recorded."""
    used = [record for group in groups for record in group.records]
    data = dict.fromkeys(
        (r["trial"]["task"], r["data"]["source"], r["data"]["target"], r["data"]["digest"]) for r in used
    )
    rows = [["task", "source", "target", "digest of the data"], *data]
    times = [["task", "method", "preset", "setting", "seeds", "seconds per trial"]]
    for group in groups:
        seconds = [record["result"]["seconds"] for record in group.records if "result" in record]
        if seconds:
            seeds = ", ".join(str(record["trial"]["seed"]) for record in group.records)
            shown = " to ".join(dict.fromkeys(f"{value:.0f}" for value in (min(seconds), max(seconds))))
            trial = group.trial
            kind = [trial.task, trial.method, named_preset(trial), setting_of(trial)]
            times.append([*kind, seeds, shown])
    machines = dict.fromkeys(
        ", ".join(f"{name} {value}" for name, value in record["environment"].items() if value is not None)
        for record in used
    )
    commands = dict.fromkeys(record["command"] for record in used if record["command"])
    older = sum(group.older for group in groups)
    words = f"{many(older, 'result')} of other data or hyper-parameters {is_or_are(older)} left out."
    left_out = [words] if older else []
    return [
        table(rows),
        table(times),
        "Versions and machine:\n\n" + "\n".join(f"* {machine}" for machine in machines),
        "Commands:\n\n```sh\n" + "\n".join(commands) + "\n```",
        *_renamed(commands),
        *_changed_presets(groups),
        *left_out,
    ]


def _changed_presets(groups: Sequence[Group]) -> list[str]:
    """What brings a preset back that has changed since, by method, preset and tasks."""
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    for group in groups:
        then = group.was_preset | group.untold
        values = (f"{name}={json.dumps(value)}" for name, value in then.items())
        was = " ".join(f"--set {shlex.quote(value)}" for value in values)
        if was:
            method = f"{group.trial.method}, {group.trial.preset}"
            tasks.setdefault((method, was), {})[group.trial.task] = None
    lines = [f"* {method} ({', '.join(names)}): `{was}`" for (method, was), names in tasks.items()]
    told = "Presets have changed since. What the commands need to train with the values of then:\n\n"
    return [told + "\n".join(lines)] if lines else []


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns in line, which a terminal shows as well; the first row is its header."""
    widths = [max(3, *(len(cell) for cell in column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]])
