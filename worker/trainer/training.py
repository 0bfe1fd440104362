"""A claimed trial, trained: rows -> data -> clarinet -> metrics, result, model. Runs in its own process.

Several trials of a run may share that process and its device: `together` has them take turns.
"""

import hashlib
import json
import platform
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import structlog
import torch

from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.db import Database
from app.registry import kept_pictures, target_predictions
from app.registry import service as registry
from app.registry.kept_pictures import keep_pictures
from app.registry.target_predictions import keep_target_predictions
from app.runs import configs, shares, trials
from app.runs.configs import WITHOUT_A_FILE
from app.runs.faults import Fault
from app.runs.models import Run, Trial
from app.storage import Storage
from app.tracing import spans
from clarinet.data.images import GREY_DIMENSIONS
from clarinet.export.onnx import export_model
from clarinet.files.arrays import RGB
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import (
    CheckpointError,
    CheckpointNotWritten,
    ClarinetError,
    ExportError,
    Interrupted,
)
from clarinet.recipes.fitting import sentence_of
from clarinet.run.devices import most_memory
from clarinet.run.pacing import Paced
from clarinet.run.tensor_files import tensors_digest
from clarinet.run.training import Doing, EpochReport, TrainResult, train_in_steps
from clarinet.run.turns import Run as Steps
from worker.beats import silently
from worker.device import look_at_device
from worker.mirror import Mirror
from worker.outages import OUTAGES, keep_trying
from worker.trainer.exits import Exit
from worker.trainer.faults import NoRoom, WorkerUnfit, is_memory, trouble_in
from worker.trainer.memory import too_large
from worker.trainer.others import with_others
from worker.trainer.pictures import pictures_of, target_predictions_of
from worker.trainer.trial_data import TrialData, load

