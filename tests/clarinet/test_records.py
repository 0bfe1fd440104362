"""The records of finished trials: one file, which several processes add to, in any version's format."""

import json
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
import torch

from clarinet.recipes.errors import DataError
from clarinet.reproduction.grouping import grouped
from clarinet.reproduction.results import folder_for_results, keep_record, read_records
from clarinet.reproduction.tasks import TaskData
from tests.clarinet.factories import make_record, make_trial, run_trial

EACH = 20  # records of one process


def keep_many(folder: Path, first_seed: int, both_ready: Barrier) -> None:
    """Finish trials as one of two processes does."""
    both_ready.wait(timeout=120)
    for seed in range(first_seed, first_seed + EACH):
        keep_record(folder, make_record(0.5, seed=seed))


def kept(folder: Path, *records: dict[str, Any]) -> Path:
    """The file of a folder with these records."""
    folder_for_results(folder)
    for record in records:
        keep_record(folder, record)
    return folder / "trials.jsonl"


def write_older(folder: Path, *records: dict[str, Any]) -> None:
    """A folder as versions before 0.1.0 left it."""
    (folder / "trials").mkdir()
    for number, record in enumerate(records):
        (folder / "trials" / f"{number}.json").write_text(json.dumps(record, indent=1))
    (folder / "trials.csv").write_text("task,method\n")


@pytest.mark.long
def test_processes_that_finish_trials_at_once_lose_none(tmp_path: Path) -> None:
    folder_for_results(tmp_path)
    spawn = get_context("spawn")
    both_ready = spawn.Barrier(2)
    processes = [spawn.Process(target=keep_many, args=(tmp_path, seed, both_ready)) for seed in (0, EACH)]

    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=240)

    assert [process.exitcode for process in processes] == [0, 0]
    assert {record["trial"]["seed"] for record in read_records(tmp_path)} == set(range(2 * EACH))


def test_the_file_is_the_same_in_whatever_order_trials_finish(tmp_path: Path) -> None:
    records = [make_record(0.5, seed=seed) for seed in range(3)] + [make_record(0.7, task="M->U")]

    one = kept(tmp_path / "one", *records).read_bytes()

    assert kept(tmp_path / "other", *reversed(records)).read_bytes() == one
    assert one.count(b"\n") == len(records)


def test_lines_of_two_branches_may_be_put_one_below_the_other(tmp_path: Path) -> None:
    records = [make_record(0.5, seed=seed) for seed in range(2)]
    file = kept(tmp_path, *records)

    file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))) + file.read_bytes())

    assert read_records(tmp_path) == records


def test_a_trial_that_is_finished_stays(data: TaskData, tmp_path: Path) -> None:
    trial = make_trial()
    record = make_record(0.125)
    record["data"]["digest"] = data.digest
    file = kept(tmp_path, record)
    before = file.read_bytes()

    assert run_trial(trial, data, tmp_path, device=torch.device("cpu")) == record
    keep_record(tmp_path, record | {"finished_at": "2027-01-01"})
    assert file.read_bytes() == before


def test_a_line_that_was_cut_off_is_named_with_the_cure(tmp_path: Path) -> None:
    file = kept(tmp_path, make_record(0.5), make_record(0.6, seed=1))
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])

    told = r"trials\.jsonl, line 2, cannot be read as a trial's result: .*; delete the line, and its trial is"
    with pytest.raises(DataError, match=told):
        read_records(tmp_path)
    with pytest.raises(DataError, match=told):
        keep_record(tmp_path, make_record(0.7, seed=2))
    assert file.read_bytes() == whole[:-40]

    file.write_bytes(whole.splitlines(keepends=True)[0])
    keep_record(tmp_path, make_record(0.6, seed=1))
    assert file.read_bytes() == whole


def test_a_record_of_an_unknown_version_is_named(tmp_path: Path) -> None:
    kept(tmp_path).write_text(json.dumps(make_record(0.5) | {"format_version": 99}))

    with pytest.raises(DataError, match="line 1, is not a trial's result of format 1"):
        read_records(tmp_path)


def test_a_folder_of_an_older_version_becomes_the_one_file(tmp_path: Path) -> None:
    records = [make_record(0.5), make_record(0.6, seed=1), make_record(None, seed=2)]
    write_older(tmp_path, *records)

    folder_for_results(tmp_path)

    assert read_records(tmp_path) == records
    assert not (tmp_path / "trials").exists()
    assert not (tmp_path / "trials.csv").exists()


def test_an_older_folder_with_a_damaged_record_is_left_as_it_is(tmp_path: Path) -> None:
    write_older(tmp_path, make_record(0.5), make_record(0.6, seed=1))
    (tmp_path / "trials" / "1.json").write_text("{")

    with pytest.raises(DataError, match=r"1\.json cannot be read as a trial's result: .*; delete the file"):
        folder_for_results(tmp_path)

    assert len(list((tmp_path / "trials").iterdir())) == 2
    assert read_records(tmp_path) == []


def test_a_record_without_a_later_field_is_one_with_it_off(tmp_path: Path) -> None:
    """It is found again, and stands in one row with newer ones; its line stays what it was."""
    older, newer = make_record(0.5), make_record(0.6, seed=1)
    del older["config"]["extra_stroke"]
    for record in (older, newer):
        record["trial"]["changes"]["extra_stroke"] = 0.0
    newer["config"]["extra_stroke"] = 0.0

    file = kept(tmp_path, older, newer)

    (group,) = grouped(read_records(tmp_path))
    assert group.accuracies == [50, 60]
    assert "extra_stroke" not in json.loads(file.read_text().splitlines()[0])["config"]
    keep_record(tmp_path, make_record(0.9, changes=tuple(older["trial"]["changes"].items())))
    assert len(read_records(tmp_path)) == 2
