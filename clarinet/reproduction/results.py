"""Files of the reproduction: the record of each finished trial, and locks that no process leaves behind.

The kernel holds the locks and lets go of them when a process dies, so that none is ever stale.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clarinet.recipes.errors import ConfigError, DataError
from clarinet.reproduction.trials import Trial
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import replacing

FORMAT_VERSION = 1
RESULT_FIELDS = {"target_accuracy", "epochs", "steps", "seconds", "curve"}  # that tables and charts need
RESULTS, RUNNING, LABELS = "trials", "running", "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a trial's files lie: its result, its checkpoint while it runs, and its lock."""

    result: Path
    checkpoint: Path
    lock: Path

    @classmethod
    def of(cls, folder: Path, stem: str) -> "Place":
        """The files of a trial in a folder of results, whose subfolders are made."""
        folder_for_results(folder)
        running = folder / RUNNING / stem
        return cls(
            result=folder / RESULTS / f"{stem}.json",
            checkpoint=running.with_name(f"{stem}.safetensors"),
            lock=running.with_name(f"{stem}.lock"),
        )


def folder_for_results(folder: Path) -> None:
    """Make a folder of results.

    Raises:
        ConfigError: there is a file in its way, or the disk refuses it.
    """
    try:
        for name in (RESULTS, RUNNING):
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be a folder of results: {error.strerror}") from error


@contextmanager
def alone_with(lock: Path) -> Iterator[bool]:
    """Whether this process holds a lock, which no other can while it does."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Wait until no other process writes the report of a folder of results, and keep others waiting."""
    with (folder / RUNNING / "report.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def summary_of(result: TrainResult) -> dict[str, Any]:
    """What a record keeps of a finished training, as plain JSON values."""
    last = result.reports[-1]
    return {
        "target_accuracy": result.target_accuracy,
        "per_class_accuracy": result.per_class_accuracy,
        "epochs": result.epochs,
        "steps": result.steps,
        "seconds": round(result.seconds, 2),
        "source_accuracy_estimate": last.source_accuracy_estimate,
        "source_accuracy_error": last.source_accuracy_error,
        "smallest_predicted_share": last.smallest_predicted_share,
        "alpha": result.alpha,
        "label_noise": result.label_noise,
        "curve": [[report.epoch, report.target_accuracy] for report in result.reports],
    }


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Replace a file in one step, so that a reader sees a whole record or none."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")


def read_record(path: Path) -> dict[str, Any]:
    """The record of a finished trial.

    Raises:
        DataError: it is not one, or of an unknown format.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a trial's result: {error}; delete it") from error
    if not isinstance(record, dict) or record.get("format_version") != FORMAT_VERSION:
        raise DataError(f"{path} is not a trial's result of format {FORMAT_VERSION}; delete it")
    try:
        Trial.from_dict(record["trial"])
        known = all(isinstance(record[name], dict) for name in ("config", "environment"))
        whole = known and {"source", "target", "digest"} <= record["data"].keys() and "finished_at" in record
        whole = whole and ("failure" in record or record["result"].keys() >= RESULT_FIELDS)
    except (KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DataError(f"{path} lacks a part of a trial's result, or has one of another version; delete it")
    return record


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of all finished trials in a folder, by name."""
    return [read_record(path) for path in sorted((folder / RESULTS).glob("*.json"))]
