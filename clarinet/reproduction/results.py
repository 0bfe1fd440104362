"""Files of the reproduction: one of all finished trials, and locks that no process leaves behind.

`trials.jsonl` has a line for each finished trial. Whoever adds one holds a lock and replaces the whole file
in one step: a reader sees all lines or those of before, and no crash leaves half a line. The kernel holds the
locks and lets go of them when a process dies, so that none is ever stale.
"""

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from clarinet.files.json_text import json_of
from clarinet.recipes.config import DEFAULTS, flattened
from clarinet.recipes.errors import ConfigError, DataError
from clarinet.recipes.identity import IDENTITIES
from clarinet.recipes.source_accuracy import upgraded_figures
from clarinet.recipes.upgrade import UNTOLD, is_earlier, upgraded_preset
from clarinet.recipes.upgrade import upgraded as renamed
from clarinet.reproduction.trials import Trial
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import replacing

FORMAT_VERSION = 1
RESULT_FIELDS = {"target_accuracy", "epochs", "steps", "seconds", "curve"}  # that tables and charts need
RECORDS, RUNNING, LABELS = "trials.jsonl", "running", "labels"
OLDER_RECORDS, OLDER_TABLE = "trials", "trials.csv"  # until 0.1.0: a file for each trial, and a table of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a trial's files lie while it runs: its checkpoint and its lock."""

    checkpoint: Path
    lock: Path

    @classmethod
    def of(cls, folder: Path, stem: str) -> "Place":
        """The files of a trial in a folder of results, which is made."""
        folder_for_results(folder)
        running = folder / RUNNING
        return cls(checkpoint=running / f"{stem}.safetensors", lock=running / f"{stem}.lock")


def folder_for_results(folder: Path) -> None:
    """Make a folder of results; one of an older version gets its trials into the one file.

    Raises:
        ConfigError: there is a file in its way, or the disk refuses it.
        DataError: a record of an older version cannot be read.
    """
    try:
        (folder / RUNNING).mkdir(parents=True, exist_ok=True)
        if any((folder / OLDER_RECORDS).glob("*.json")):
            _take_in_older(folder)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be a folder of results: {error.strerror}") from error


def _take_in_older(folder: Path) -> None:
    with in_turn(folder):
        paths = sorted((folder / OLDER_RECORDS).glob("*.json"))
        _add(folder, [_parsed(path.read_bytes(), str(path), "the file") for path in paths])
        for path in (*paths, folder / OLDER_TABLE):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # something else lies in it
            (folder / OLDER_RECORDS).rmdir()


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
    """Wait until no other process writes records or the report of a folder, and keep others waiting."""
    with (folder / RUNNING / "records.lock").open("w") as file:
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
        "source_estimate": last.source_estimate.to_dict() if last.source_estimate else None,
        "smallest_predicted_share": last.smallest_predicted_share,
        "alpha": result.alpha,
        "label_noise": result.label_noise,
        "curve": [[report.epoch, report.target_accuracy] for report in result.reports],
    } | ({} if result.pretrained is None else {"pretrained": asdict(result.pretrained)})


def keep_record(folder: Path, record: dict[str, Any]) -> None:
    """Add the record of a finished trial to those of a folder; one that is there already stays.

    Raises:
        DataError: see `read_records`.
        CheckpointNotWritten: the disk refuses it; the other records are still there.
    """
    with in_turn(folder):
        _add(folder, [record])


