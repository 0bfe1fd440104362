"""`clarinet reproduce` from the first trial to the tables, also when it is stopped, killed or not alone."""

import re
import signal
import statistics
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from clarinet.commands.cli import main
from clarinet.reproduction.report import HEADINGS
from clarinet.reproduction.results import keep_record, read_records
from clarinet.reproduction.tasks import TaskData
from clarinet.reproduction.trials import Trial, plan_tables
from clarinet.run.provenance import code_digest, processor
from clarinet.run.turns import Run, finished
from tests.clarinet.factories import SHORT_TRIAL, make_record, write_digits

CPU = torch.device("cpu")
SHORT_WORDS = [word for name, value in SHORT_TRIAL.items() for word in ("--set", f"{name}={value}")]


def read_tables(text: str) -> list[list[dict[str, str]]]:
    """The Markdown tables of a text, each a list of rows by column."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.append([dict(zip(lines[0], line, strict=True)) for line in lines[2:]])
    return found


class TestCommand:
    @pytest.mark.long
    def test_two_tasks_methods_and_seeds_end_in_tables(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["reproduce", "U-M", "M-U", "--seeds", "2", "--data", str(folder), "--device", "cpu"]
        words += ["--out", str(tmp_path), "--set", "adaptation_start_epoch=1", *SHORT_WORDS]
        words += ["--methods", "clarinet", "clarinet-plus"]

        assert main(words) == 0

        records = read_records(tmp_path)
        text = (tmp_path / "README.md").read_text()
        table = read_tables(text)[0]
        printed = capsys.readouterr().out
        assert len(records) == 8
        assert [(row["task"], row["method"]) for row in table] == [
            ("U->M", "clarinet"),
            ("U->M", "clarinet-plus"),
            ("M->U", "clarinet"),
            ("M->U", "clarinet-plus"),
        ]
        for row in table:
            accuracies = [
                100 * record["result"]["target_accuracy"]
                for record in records
                if (record["trial"]["task"], record["trial"]["method"]) == (row["task"], row["method"])
            ]
            mean, *spread = (float(number) for number in re.split(r" \+- |, | to ", row["ours"]))
            assert mean == pytest.approx(statistics.fmean(accuracies), abs=0.006)
            if len(spread) == 1:
                assert spread == [pytest.approx(statistics.stdev(accuracies), abs=0.006)]
            else:  # two seeds so far apart that their deviation would reach beyond 0 or 100
                assert spread == pytest.approx([min(accuracies), max(accuracies)], abs=0.006)
            assert row["seeds"] == "2"
            assert row["paper"].startswith({"U->M": "83.69 +- 0.93", "M->U": "94.54 +- 0.29"}[row["task"]])
            assert "not the paper's" in row["protocol"]
            assert row["ours"] in printed
        assert "clarinet reproduce U-M M-U --seeds 2" in text
        assert records[0]["data"]["digest"] in text
        drawn = {(r["trial"]["task"], r["trial"]["seed"], r["data"]["labels"]) for r in records}
        assert len(drawn) == len({labels for *_, labels in drawn}) == 4  # by task and seed, for all methods
        assert f"torch {torch.__version__}" in text
        assert f"code {code_digest()}" in text
        assert f"processor {processor()}" in text
        times = next(table for table in read_tables(text) if "seconds per trial" in table[0])
        assert [row["seeds"] for row in times] == ["0, 1"] * 4
        for row in times:
            seconds = [
                record["result"]["seconds"]
                for record in records
                if (record["trial"]["task"], record["trial"]["method"]) == (row["task"], row["method"])
            ]
            shown = dict.fromkeys(f"{value:.0f}" for value in (min(seconds), max(seconds)))
            assert row["seconds per trial"] == " to ".join(shown)
        for name in ("U-M-cc.svg", "M-U-cc.svg"):
            ET.fromstring((tmp_path / name).read_text())
            assert f"({name})" in text

        kept = tmp_path / "trials.jsonl"
        before = kept.read_bytes(), kept.stat().st_mtime_ns
        assert main(words) == 0
        assert before == (kept.read_bytes(), kept.stat().st_mtime_ns)

    @pytest.mark.long
    def test_trials_that_take_turns_end_as_one_after_the_other(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also those whose first step another of them trains."""
        methods = ["gac", "gac+dan", "gac+dann", "clarinet-plus"]
        changes = ["--set", "epochs=4", "--set", "steps_per_epoch=2", "--set", "batch_size=16"]
        changes += ["--set", "adaptation_start_epoch=0"]
        records = {}
        for at_once in ("1", "3"):
            out = tmp_path / at_once
            words = ["reproduce", "U-M", "--methods", *methods, "--seeds", "2", *changes]
            assert (
                main(
                    [
                        *words,
                        "--data",
                        str(folder),
                        "--out",
                        str(out),
                        "--device",
                        "cpu",
                        "--at-once",
                        at_once,
                    ]
                )
                == 0
            )
            assert "another process" not in capsys.readouterr().out
            records[at_once] = read_records(out)

        assert len(records["1"]) == 2 * len(methods)
        for alone, together in zip(records["1"], records["3"], strict=True):
            assert alone["trial"] == together["trial"]
            for name in ("target_accuracy", "per_class_accuracy", "curve", "steps"):
                assert alone["result"][name] == together["result"][name]
        limits = {record["environment"].get("trials at once") for record in records["3"]}
        assert 3 in limits

    def test_no_trials_at_once_are_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["reproduce", "U-M", "--at-once", "0", "--out", str(tmp_path)]) == 1
        assert "--at-once 0: at least 1" in capsys.readouterr().err

    @pytest.mark.long
    def test_without_further_words_the_papers_tables_are_made_on_the_gpu_if_there_is_one(
        self,
        folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """And tasks whose data is not there are passed over."""
        trained: list[tuple[Trial, str]] = []

        def finish(
            trial: Trial, data: TaskData, out: Path, *, device: torch.device, **_: object
        ) -> Run[dict[str, Any]]:
            yield
            trained.append((trial, device.type))
            record = make_record(0.5) | {"trial": trial.to_dict(), "config": trial.config().to_dict()}
            record["data"]["digest"] = data.digest
            keep_record(out, record)
            return record

        def finish_all(runs: Iterable[Run[Any]], device: torch.device, *, at_once: int) -> list[Any]:
            assert at_once == (5 if device.type == "cuda" else 1)
            return [finished(run) for run in runs]

        monkeypatch.setattr("clarinet.run.turns.take_turns", finish_all)  # which would ask for the GPU
        monkeypatch.setattr("clarinet.reproduction.running.trial_run", finish)
        monkeypatch.setattr("clarinet.reproduction.running.drawn", lambda *_: None)
        words = ["reproduce", "--seeds", "2", "--data", str(folder), "--out", str(tmp_path)]

        for has_gpu, device in ((False, "cpu"), (True, "cuda")):
            monkeypatch.setattr(torch.cuda, "is_available", lambda has_gpu=has_gpu: has_gpu)
            trained.clear()
            assert main(words) == 0
            assert {kind for _, kind in trained} == {device}
            assert {trial for trial, _ in trained} == set(plan_tables(["U->M", "M->U"], seeds=[0, 1]))
            printed = capsys.readouterr().out
            for heading in ("cc", "pc", "ablation"):
                assert HEADINGS[heading] in printed
            cc, pc, ablation, *_ = read_tables(printed)
            assert (len(cc), len(ablation)) == (2 * 6, 2 * 4)
            assert {row["true labels"] for row in pc} == {"200", "400", "600", "800", "1,000"}
            assert {row["task"] for row in cc} == {"U->M", "M->U"}
            assert "does not name the method" in printed
            assert "500 in all" in printed
            for missing in ("MNIST-M", "SVHN", "SYN-DIGITS", "CIFAR-10"):
                assert f"no {missing} in {folder}" in printed

    def test_missing_data_says_what_to_put_where(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["reproduce", "S-M", "C-T", "--data", str(folder), "--out", str(tmp_path)]

        assert main(words) == 1
        told = capsys.readouterr().err
        assert re.search(r"no SVHN in .*: put there svhn\.npz .x_train.*; or train_32x32\.mat", told)
        assert re.search(r"no CIFAR-10 in .*: put there cifar10\.npz .x_train.*; or cifar-10-", told)
        assert re.search(r"And no STL-10 in .*: put there stl10\.npz .*; or stl10_binary", told)

    def test_what_cannot_be_trained_is_found_before_hours_are_spent(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Data of the second task, and more true labels than there are images; nothing has been trained."""
        words = ["reproduce", "U-M", "S-M", "--data", str(folder), "--out", str(tmp_path), *SHORT_WORDS]
        assert main([*words, "--methods", "clarinet-plus"]) == 1
        assert "no SVHN in" in capsys.readouterr().err
        words[2:3] = []
        assert main([*words, "--methods", "clarinet-plus", "--setting", "cc", "pc", "--seeds", "1"]) == 1
        assert "1,000 true labels asked for" in capsys.readouterr().err
        assert read_records(tmp_path) == []

    def test_what_is_done_is_reported_also_when_the_next_task_fails(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_digits(tmp_path / "usps_28x28.npz", 90, seed=0)
        write_digits(tmp_path / "mnist.npz", 80, seed=1)
        words = ["reproduce", "U-M", "M-U", "--seeds", "1", "--data", str(tmp_path), "--device", "cpu"]
        words += [
            "--methods",
            "clarinet-plus",
            "--answers",
            "85",
            "--out",
            str(tmp_path / "out"),
            *SHORT_WORDS,
        ]

        assert main(words) == 1

        assert "asked for: 85 answers" in capsys.readouterr().err
        assert "U->M" in (tmp_path / "out" / "README.md").read_text()

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (["X-Y"], "no task 'X-Y'"),
            (["--methods", "magic"], "unknown method 'magic'"),
            (["--methods", "clarinet:quick"], "no preset 'quick'"),
            (["--preset", "slow"], "has a preset 'slow'"),
            (["--seeds", "0"], "at least 1"),
            (["--set", "epochs=0"], "epochs"),
            (["--out", __file__], "cannot be a folder of results"),
        ],
    )
    def test_a_mistake_is_a_sentence(
        self, words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["reproduce", "--out", str(tmp_path), *words, "--data", str(tmp_path)]) == 1
        assert why in capsys.readouterr().err

    @pytest.mark.faults
    def test_a_killed_and_an_interrupted_process_change_no_result(self, folder: Path, tmp_path: Path) -> None:
        words = ["reproduce", "U-M", "--methods", "clarinet-plus", "--seeds", "1", "--data", str(folder)]
        words += ["--device", "cpu", "--set", "epochs=20", "--set", "steps_per_epoch=2"]
        words += ["--set", "batch_size=16", "--set", "checkpoint_every=1", "--out"]
        disturbed = [sys.executable, "-m", "clarinet", *words, str(tmp_path / "disturbed")]
        checkpoints = tmp_path / "disturbed" / "running"

        for number, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
            process = subprocess.Popen(disturbed, stdout=subprocess.DEVNULL)
            known = {path: path.stat().st_mtime_ns for path in checkpoints.glob("*.safetensors")}
            deadline = time.monotonic() + 300
            while {p: p.stat().st_mtime_ns for p in checkpoints.glob("*.safetensors")} == known:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(number)
            assert process.wait(timeout=120) == status
        assert main([*words, str(tmp_path / "disturbed")]) == 0
        assert main([*words, str(tmp_path / "whole")]) == 0

        disturbed_records, records = (read_records(tmp_path / name) for name in ("disturbed", "whole"))
        assert len(records) == 1
        for one, other in zip(disturbed_records, records, strict=True):
            for name in ("target_accuracy", "per_class_accuracy", "curve", "steps"):
                assert one["result"][name] == other["result"][name]
