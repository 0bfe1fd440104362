"""The 126 printed cells of the paper's tables, and how far each was run: a page made from the records."""

import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clarinet.recipes.lengths import steps_in_epoch
from clarinet.recipes.methods import config_for
from clarinet.reproduction.grouping import Group, Record, grouped, named_preset
from clarinet.reproduction.paper import ABLATION, CC, TRUE_ONLY, WITH_TRUE, Printed
from clarinet.reproduction.readers import what_to_put
from clarinet.reproduction.report import accuracies_of, table
from clarinet.reproduction.tasks import PAPER_TASKS, TASKS

State = Literal["full length", "shortened", "not run", "no data"]
STATES: Mapping[State, str] = {
    "full length": "all steps of preset `paper` or `published`",
    "shortened": "fewer steps (preset `short`): nothing that it says is of the paper's protocol",
    "not run": "the data is at hand, no record is",
    "no data": "one of the two data sets is not at hand",
}
FULL_LENGTH = ("paper", "published")  # presets of several 100,000 steps, the closest reading of a cell first
NOT_AT_HAND = ("svhn", "cifar10", "stl10")  # of cifar10 a part is, which is not the task's
LINE = 120
TRAINING_IMAGES = {  # as the paper counts them
    "cifar10": 45_000,
    "stl10": 4_500,
    "mnist": 60_000,
    "usps": 7_438,
    "svhn": 73_257,
    "mnist_m": 59_001,
    "syn_digits": 479_400,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed number.

    Args:
        heading: of the paper's table.
        task, method: as elsewhere here; true labels alone are `cdan_e`, for which the paper names none.
        true_labels: of the pc setting; 0 in cc.
        printed: what the paper prints.
        groups: trials of it, those closest to the paper's protocol first.
    """

    heading: str
    task: str
    method: str
    true_labels: int
    printed: Printed
    groups: tuple[Group, ...] = ()

    @property
    def state(self) -> State:
        """How far it was run."""
        if not self.groups:
            missing = {TASKS[self.task].source, TASKS[self.task].target} & set(NOT_AT_HAND)
            return "no data" if missing else "not run"
        return "full length" if self.groups[0].trial.preset in FULL_LENGTH else "shortened"

    @property
    def steps(self) -> int:
        """Of the paper's protocol, by the paper's counts of images."""
        config = config_for(self.method, "paper", **TASKS[self.task].network)
        source, target = (
            TRAINING_IMAGES[name] for name in (TASKS[self.task].source, TASKS[self.task].target)
        )
        labels = self.true_labels if self.method == "cdan_e" else source
        return config.length.epochs * steps_in_epoch(config, labels, target)


def cells(records: Iterable[Record]) -> list[Cell]:
    """All cells in the paper's order, each with its trials.

    Args:
        records: of finished trials, of any studies together.
    """
    found: dict[tuple[str, str, int], list[Group]] = {}
    for group in grouped(records):
        trial = group.trial
        if group.accuracies and not trial.answers and not trial.label_noise:
            found.setdefault((trial.task, trial.method, trial.true_labels), []).append(group)
    return [
        Cell(heading, task, method, count, printed, _sorted(found.get((task, method, count), ())))
        for heading, task, method, count, printed in _printed()
    ]


def _printed() -> Iterator[tuple[str, str, str, int, Printed]]:
    for (task, method), printed in CC.items():
        yield "CC-UDA", task, method, 0, printed
    for (task, count), printed in TRUE_ONLY.items():
        yield "PC-UDA, true labels alone", task, "cdan_e", count, printed
    for (task, count), printed in WITH_TRUE.items():
        yield "PC-UDA, both kinds of labels", task, "clarinet", count, printed
    for (task, method), printed in ABLATION.items():
        yield "Ablation", task, method, 0, printed


def _sorted(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Full length before shortened, the text's protocol before the repository's, more seeds before fewer."""
    presets = [*FULL_LENGTH, "short"]

    def distance(group: Group) -> tuple[int, int, int]:
        place = presets.index(group.trial.preset)
        return place, -len(group.accuracies), len(group.trial.changes)

    return tuple(sorted((group for group in groups if group.trial.preset in presets), key=distance))


def page(records: Sequence[Record]) -> str:
    """The page of what is reproduced, as Markdown.

    Args:
        records: of all finished trials of the studies, see `results.read_records`.
    """
    every = cells(records)
    counts = Counter(cell.state for cell in every)
    summary = [["state", "cells", "what it means"]]
    summary += [[state, str(counts[state]), meaning] for state, meaning in STATES.items()]
    speeds = _seconds_a_step(records)
    parts = [
        "# What of the paper is reproduced",
        "Made from the records in [results](results/README.md) by "
        "`clarinet reproduce --cells > docs/reproduction.md`; a test holds it to them. "
        "[paper.md](paper.md) says which reading of the paper a preset follows and what the finished "
        "experiments showed. *Protocol* names the preset and where it differs from what the preset is today.",
        f"The paper prints {len(every)} different numbers: 35 of CC-UDA, 70 of PC-UDA, 21 of the ablation. "
        "The averages over tasks are not counted, and CLARINET without true labels is counted once.",
        table(summary),
        "## How to repeat it",
        "One command trains one cell; it goes on from its checkpoint when it is started again:",
        "```sh\nclarinet reproduce U-M --methods clarinet:paper --seeds 5\n"
        "clarinet reproduce M-U --methods clarinet:paper --setting pc --true-labels 200 --seeds 5\n"
        "clarinet reproduce  # all of it\n```",
        "`CLARINET_DATA` or `--data` names the folder of the data:",
        "\n".join(f"* {what_to_put(name)}" for name in TRAINING_IMAGES),
        "*Hours* below are those of one seed by the text's protocol on one core of a processor in bfloat16. "
        "They are reckoned from the steps and from the seconds a step of the shortened trial of the same "
        "task and method, which ran beside others: an upper bound rather than a measurement. An H100 trains "
        "five seeds of U->M at once in some eleven minutes ([gpu.md](results/gpu.md)).",
    ]
    for heading in dict.fromkeys(cell.heading for cell in every):
        of_heading = [cell for cell in every if cell.heading == heading]
        rows = [["task", "column", "paper", "state", "ours", "seeds", "protocol", "hours"]]
        ordered = sorted(of_heading, key=lambda cell: PAPER_TASKS.index(cell.task))
        rows += [row for cell in ordered for row in _rows(cell, speeds)]
        parts += [f"## {heading}", table(rows)]
    return "\n\n".join("\n".join(_wrapped(part)) for part in parts) + "\n"


def _wrapped(part: str) -> list[str]:
    """Lines of a part, no longer than people edit; a table and a heading as they are."""
    if part.startswith(("|", "#", "```")):
        return [part]
    return [
        textwrap.fill(line, LINE, subsequent_indent="  " * line.startswith("* "), break_on_hyphens=False)
        for line in part.split("\n")
    ]


def _rows(cell: Cell, speeds: Mapping[tuple[str, str], float]) -> list[list[str]]:
    """A line for the cell, and one more for each further experiment at full length."""
    spread = f" +- {cell.printed.deviation:.2f}" if cell.printed.deviation is not None else ""
    column = f"{cell.true_labels:,} true" if cell.true_labels else cell.method
    seconds = speeds.get((cell.task, cell.method))
    finished = cell.state in {"full length", "no data"}
    hours = "-" if finished or seconds is None else f"{cell.steps * seconds / 3600:.0f}"
    begin = [cell.task, column, f"{cell.printed.mean:.2f}{spread}", cell.state]
    told = cell.groups if cell.state == "full length" else cell.groups[:1]
    if not told:
        return [[*begin, "-", "-", "-", hours]]
    return [
        [*begin, accuracies_of(group), str(len(group.accuracies)), named_preset(group.trial), hours]
        for group in told
        if group is told[0] or group.trial.preset in FULL_LENGTH
    ]


def _seconds_a_step(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Median seconds of a step on one core by task and method, as shortened trials recorded them."""
    taken: dict[tuple[str, str], list[float]] = {}
    for record in records:
        trial, environment = record["trial"], record["environment"]
        alone = environment.get("device") == "cpu" and environment.get("threads") == 1
        if alone and trial["preset"] == "short" and "result" in record:
            seconds = record["result"]["seconds"] / record["result"]["steps"]
            taken.setdefault((trial["task"], trial["method"]), []).append(seconds)
    return {kind: statistics.median(values) for kind, values in taken.items()}
