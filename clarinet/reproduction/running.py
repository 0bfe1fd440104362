"""Train the trials of a plan, each once, and keep a record of each; processes may share a folder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clarinet.data.fingerprint import digest_of, fingerprint
from clarinet.data.training_data import TrainData
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import Diverged
from clarinet.recipes.groups import Optimisation
from clarinet.recipes.learning import Adaptation
from clarinet.recipes.methods import two_steps
from clarinet.reproduction.results import (
    FORMAT_VERSION,
    LABELS,
    RUNNING,
    Place,
    alone_with,
    finished_record,
    keep_record,
    summary_of,
)
from clarinet.reproduction.tasks import TaskData, labelled
from clarinet.reproduction.trials import Trial
from clarinet.run.provenance import environment
from clarinet.run.relabelling import pseudo_labels, with_pseudo_labels
from clarinet.run.results import TrainResult
from clarinet.run.tensor_files import read_tensors, write_tensors
from clarinet.run.training import EpochReport, ignore, never, train_in_steps
from clarinet.run.turns import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """How to train: where files go, the digest of all images, the device, who listens, who may stop it."""

    folder: Path
    data_digest: str
    device: torch.device
    on_epoch: Callable[[EpochReport], None]
    should_stop: Callable[[], bool]

    def train(self, config: TrainConfig, data: TrainData, checkpoint: Path) -> Run[TrainResult]:
        return train_in_steps(
            config,
            data,
            device=self.device,
            checkpoint=checkpoint,
            on_epoch=self.on_epoch,
            should_stop=self.should_stop,
        )


class _Busy(Exception):
    """Another process trains what this trial builds on."""


def trial_run(
    trial: Trial,
    data: TaskData,
    folder: Path,
    *,
    device: torch.device,
    command: str = "",
    at_once: int = 1,
    on_epoch: Callable[[EpochReport], None] = ignore,
    should_stop: Callable[[], bool] = never,
) -> Run[dict[str, Any] | None]:
    """Train one trial unless it is done; resume it where it was killed or interrupted. Stops after each step.

    GAC is trained once for each task and seed: the two-step methods share its pseudo-labels, and its own
    trial is the same training.

    Args:
        trial: what to train.
        data: the images of its task.
        folder: of the results.
        device: where to train.
        command: the words that asked for it, kept with the result.
        at_once: how many trials take turns at most, kept with it too: the seconds are those of all of them.
        on_epoch, should_stop: see `train`.

    Returns:
        Its record, old or new; None if another process is at it.

    Raises:
        Interrupted: should_stop said so; the checkpoint is kept.
        DataError, CheckpointError: see `train`.
    """
    stem = trial.stem(data)
    place = Place.of(folder, stem)
    with alone_with(place.lock) as alone:
        if (known := finished_record(folder, stem)) is not None:
            return known
        if not alone:
            return None
        config, own = trial.config(), drawn(trial, data)
        how = _How(
            folder=folder,
            data_digest=data.digest,
            device=device,
            on_epoch=on_epoch,
            should_stop=should_stop,
        )
        record = {
            "format_version": FORMAT_VERSION,
            "trial": trial.to_dict(),
            "config": config.flat(),
            "data": {
                "source": data.source.name,
                "target": data.target.name,
                "digest": data.digest,
                "labels": digest_of(own.complementary, own.true, own.example),
            },
            "environment": environment(device) | ({"trials at once": at_once} if at_once > 1 else {}),
            "command": command,
        }
        try:
            record["result"] = yield from _trained(how, config, own, place.checkpoint)
        except _Busy:
            return None
        except Diverged as error:
            record["failure"] = str(error)  # a result too, and the next trial may do better
        record["finished_at"] = datetime.now(UTC).isoformat(timespec="seconds")
        keep_record(folder, record)
        place.checkpoint.unlink(missing_ok=True)
        return record


def drawn(trial: Trial, data: TaskData) -> TrainData:
    """The task's images with the labels of a trial.

    Raises:
        DataError: more labels than images are asked for.
    """
    return labelled(
        data,
        seed=trial.seed,
        setting=trial.setting,
        true_count=trial.true_labels,
        answers=trial.answers,
        label_noise=trial.label_noise,
    )


def _trained(how: _How, config: TrainConfig, data: TrainData, checkpoint: Path) -> Run[dict[str, Any]]:
    """The summary of a training, of both steps if it has two."""
    if config.method == "gac":
        return (yield from _gac(how, config, data))[1]
    if config.length.first_step_share == 0:
        return summary_of((yield from how.train(config, data, checkpoint)))
    first, second = two_steps(config)
    labels, before = yield from _gac(how, first, data)
    relabelled = with_pseudo_labels(data, labels, setting=config.setting)
    after = summary_of((yield from how.train(second, relabelled, checkpoint)))
    both = {name: before[name] + after[name] for name in ("epochs", "steps", "seconds")}
    later = [[before["epochs"] + epoch, accuracy] for epoch, accuracy in after["curve"]]
    return after | both | {"curve": before["curve"] + later}


def _gac(how: _How, config: TrainConfig, data: TrainData) -> Run[tuple[Tensor, dict[str, Any]]]:
    """GAC's labels for the source and the summary of its training, from a file if it has been trained.

    Raises:
        _Busy: another process trains it.
    """
    # What decides nothing without adaptation keeps no two runs from sharing it.
    rates = replace(
        config.optimisation,
        discriminator_learning_rate=Optimisation().discriminator_learning_rate,
    )
    config = replace(config, optimisation=rates, adaptation=Adaptation(adaptation_kind="none"))
    # The fingerprint knows the labels drawn, the digest the test images as well.
    content = f"{sorted(config.flat().items())}{fingerprint(data)}{how.data_digest}"
    stem = f"gac_seed{config.seed}_{blake2b(content.encode(), digest_size=8).hexdigest()}"
    stored = how.folder / LABELS / f"{stem}.safetensors"
    with alone_with(how.folder / RUNNING / f"{stem}.lock") as alone:
        if not alone:
            raise _Busy
        if not stored.exists():
            checkpoint = how.folder / RUNNING / f"{stem}.safetensors"
            try:
                result = yield from how.train(config, data, checkpoint)
            except Diverged:  # which the trial records; another start begins anew
                checkpoint.unlink(missing_ok=True)
                raise
            labels = pseudo_labels(result, data.source_images)
            write_tensors(stored, {"labels": labels}, {"summary": summary_of(result)}, kind="pseudo-labels")
            checkpoint.unlink(missing_ok=True)
    tensors, header = read_tensors(stored, kind="pseudo-labels")
    return tensors["labels"], header["summary"]
