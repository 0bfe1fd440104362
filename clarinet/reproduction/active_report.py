"""The records of `clarinet bench active` as a table and as charts."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clarinet.reproduction.active import ORDINARY_SHARE, WAYS
from clarinet.reproduction.charts import Series, line_chart

Record = Mapping[str, Any]
KEY = ("task", "way", "answers", "seed", "floor_percent")
TITLES = {
    "uniform": "uniform",
    "again": "by belief, again about pictures with a no",
    "others": "by belief, about other pictures",
    "ordinary": f"the class chosen of all, {ORDINARY_SHARE} answers' worth each",
}


def key_of(record: Record) -> tuple[Any, ...]:
    """What tells a record from others."""
    return tuple(record.get(name) for name in KEY)


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file, none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def groups(records: Iterable[Record]) -> dict[tuple[str, str, int], list[Record]]:
    """Records of the same task, way and number of answers, over the seeds."""
    found: dict[tuple[str, str, int], list[Record]] = {}
    for record in sorted(records, key=lambda item: (item["task"], WAYS.index(item["way"]), item["answers"])):
        found.setdefault((record["task"], record["way"], record["answers"]), []).append(record)
    return found


def table(records: Iterable[Record]) -> str:
    """Markdown: what each way reached, and what it asked for."""
    lines = [
        "| task | answers | way | asked | of these yes | each yes confirmed | seeds | on the target, % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (task, way, answers), members in groups(records).items():
        asked = statistics.fmean(item["questions"] for item in members)
        yes = statistics.fmean(item["yes"] for item in members)
        about = (
            ["-", "-", "-"] if way == "ordinary" else [f"{asked:,.0f}", f"{yes:,.0f}", f"{asked + yes:,.0f}"]
        )
        accuracies = [100 * item["target_accuracy"] for item in members]
        each = ", ".join(f"{value:.1f}" for value in accuracies)
        told = f"{statistics.fmean(accuracies):.1f} ({each})" if len(accuracies) > 1 else each
        lines.append(
            f"| {task} | {answers:,} | {TITLES[way]} | {' | '.join(about)} | {len(members)} | {told} |"
        )
    return "\n".join(lines)


def charts(records: Sequence[Record]) -> dict[str, str]:
    """File name to SVG: accuracy by answers, each yes confirmed, of each task."""
    found = {}
    for task in dict.fromkeys(item["task"] for item in records):
        lines: dict[str, list[tuple[float, float]]] = {}
        for (of, way, _), members in groups(records).items():
            if of == task and way != "ordinary":
                answers = statistics.fmean(item["questions"] + item["yes"] for item in members)
                accuracy = statistics.fmean(100 * item["target_accuracy"] for item in members)
                lines.setdefault(TITLES[way], []).append((answers, accuracy))
        if lines:
            found[f"active-{task.replace('>', '')}.svg"] = line_chart(
                f"{task}: accuracy on the target by answers",
                "answers, each yes confirmed by a second one",
                "accuracy in %, mean of the seeds",
                [Series(name, points) for name, points in lines.items()],
            )
    return found
