"""The page of the paper's printed numbers: each once, its state from the records, and kept as they say."""

import json
from functools import cache
from pathlib import Path

import pytest

from clarinet.commands.cli import main
from clarinet.reproduction.cells import Cell, cells, page
from clarinet.reproduction.grouping import Record
from clarinet.reproduction.results import read_records

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "docs" / "results").glob("*/trials.jsonl"))


@cache
def kept() -> list[Record]:
    """All records of the repository, read when the first test asks."""
    return [record for study in STUDIES for record in read_records(study)]


def _cell(records: list[Record], method: str = "clarinet", task: str = "U->M", true_labels: int = 0) -> Cell:
    (found,) = (
        cell
        for cell in cells(records)
        if (cell.task, cell.method, cell.true_labels) == (task, method, true_labels)
    )
    return found


def test_there_are_126_different_cells() -> None:
    every = cells([])

    assert len(every) == len({(cell.task, cell.method, cell.true_labels) for cell in every}) == 126
    assert {cell.state for cell in every} == {"not run", "no data"}


def test_the_kept_page_is_what_the_records_say() -> None:
    assert (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8") == page(kept())


def test_a_shortened_trial_never_counts_as_the_papers_length() -> None:
    short = [record for record in kept() if record["trial"]["preset"] == "short"]
    full = [record for record in kept() if record["trial"]["preset"] == "paper"]

    assert _cell(short).state == "shortened"
    assert _cell(short + full).state == _cell(full).state == "full length"
    assert _cell(short + full).groups[0].trial.preset == "paper"
    assert _cell(short, task="S->M").state == "no data"


def test_few_or_wrong_answers_and_our_own_method_fill_no_cell() -> None:
    others = [
        record
        for record in kept()
        if record["trial"]["answers"]
        or record["trial"]["label_noise"]
        or record["trial"]["method"] == "clarinet-plus"
    ]

    assert others
    assert not any(cell.groups for cell in cells(others))


def test_hours_are_steps_times_recorded_seconds() -> None:
    (record,) = (
        record for record in kept() if (record["trial"]["task"], record["trial"]["method"]) == ("M->m", "gac")
    )
    record = json.loads(json.dumps(record))
    record["result"] |= {"seconds": 36.0, "steps": 2000}  # 0.018 s a step

    row = next(line for line in page([record]).split("\n") if line.startswith("| M->m | gac "))

    # 500 epochs of 60,000 / 128 = 469 steps, by hand: 234,500 * 0.018 / 3600 = 1.17
    assert [cell.strip() for cell in row.strip("|").split("|")][-1] == "1"
    assert _cell([record], method="gac", task="M->m").steps == 234_500


def test_the_command_prints_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = next(study for study in STUDIES if study.name == "published")

    assert main(["reproduce", "--cells", str(tmp_path)]) != 0
    assert "name the folder of the studies" in capsys.readouterr().err

    (tmp_path / "one").symlink_to(few)
    assert main(["reproduce", "--cells", str(tmp_path)]) == 0
    assert capsys.readouterr().out == page(read_records(few))
