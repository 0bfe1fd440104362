"""Trainings as runs of MLflow: a folder as MLflow's own file store has it, written without MLflow."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from clarinet_client.shapes.runs import Metric, Run, Trial

# As MLflow numbers them; what waits is scheduled.
STATUS = {"running": 1, "queued": 2, "succeeded": 3, "failed": 4, "cancelled": 5}
LOCAL = 4  # kind of a run's source
LONGEST_PARAM = 6000  # characters, of a value
ID_DIGITS = 18  # of an experiment's id


def write_run(folder: Path, run: Run, metrics: Sequence[Metric], *, campaign: str, address: str) -> list[str]:
    """Write each seed of a run as a run of MLflow; gives their ids. What was written before is replaced.

    Args:
        folder: MLflow's `mlruns`, other experiments in it stay.
        run: with its trials.
        metrics: what its trials reported.
        campaign: the name of its campaign, which is that of the experiment.
        address: of the run's page.

    Raises:
        OSError: the disk refuses it.
    """
    number = int(hashlib.sha256(run["campaign_id"].encode()).hexdigest(), 16) % 10**ID_DIGITS
    experiment = folder / f"{number:0{ID_DIGITS}}"
    _write_experiment(experiment, f"Clarinet: {campaign}", _ms(run["created_at"]))
    written = []
    for trial in run["trials"]:
        name = UUID(trial["id"]).hex
        part = experiment / f".{uuid4().hex}"
        try:
            own = [metric for metric in metrics if metric["seed"] == trial["seed"]]
            _write_trial(part, experiment / name, run, trial, own, address=address)
            shutil.rmtree(experiment / name, ignore_errors=True)
            part.rename(experiment / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        written.append(name)
    return written


def _write_experiment(folder: Path, name: str, made_ms: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "artifact_location": folder.resolve().as_uri(),
        "creation_time": made_ms,
        "experiment_id": folder.name,
        "last_update_time": made_ms,
        "lifecycle_stage": "active",
        "name": name,
    }
    _write_meta(folder, about)


def _write_trial(
    part: Path, at: Path, run: Run, trial: Trial, metrics: Sequence[Metric], *, address: str
) -> None:
    title = f"run {run['number']}, seed {trial['seed']}"
    about: dict[str, Any] = {
        "artifact_uri": f"{at.parent.resolve().as_uri()}/{at.name}/artifacts",
        "end_time": trial["finished_at"] and _ms(trial["finished_at"]),
        "entry_point_name": "",
        "experiment_id": at.parent.name,
        "lifecycle_stage": "active",
        "run_id": at.name,
        "run_name": title,
        "run_uuid": at.name,
        "source_name": "",
        "source_type": LOCAL,
        "source_version": "",
        "start_time": _ms(trial["started_at"] or run["created_at"]),
        "status": STATUS[trial["state"]],
        "tags": [],
        "user_id": "clarinet",
    }
    for name in ("artifacts", "metrics", "params", "tags"):
        (part / name).mkdir(parents=True)
    _write_meta(part, about)
    _write_texts(part / "params", _params(run, trial))
    said = {"mlflow.runName": title, "mlflow.user": "clarinet", "mlflow.source.name": "clarinet"}
    said |= {"mlflow.note.content": run["note"]} if run["note"] else {}
    said |= {"clarinet.page": address, "clarinet.label_snapshot": run["label_snapshot"]}
    said |= {"clarinet.failure": trial["failure"]} if trial["failure"] else {}
    _write_texts(part / "tags", said)
    for name, lines in _curves(metrics).items():
        path = part / "metrics" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")


def _params(run: Run, trial: Trial) -> dict[str, str]:
    known = {name: run["config"][name] for name in sorted(run["config"])}
    known |= {"method": run["method"], "setting": run["setting"], "preset": run["preset"]}
    known |= {"seed": trial["seed"], "source_dataset_id": run["source_dataset_id"]}
    known |= {"target_dataset_id": run["target_dataset_id"]}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in known.items()}
    return {name: text[:LONGEST_PARAM] for name, text in texts.items()}


def _curves(metrics: Sequence[Metric]) -> dict[str, list[str]]:
    """The lines of each figure: time, value, step."""
    curves: dict[str, list[str]] = {}
    for metric in metrics:
        figures: dict[str, float | None] = {
            name: metric[name]
            for name in ("epoch", "seconds", "target_accuracy", "learning_rate", "pseudo_label_share")
        }
        figures |= {f"loss/{name}": value for name, value in metric["losses"].items()}
        for name, value in figures.items():
            if value is not None:
                line = f"{_ms(metric['recorded_at'])} {float(value)!r} {metric['step']}\n"
                curves.setdefault(name, []).append(line)
    return curves


def _write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")


def _write_meta(folder: Path, about: Mapping[str, Any]) -> None:
    """Write YAML, which takes what JSON calls a text, a number, a list or null."""
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in about.items())
    (folder / "meta.yaml").write_text("".join(lines), encoding="utf-8")


def _ms(moment: str) -> int:
    return int(1000 * datetime.fromisoformat(moment).timestamp())