# A page looks once a second, and each change makes it fetch its fragment.
DOING_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ClaimedTrial:
    """What this process works on, and the hands it works with.

    Files are written into the folder of `checkpoint`, before `storage` keeps them. `pipe` is where the run's
    other processes say what stood in their way.
    """

    database: Database
    storage: Storage
    checkpoint: Mirror
    claim: Claim
    trial: Trial
    run: Run
    weights_dir: Path | None = None
    beat: Callable[[], None] = silently
    pipe: int = 2  # stderr, where nobody listens
    read: dict[UUID, TrialData] = field(default_factory=dict)  # data of runs that this process has read

    def data(self, config: TrainConfig) -> TrialData:
        """What the trial trains on, which is the same for every seed of its run; raises what `load` does."""
        if self.run.id not in self.read:
            told = spans.span("trial.data", statements=True)
            with told, self.database.read.begin() as session:
                self.read[self.run.id] = load(session, self.storage, self.run, config, beat=self.beat)
        return self.read[self.run.id]

    def record_epoch(self, report: EpochReport) -> None:
        """Keep an epoch's figures in a transaction of their own; raises ClaimLost."""
        figures = trials.Report(
            epoch=report.epoch,
            epochs=report.epochs,
            step=report.step,
            seconds=report.seconds,
            losses=report.losses,
            target_accuracy=report.target_accuracy,
            source_estimate=report.source_estimate.to_dict() if report.source_estimate else None,
            learning_rate=report.learning_rate,
            pseudo_label_share=report.pseudo_label_share,
        )

        def write() -> None:
            with self.database.write.begin() as session:
                trials.record_epoch(session, self.claim, figures, now=utc_now())

        keep_trying(write, beat=self.beat)
        self.beat()

    def record_doing(self, doing: Doing) -> None:
        """Keep what the training does, for people to see: where the database is away, it is left out.

        Raises:
            ClaimLost: the trial is not ours any more.
        """
        try:
            with self.database.write.begin() as session:
                trials.record_doing(session, self.claim, doing)
        except OUTAGES as error:
            log.warning("database.away", error=type(error).__name__)
        self.beat()

    def publish(
        self, result: TrainResult, loaded: TrialData, *, noted: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Store the model and end the trial well, both or neither; its result has what was `noted`, too.

        Raises:
            ClaimLost: the trial is not ours any more; the files are gone again.
        """
        key = registry.key_of(self.claim.id, self.claim.number)
        written = self.checkpoint.folder
        folder = written.path(key)
        onnx = self._export(folder, result, loaded)
        tensors = tensors_digest(result.model.state_dict())
        weights = _file_facts(folder / registry.WEIGHTS)
        facts = _facts(result, loaded)
        pictures = pictures_of(result, loaded, beat=self.beat)
        predicted = target_predictions_of(pictures)
        facts[shares.FACTS] = np.bincount(predicted.classes, minlength=len(loaded.class_names)).tolist()
        # For comparisons image by image; a card does without.
        kept = {**facts, **noted} | {"hits": None if result.hits is None else b64encode(result.hits).decode()}
        recipe = sentence_of(result.config, result.model.spec.architecture)
        card = self._card(facts, loaded, weights["sha256"], recipe)
        card |= {"tensors_digest": tensors, "onnx": onnx}
        card[kept_pictures.FACTS] = keep_pictures(written, key, pictures)
        card[target_predictions.FACTS] = keep_target_predictions(written, key, predicted)
        written.put(f"{key}/{registry.CARD}", json.dumps(card, indent=2).encode())
        self.storage.keep(written, key)

        def end() -> None:
            now = utc_now()
            with self.database.write.begin() as session:
                trials.succeed_trial(
                    session, self.claim, target_accuracy=result.target_accuracy, result=kept, now=now
                )
                registry.publish_model(
                    session,
                    trial_id=self.claim.id,
                    key=key,
                    digest=weights["sha256"],
                    tensors_digest=tensors,
                    size_bytes=weights["size_bytes"],
                    card=card,
                    now=now,
                )

        try:
            keep_trying(end, beat=self.beat)
        except ClaimLost:
            # A commit whose confirmation got lost has ended the trial, and its repetition finds it ended.
            if not keep_trying(lambda: self._is_published(key), beat=self.beat):
                self.storage.delete_tree(key)
                raise

    def _export(self, folder: Path, result: TrainResult, loaded: TrialData) -> dict[str, Any]:
        """Write the model's files; what the card says of the ONNX one, which a model can do without."""
        share = self.run.snapshot_facts["simulated_share"]
        simulated = {"share_of_answers": share} if share else None
        try:
            export_model(
                folder,
                result,
                loaded.data,
                class_names=loaded.class_names,
                simulated=simulated,
                made=loaded.made,
                origin={
                    "run": self.run.number,
                    "campaign": loaded.campaign_name,
                    "datasets": loaded.datasets,
                    "labels": self.run.snapshot_digest,
                },
            )
        except ExportError as error:
            log.warning("model.without_onnx", trial_id=str(self.claim.id), exc_info=True)
            return {"missing": str(error)}
        channels = 1 if len(loaded.data.target_images.shape) == GREY_DIMENSIONS else RGB
        return _file_facts(folder / registry.ONNX) | {"takes": ["N", "H", "W", channels]}

    def _is_published(self, key: str) -> bool:
        with self.database.read.begin() as session:
            return registry.is_published(session, key)

    def fail(self, reason: str) -> None:
        """End the trial with a reason in words; raises ClaimLost."""

        def end() -> None:
            with self.database.write.begin() as session:
                trials.fail_trial(session, self.claim, reason=reason, fault=Fault.RUN, now=utc_now())

        keep_trying(end, beat=self.beat)

    def _card(self, facts: dict[str, Any], loaded: TrialData, digest: str, recipe: str) -> dict[str, Any]:
        return {
            "run": self.run.number,
            "run_id": str(self.run.id),
            "seed": self.trial.seed,
            "method": self.run.method,
            "setting": self.run.setting,
            "preset": self.run.preset,
            "recipe": recipe,
            "classes": loaded.class_names,
            "config": configs.readable(self.run.config) | {"seed": self.trial.seed},
            "labels": self.run.snapshot_facts,
            "label_snapshot": self.run.snapshot_digest,
            "campaign": loaded.campaign_name,
            "weights_sha256": digest,
            **facts,
        }


def training_in_steps(
    work: ClaimedTrial, device: torch.device, should_stop: Callable[[], bool], *, together: int = 1
) -> Steps[Exit]:
    """Train to the end that the trial has by itself, a step at a time.

    Args:
        work, device: what is trained, and where.
        should_stop: asked before each step.
        together: how many trials this process trains in turns, this one among them.

    Raises:
        NoRoom: memory did not suffice beside the others.
        OtherEnded: another process of the run ended badly.
        Exception: what `trouble_in` knows is the machine's fault.
    """
    checkpoint = work.checkpoint.path
    log.info("trial.training", trial_id=str(work.claim.id), device=str(device), resumed=checkpoint.exists())
    try:
        config = TrainConfig.from_dict(work.run.config | {"seed": work.trial.seed})
        loaded = work.data(config)
        weights = weights_folder(work.weights_dir, config)
        once = partial(
            train_in_steps,
            config,
            loaded.data,
            device=device,
            on_epoch=work.record_epoch,
            on_doing=Paced(work.record_doing, every_s=DOING_S),
            on_part=work.beat,
            checkpoint=checkpoint,
            should_stop=should_stop,
            weights_folder=weights,
        )
        try:
            with with_others(
                work.run.processes, work.claim.id, work.claim.number, device=device, pipe=work.pipe
            ) as group:
                result = yield from from_checkpoint_or_anew(partial(once, group=group), checkpoint)
        except (RuntimeError, MemoryError) as error:
            if not is_memory(error):
                raise
            log.warning("trial.memory", trial_id=str(work.claim.id), together=together, exc_info=True)
            error.__traceback__ = None  # which holds the tensors that took the memory
            if together > 1:
                raise NoRoom from None
            raise WorkerUnfit(too_large(config, loaded.data, device, weights_folder=weights)) from None
    except Interrupted:
        return Exit.INTERRUPTED
    except ClarinetError as error:
        if trouble_in(error):
            raise
        reason = str(error)
        work.fail(reason[:1].upper() + reason[1:] + ("" if reason.endswith(".") else "."))
        return Exit.ENDED
    # In words of this machine's worker, so that estimates find the trainings of such a device.
    noted = {"device": look_at_device(device.type).words, "memory_bytes": most_memory(device)}
    with spans.span("trial.publish", statements=True, trial=str(work.claim.id), epochs=result.epochs):
        work.publish(result, loaded, noted=noted | {"together": together})
    work.checkpoint.drop()
    return Exit.ENDED


def weights_folder(folder: Path | None, config: TrainConfig) -> Path | None:
    """Where the trained weights are that a config names; with a folder, the library refuses paths."""
    if config.network.pretrained in WITHOUT_A_FILE:
        return None
    if folder is None:
        raise WorkerUnfit(
            f"The worker that took this trial has no folder of trained weights, and the run asks for "
            f"{config.network.pretrained}. Set CLARINET_WEIGHTS_DIR there, too."
        )
    return folder


def from_checkpoint_or_anew(once: Callable[[], Steps[TrainResult]], checkpoint: Path) -> Steps[TrainResult]:
    """The result of a run that goes on from its checkpoint, or begins again where that cannot be read."""
    try:
        return (yield from once())
    except CheckpointNotWritten:
        raise  # the disk is at fault; the checkpoint that is there is good
    except CheckpointError:
        # Damaged, or of an older version: the time in it is lost, the run need not be.
        log.warning("trial.checkpoint_dropped", exc_info=True)
        checkpoint.unlink(missing_ok=True)
        return (yield from once())


def _file_facts(path: Path) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size_bytes": path.stat().st_size}


def _facts(result: TrainResult, loaded: TrialData) -> dict[str, Any]:
    last = result.reports[-1]
    return {
        "target_accuracy": result.target_accuracy,
        "per_class_accuracy": result.per_class_accuracy,
        "confusion": result.confusion,
        "scored_on": loaded.scored.images,
        "scored": loaded.scored.to_dict(),
        "unscored": loaded.unscored,
        "source_estimate": last.source_estimate.to_dict() if last.source_estimate else None,
        "made": loaded.made,
        "datasets": loaded.datasets,
        "smallest_predicted_share": last.smallest_predicted_share,
        "merged_class": result.merged_class,
        "target_information": last.target_information,
        "student_agreement": last.student_agreement,
        "label_uniformity": result.label_uniformity,
        "label_noise": result.label_noise,
        "alpha": result.alpha,
        "steps": result.steps,
        "epochs": result.epochs,
        "seconds": result.seconds,
        "computed_in": result.computed_in,
        "pretrained": None if result.pretrained is None else asdict(result.pretrained),
        "versions": {"torch": str(torch.__version__), "python": platform.python_version()},
    }


def device_of(wanted: str) -> torch.device:
    """What the settings call auto, cpu or cuda."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(wanted)
