"""A trial of a reproduction: resumed, held by another process, diverged, damaged; GAC that methods share."""

import fcntl
import json
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from clarinet.recipes.errors import DataError, Interrupted
from clarinet.reproduction.results import Place, folder_for_results, in_turn, read_records
from clarinet.reproduction.tasks import TaskData, labelled
from clarinet.reproduction.trials import Trial
from clarinet.run.training import EpochReport, train
from tests.clarinet.factories import SHORT_TRIAL, make_trial, run_trial

pytestmark = pytest.mark.long

CPU = torch.device("cpu")


class TestRunTrial:
    def test_an_interrupted_trial_goes_on_and_ends_equal(self, data: TaskData, tmp_path: Path) -> None:
        trial = make_trial()
        steps = count()
        with pytest.raises(Interrupted):
            run_trial(trial, data, tmp_path, device=CPU, should_stop=lambda: next(steps) == 3)
        place = Place.of(tmp_path, trial.stem(data))
        assert place.checkpoint.exists()
        assert read_records(tmp_path) == []

        resumed = run_trial(trial, data, tmp_path, device=CPU)
        whole = run_trial(trial, data, tmp_path / "whole", device=CPU)

        assert resumed is not None
        assert whole is not None
        assert resumed["result"]["curve"] == whole["result"]["curve"]
        assert resumed["result"]["target_accuracy"] == whole["result"]["target_accuracy"]
        assert read_records(tmp_path) == [resumed]
        assert not place.checkpoint.exists()

    def test_a_trial_of_another_process_is_left_alone(self, data: TaskData, tmp_path: Path) -> None:
        trial = make_trial()
        place = Place.of(tmp_path, trial.stem(data))
        with place.lock.open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert run_trial(trial, data, tmp_path, device=CPU) is None

        assert run_trial(trial, data, tmp_path, device=CPU) is not None

    def test_a_diverged_trial_is_a_result(self, data: TaskData, tmp_path: Path) -> None:
        wild = make_trial(
            method="gac", preset="paper", changes=(*make_trial().changes, ("learning_rate", 10.0))
        )

        record = run_trial(wild, data, tmp_path, device=CPU)

        assert record is not None
        assert "no longer a finite number" in record["failure"]
        assert run_trial(wild, data, tmp_path, device=CPU) == record

    @pytest.mark.parametrize("content", [b"\xff{", b"[" * 100_000])
    def test_damaged_results_are_a_sentence(self, content: bytes, data: TaskData, tmp_path: Path) -> None:
        (tmp_path / "trials.jsonl").write_bytes(content + b"\n")

        with pytest.raises(DataError, match=r"trials\.jsonl, line 1, cannot be read as a trial's result"):
            run_trial(make_trial(), data, tmp_path, device=CPU)

    @pytest.mark.parametrize(
        "change", [{"data": {}}, {"trial": None}, {"trial": {"new": 1}}, {"result": {}}, {"config": 3}]
    )
    def test_incomplete_results_are_a_sentence(
        self, change: dict[str, Any], data: TaskData, tmp_path: Path
    ) -> None:
        record = run_trial(make_trial(), data, tmp_path, device=CPU)
        assert record is not None
        (tmp_path / "trials.jsonl").write_text(json.dumps(record | change))

        with pytest.raises(DataError, match="lacks a part of a trial's result"):
            read_records(tmp_path)

    def test_reports_are_written_one_after_the_other(self, tmp_path: Path) -> None:
        """Else one of fewer trials could replace one of more."""
        folder_for_results(tmp_path)
        order = []

        def write(name: str) -> None:
            with in_turn(tmp_path):
                order.append(f"{name} begins")
                time.sleep(0.1)
                order.append(f"{name} ends")

        threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [line.split()[1] for line in order] == ["begins", "ends"] * 2

    def test_names_tell_trials_apart(self, data: TaskData) -> None:
        trials = [
            make_trial(),
            make_trial(seed=1),
            make_trial(setting="pc", true_labels=10),
            make_trial(setting="pc", true_labels=20),
            make_trial(answers=30),
            make_trial(label_noise=0.02),
            make_trial(changes=()),
        ]

        assert len({trial.stem(data) for trial in trials}) == len(trials)
        assert all(Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial for trial in trials)


class TestTwoSteps:
    def test_gac_is_trained_once_and_gives_what_a_whole_run_gives(
        self, data: TaskData, tmp_path: Path
    ) -> None:
        halves = tuple(sorted((SHORT_TRIAL | {"epochs": 4}).items()))
        gac = make_trial(
            method="gac", preset="paper", changes=tuple(sorted((SHORT_TRIAL | {"epochs": 2}).items()))
        )
        two = [make_trial(method=f"gac+{name}", preset="paper", changes=halves) for name in ("dan", "dann")]
        reports: list[EpochReport] = []

        records = [
            run_trial(trial, data, tmp_path, device=CPU, on_epoch=reports.append) for trial in (*two, gac)
        ]

        assert len(reports) == 2 + 2 + 2  # GAC, and the second step of each
        assert len(list((tmp_path / "labels").iterdir())) == 1
        assert list((tmp_path / "running").glob("*.safetensors")) == []
        for trial, record in zip(two, records[:2], strict=True):
            whole = train(trial.config(), labelled(data, seed=0, setting="cc"))
            assert record is not None
            assert record["result"]["target_accuracy"] == whole.target_accuracy
            assert record["result"]["curve"] == [[r.epoch, r.target_accuracy] for r in whole.reports]
            assert record["result"]["steps"] == whole.steps

    def test_a_gac_that_another_process_trains_is_waited_for(self, data: TaskData, tmp_path: Path) -> None:
        changes = tuple(sorted((SHORT_TRIAL | {"epochs": 2}).items()))
        trial = make_trial(method="gac", preset="paper", changes=changes)
        assert run_trial(trial, data, tmp_path, device=CPU) is not None
        (lock,) = (path for path in (tmp_path / "running").glob("gac_*.lock"))
        (tmp_path / "trials.jsonl").unlink()

        with lock.open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert run_trial(trial, data, tmp_path, device=CPU) is None