def _add(folder: Path, records: Iterable[dict[str, Any]]) -> None:
    """Needs the lock of `in_turn`. Lines that are there are kept byte by byte."""
    lines = {stem_of(upgraded(record)): json.dumps(record).encode() for record in records}
    lines |= {stem: line for stem, (line, _) in _kept(folder).items()}
    with replacing(folder / RECORDS) as temporary:
        temporary.write_bytes(b"".join(lines[stem] + b"\n" for stem in sorted(lines)))


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of all finished trials in a folder, by name, as this version would have written them.

    Raises:
        DataError: a line is none, is cut off, or is of an unknown format.
    """
    kept = _kept(folder)
    return [kept[stem][1] for stem in sorted(kept)]


def finished_record(folder: Path, stem: str) -> dict[str, Any] | None:
    """The record of a trial by its name, if it is finished; raises as `read_records`."""
    _, record = _kept(folder).get(stem, (b"", None))
    return record


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """A record of any version as this one would have written it: the one place that knows older ones.

    What follows (names of trials, groups, presets that have changed) compares its config with those of today.
    """
    trial = record["trial"]
    changes = renamed(trial["changes"])
    own = IDENTITIES.get(trial["method"])
    if own is not None and changes.get("adaptation_kind") == own.adapts_by:
        del changes["adaptation_kind"]  # earlier versions told it by the weight; a method has one alone
    trial = trial | {"changes": changes, "preset": upgraded_preset(trial["method"], trial["preset"])}
    config = {**DEFAULTS, **flattened(record["config"])}
    untold = _untold(trial, config) if is_earlier(record["config"]) else {}
    known = {"trial": trial | {"changes": changes | untold}, "config": config}
    found = record | known | ({"untold": untold} if untold else {})
    if "result" in record:
        num_classes = len(record["result"].get("per_class_accuracy") or ()) or None
        found["result"] = upgraded_figures(record["result"], num_classes=num_classes, config=config)
    return found


def _untold(trial: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """What a trial from before the fields in UNTOLD had instead of what its preset has of them today.

    They say how paper and code are read. So it counts as a trial with these changes, though its command names
    none of them, and not as one of the preset.
    """
    try:
        today = Trial.from_dict(dict(trial)).config().flat()
    except ConfigError:  # it cannot be trained any more
        return {}
    return {name: config[name] for name in UNTOLD if config[name] != today[name]}


def stem_of(record: dict[str, Any]) -> str:
    """The name of a record's trial, as `Trial.stem` gives it; the record is `upgraded`."""
    return Trial.from_dict(record["trial"]).named(record["config"], record["data"]["digest"])


def _kept(folder: Path) -> Mapping[str, tuple[bytes, dict[str, Any]]]:
    """The line and the upgraded record of each finished trial, by its name; of two the first."""
    path = folder / RECORDS
    try:
        now = path.stat()
        return _read(path, (now.st_ino, now.st_mtime_ns, now.st_size))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=2)  # each of hundreds of trials asks whether it is finished, which hardly ever changes
def _read(path: Path, _version: tuple[int, ...]) -> Mapping[str, tuple[bytes, dict[str, Any]]]:
    kept: dict[str, tuple[bytes, dict[str, Any]]] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.strip():
            record = upgraded(_parsed(line, f"{path}, line {number},", "the line"))
            kept.setdefault(stem_of(record), (line, record))
    return kept


def _parsed(text: bytes, where: str, what: str) -> dict[str, Any]:
    """A record of any known version from JSON; `where` and `what` name its place in an error."""
    again = f"delete {what}, and its trial is trained again"
    try:
        record = json_of(text)
    except ValueError as error:
        raise DataError(f"{where} cannot be read as a trial's result: {error}; {again}") from error
    if not isinstance(record, dict) or record.get("format_version") != FORMAT_VERSION:
        raise DataError(f"{where} is not a trial's result of format {FORMAT_VERSION}; {again}")
    try:
        Trial.from_dict(record["trial"])
        known = all(isinstance(record[name], dict) for name in ("config", "environment"))
        whole = known and {"source", "target", "digest"} <= record["data"].keys() and "finished_at" in record
        whole = whole and ("failure" in record or record["result"].keys() >= RESULT_FIELDS)
    except (KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DataError(f"{where} lacks a part of a trial's result, or has one of another version; {again}")
    return record
