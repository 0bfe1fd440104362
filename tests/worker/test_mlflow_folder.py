"""Trainings as runs of MLflow: read strictly by its layout, and by its own client where it is installed."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from worker.cli.mlflow_folder import write_run

NOTE = 'Grüße: "warm", 😀\nsecond line'


def told(**more: Any) -> Any:
    """A run of two seeds as the API tells it: the second was cancelled before its first epoch."""
    trial = {"id": str(uuid4()), "failure": None, "attempts": 1}
    ended = {"started_at": "2026-05-01T12:00:00Z", "finished_at": "2026-05-01T12:01:00.500Z"}
    return {
        "id": str(uuid4()),
        "number": 7,
        "campaign_id": str(uuid4()),
        "source_dataset_id": "s",
        "target_dataset_id": "t",
        "method": "clarinet",
        "setting": "cc",
        "preset": "quick",
        "config": {"epochs": 2, "learning_rate": 1e-3, "architecture": "lenet", "norm": None, "on": True},
        "label_snapshot": "5e",
        "created_at": "2026-05-01T11:59:00Z",
        "note": NOTE,
        "trials": [
            trial | ended | {"seed": 0, "state": "succeeded"},
            trial
            | {"id": str(uuid4()), "seed": 1, "state": "cancelled", "started_at": None, "finished_at": None},
        ],
    } | more


def metric(epoch: int, *, accuracy: float | None) -> Any:
    """What the first seed reported after an epoch."""
    return {
        "seed": 0,
        "epoch": epoch,
        "epochs": 2,
        "step": 10 * epoch,
        "seconds": 1.5 * epoch,
        "losses": {"complementary": 1 / epoch},
        "target_accuracy": accuracy,
        "learning_rate": 0.001,
        "pseudo_label_share": None,
        "recorded_at": f"2026-05-01T12:00:0{epoch}Z",
    }


METRICS = [metric(1, accuracy=None), metric(2, accuracy=0.75)]


def write(folder: Path, run: Any) -> list[str]:
    return write_run(folder, run, METRICS, campaign="Shop: spring", address="http://x/runs/1")


def meta(folder: Path) -> dict[str, Any]:
    """Its YAML, each line of which is a name and what JSON takes, too."""
    lines = (folder / "meta.yaml").read_text(encoding="utf-8").splitlines()
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in lines)}


def test_each_seed_is_a_run_in_the_layout_of_mlflows_file_store(tmp_path: Path) -> None:
    run = told()
    first, second = write(tmp_path, run)

    [experiment] = tmp_path.iterdir()
    about = meta(experiment)
    assert about["experiment_id"] == experiment.name
    assert (experiment.name.isdecimal(), len(experiment.name)) == (True, 18)
    assert (about["name"], about["lifecycle_stage"]) == ("Clarinet: Shop: spring", "active")
    assert about["artifact_location"] == experiment.as_uri()
    assert {path.name for path in experiment.iterdir()} == {"meta.yaml", first, second}

    trial = experiment / first
    assert first == run["trials"][0]["id"].replace("-", "")
    said = meta(trial)
    assert (said["run_id"], said["run_uuid"], said["experiment_id"]) == (first, first, experiment.name)
    assert (said["status"], said["source_type"], said["tags"]) == (3, 4, [])
    assert (said["start_time"], said["end_time"]) == (1777636800000, 1777636860500)
    assert said["artifact_uri"] == f"{experiment.as_uri()}/{first}/artifacts"
    assert {path.name for path in trial.iterdir()} == {"artifacts", "meta.yaml", "metrics", "params", "tags"}
    assert (
        trial / "metrics/loss/complementary"
    ).read_text() == "1777636801000 1.0 10\n1777636802000 0.5 20\n"
    assert (trial / "metrics/target_accuracy").read_text() == "1777636802000 0.75 20\n"
    assert not (trial / "metrics/pseudo_label_share").exists()
    params = {path.name: path.read_text() for path in (trial / "params").iterdir()}
    assert params["learning_rate"] == "0.001"
    assert (params["seed"], params["method"], params["norm"], params["on"]) == (
        "0",
        "clarinet",
        "null",
        "true",
    )
    assert (trial / "tags/mlflow.note.content").read_text(encoding="utf-8") == NOTE
    assert (meta(experiment / second)["status"], meta(experiment / second)["end_time"]) == (5, None)
    assert list((experiment / second / "metrics").iterdir()) == []


def test_writing_again_replaces_the_run_and_leaves_others_alone(tmp_path: Path) -> None:
    run = told()
    [other] = write(tmp_path, told(trials=told()["trials"][:1]))
    names = write(tmp_path, run)
    [stale] = tmp_path.glob(f"*/{names[0]}/metrics/target_accuracy")
    stale.write_text("1 0.0 1\n")

    assert write(tmp_path, run) == names

    assert stale.read_text() == "1777636802000 0.75 20\n"
    assert {path.name for path in tmp_path.glob("*/*/")} == {other, *names}


def test_mlflows_own_client_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    tracking: Any = pytest.importorskip("mlflow.tracking", reason="MLflow is not installed: clarinet[mlflow]")
    names = write(tmp_path, told())

    client = tracking.MlflowClient(tracking_uri=tmp_path.as_uri())
    [experiment] = [one for one in client.search_experiments() if one.name == "Clarinet: Shop: spring"]
    found = {run.info.run_id: run for run in client.search_runs([experiment.experiment_id])}

    assert set(found) == set(names)
    run = found[names[0]]
    assert (run.info.status, run.info.run_name) == ("FINISHED", "run 7, seed 0")
    assert (found[names[1]].info.status, found[names[1]].data.metrics) == ("KILLED", {})
    assert run.data.params["architecture"] == "lenet"
    assert run.data.tags["mlflow.note.content"] == NOTE
    assert run.data.metrics["target_accuracy"] == 0.75
    history = client.get_metric_history(names[0], "loss/complementary")
    assert [(one.step, one.value) for one in history] == [(10, 1.0), (20, 0.5)]
