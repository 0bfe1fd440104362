"""The results kept in docs/results: few files, found by this version, and reported as recorded."""

import json
import re
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clarinet.recipes.config import DEFAULTS
from clarinet.recipes.upgrade import OWN
from clarinet.reproduction.grouping import grouped
from clarinet.reproduction.report import markdown
from clarinet.reproduction.report_files import curves
from clarinet.reproduction.results import read_records, stem_of
from clarinet.reproduction.trials import Trial

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
STUDIES = sorted(path.parent for path in RESULTS.glob("*/trials.jsonl"))
MOST_FILES = 70
studies = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def test_the_results_are_few_files() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no repository: what is kept cannot be told from what was made here")
    command = [git, "ls-files", "--", str(RESULTS)]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")

    assert 0 < len([name for name in tracked if name]) <= MOST_FILES


def test_the_page_of_results_names_each_study_and_page() -> None:
    links = set(re.findall(r"\]\(([^)#]+)\)", (RESULTS / "README.md").read_text(encoding="utf-8")))

    pages = {path.name for path in RESULTS.glob("*.md")} - {"README.md"}
    assert links >= {f"{study.name}/README.md" for study in STUDIES} | pages
    assert len(STUDIES) >= 5


@studies
def test_a_study_is_a_report_its_charts_and_its_records(study: Path) -> None:
    records = read_records(study)

    charts = curves(grouped(records))
    assert (study / "README.md").read_text(encoding="utf-8") == markdown(records, charts)
    assert {path.name for path in study.glob("*.svg")} == set(charts)
    assert all((study / name).read_text(encoding="utf-8") == drawn for name, drawn in charts.items())


@studies
def test_reported_means_are_those_of_the_records(study: Path) -> None:
    """Reckoned without the report's own groups, so that a slip of those shows."""
    seeds: dict[str, list[dict[str, Any]]] = {}
    for record in read_records(study):
        trial = {name: value for name, value in record["trial"].items() if name != "seed"}
        seeds.setdefault(json.dumps(trial, sort_keys=True), []).append(record)
    recorded = set()
    for key, records in seeds.items():
        trial = json.loads(key)
        values = [100 * record["result"]["target_accuracy"] for record in records]
        spread = ""
        if len(values) > 1:
            mean, deviation = statistics.fmean(values), statistics.stdev(values)
            is_inside = 0 <= mean - deviation <= mean + deviation <= 100
            ends = f", {min(values):.2f} to {max(values):.2f}"
            spread = f" +- {deviation:.2f}" if is_inside else ends
        changes = [f"{name}={value}" for name, value in trial["changes"].items()]
        protocol = ", ".join([trial["preset"], *changes])
        count = str(len(values))
        ours = f"{statistics.fmean(values):.2f}{spread}"
        recorded.add((trial["task"], trial["method"], protocol, count, ours))

    reported = set()
    for table in re.findall(r"(?:^\|.*\|\n)+", (study / "README.md").read_text(encoding="utf-8"), re.M):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        if "ours" not in rows[0]:
            continue
        for row in (dict(zip(rows[0], cells, strict=True)) for cells in rows[2:]):
            task, protocol = row["task"].removesuffix(" (regenerated)"), row["protocol"].partition(" (")[0]
            reported.add((task, row["method"], protocol, row["seeds"], row["ours"]))

    assert reported == recorded


@studies
def test_the_kept_results_are_found_by_this_version(study: Path) -> None:
    """Reading gives their configs the fields that they lack; else all of them would be trained anew."""
    groups = grouped(read_records(study))

    now = [group for group in groups if not group.was_preset]
    for record in (record for group in now for record in group.records):
        trial = Trial.from_dict(record["trial"])
        assert trial.named(trial.config().flat(), record["data"]["digest"]) == stem_of(record)
    assert now
    assert all({*OWN, *DEFAULTS} == set(group.records[0]["config"]) for group in groups)


@pytest.mark.parametrize("page", ["README.md", "docs/results/recipe.md"])
def test_no_page_quotes_a_mean_that_no_study_reports(page: str) -> None:
    figure = r"\d+\.\d\d(?: \+- \d+\.\d\d|, \d+\.\d\d to \d+\.\d\d)"
    reports = [(study / "README.md").read_text(encoding="utf-8") for study in STUDIES]

    quoted = set(re.findall(figure, (ROOT / page).read_text(encoding="utf-8")))
    assert quoted
    assert quoted <= {found for text in reports for found in re.findall(figure, text)}
