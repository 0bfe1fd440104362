"""What a run tells of itself: a report after each epoch, and its result."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from clarinet.data.domains import Domains
from clarinet.data.feeding import Pixels
from clarinet.data.seeding import generator
from clarinet.files.names import NO_LABEL
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.weights import TrainedWeights
from clarinet.plus.self_training import risen, share_of_sure
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import Diverged
from clarinet.recipes.scoring import MOST_PER_EPOCH
from clarinet.recipes.source_accuracy import SourceEstimate
from clarinet.run.building import rate_share
from clarinet.run.evaluation import (
    accuracy_from_complementary,
    agreement,
    information,
    predict_resized,
    score,
)
from clarinet.run.results import EpochReport, TrainResult
from clarinet.run.resuming import RunState
from clarinet.run.stages import Stage

LOOKED_AT_PER_EPOCH = MOST_PER_EPOCH  # images of the target predicted after each epoch
# Images of the target for each class, on average: of fewer a class of equal size may be missed by chance.
LEAST_PER_CLASS = 20


class Predicting(Protocol):
    """Predicts images of a run's domains, (R, K) probabilities on the CPU; rows None means all of them."""

    def source(self, rows: Tensor) -> Tensor: ...

    def target(self, rows: Tensor) -> Tensor: ...

    def test(self, rows: Tensor | None) -> Tensor: ...


@dataclass(frozen=True, slots=True, eq=False)
class ByImages:
    """Predictions of a network that looks at the images."""

    network: Classifier
    domains: Domains

    def source(self, rows: Tensor) -> Tensor:
        """Of the source's images."""
        return self._predicted(self.domains.source[rows], SOURCE)

    def target(self, rows: Tensor) -> Tensor:
        """Of the target's images."""
        return self._predicted(self.domains.target[rows], TARGET)

    def test(self, rows: Tensor | None) -> Tensor:
        """Of its test images."""
        images = self.domains.test
        assert images is not None
        return self._predicted(images if rows is None else images[rows], TARGET)

    def _predicted(self, images: Pixels, domain: Domain) -> Tensor:
        group, count, on_part = self.domains.group, len(images), self.domains.on_part
        if group.is_alone:
            return predict_resized(self.network, images, domain=domain, on_part=on_part)
        own = images[torch.arange(count)[group.part(count)]]
        return group.joined(predict_resized(self.network, own, domain=domain, on_part=on_part), count)


def epoch_report(config: TrainConfig, state: RunState, stage: Stage) -> EpochReport:
    """The report of the epoch that a state has just finished; empties its sums for the next one.

    Args:
        config: of the whole run.
        state: after the epoch's last step.
        stage: what is being trained.

    Raises:
        Diverged: the mean loss of the epoch, or what the network predicts, is not finite.
    """
    losses = {name: float(total) / stage.epoch_steps for name, total in state.totals.items()}
    network, student = state.networks.averaged, state.networks.classifier
    found = report(
        config,
        stage,
        ByImages(network, stage.domains),
        step=state.step,
        seconds=state.seconds,
        losses=losses,
        student=None if student is network else ByImages(student, stage.domains),
    )
    state.totals.clear()
    return found


def report(
    config: TrainConfig,
    stage: Stage,
    predicting: Predicting,
    *,
    step: int,
    seconds: float,
    losses: dict[str, float],
    student: Predicting | None = None,
) -> EpochReport:
    """The report of an epoch.

    Args:
        config: of the whole run.
        stage: what is being trained.
        predicting: what the run has learned so far.
        step: of the stage, done; the epoch's last one.
        seconds: trained so far.
        losses: means over the epoch.
        student: the network in training, where an averaged one predicts.

    Raises:
        Diverged: a loss, or what is predicted, is not finite.
    """
    domains, epoch_steps = stage.domains, stage.epoch_steps
    epoch = stage.epochs_before + step // epoch_steps
    if not all(math.isfinite(value) for value in losses.values()):
        raise Diverged(epoch, losses)
    # In the pretraining the classifier stands where it began: its accuracy would only alarm people.
    learns = step > stage.config.pretraining_epochs * epoch_steps
    enough = LEAST_PER_CLASS * domains.spec.num_classes
    most = max(LOOKED_AT_PER_EPOCH, enough)
    seen = _looked_at(len(domains.target), most, config, "report/target")
    predicted = predicting.target(seen)  # (M, K)
    if not bool(predicted.isfinite().all()):  # the last step of the epoch may have been the one
        raise Diverged(epoch, losses)
    counts = torch.bincount(predicted.argmax(1), minlength=domains.spec.num_classes)
    return EpochReport(
        epoch=epoch,
        epochs=config.length.epochs,
        step=stage.steps_before + step,
        steps=stage.steps_before + stage.steps + stage.steps_after,
        seconds=seconds,
        losses=losses,
        target_accuracy=(
            _target_accuracy(config, predicting, domains, whole=step == stage.steps) if learns else None
        ),
        source_estimate=_source_estimate(config, predicting, domains, learns=learns),
        smallest_predicted_share=float(counts.min() / counts.sum()),
        target_information=information(predicted),
        student_agreement=None if student is None else agreement(predicted, student.target(seen)),
        least_predicted_class=int(counts.argmin()) if len(seen) >= enough else None,
        learning_rate=_learning_rate(stage, step - 1),
        pseudo_label_share=_pseudo_label_share(stage, step - 1, predicted),
    )


def _learning_rate(stage: Stage, step: int) -> float | None:
    """Of the classifier at a step, counted from 0."""
    if stage.config.network.kept_features:
        return None
    return stage.config.optimisation.learning_rate * rate_share(stage.config, step / stage.steps)


def _pseudo_label_share(stage: Stage, step: int, predicted: Tensor) -> float | None:
    """Share of the predictions (M, K) that a step learns, as they are sure; None where none ever does."""
    start = stage.config.self_training.target_self_training_start
    if start >= 1 or stage.config.network.kept_features:
        return None
    return share_of_sure(predicted) if risen(step, stage.steps, start) > 0 else 0.0


def _looked_at(count: int, most: int, config: TrainConfig, stream: str) -> Tensor:
    """(R,) rows of so many, R <= most, the same ones in every epoch."""
    if count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=generator(config.seed, stream))[:most]


def _source_estimate(
    config: TrainConfig, predicting: Predicting, domains: Domains, *, learns: bool
) -> SourceEstimate | None:
    """The estimate or what it lacks; None where the held-out labels are not known to be uniform."""
    held_out, noise = domains.held_out_rows, config.losses.label_noise
    trust, images = domains.weights[held_out], domains.example[held_out]
    if noise * domains.spec.num_classes >= 1:
        return None  # the labels say nothing, however many there are
    if domains.probabilities is not None:
        asked = domains.probabilities[held_out]
        trust = trust / asked
        if noise > 0 and len(asked) and bool(asked.min() < asked.max()):
            return None  # which share of these weights is wrong depends on which questions were
    elif domains.uniformity is not None and domains.uniformity.is_rejected:
        return None
    found = None
    if learns:
        found = accuracy_from_complementary(
            predicting.source(images).argmax(1),
            domains.complementary[held_out],
            domains.spec.num_classes,
            weights=trust,
            images=images,
            # Only what is told from outside: the rate that neighbours give has their own errors in it, and a
            # network that has learnt them would seem to be right.
            label_noise=noise,
        )
    return SourceEstimate.of(found, held_out=len(held_out), share=_held_out_share(config, domains))


def _held_out_share(config: TrainConfig, domains: Domains) -> float:
    """Which part of the complementary labels is held out; the config's where they are too few for one."""
    labels = int((domains.complementary != NO_LABEL).sum())
    if not labels:
        return 0.0
    return len(domains.held_out_rows) / labels or config.reports.held_out_share


def _target_accuracy(
    config: TrainConfig, predicting: Predicting, domains: Domains, *, whole: bool
) -> float | None:
    if domains.test_labels is None:
        return None
    rows, labels = None, domains.test_labels
    if not whole:
        rows = _looked_at(len(labels), LOOKED_AT_PER_EPOCH, config, "report/test")
        labels = labels[rows.to(labels.device)]
    return score(_of_scored(predicting, domains, rows).argmax(1), labels, domains.spec.num_classes).accuracy


def _of_scored(predicting: Predicting, domains: Domains, rows: Tensor | None) -> Tensor:
    """Predictions of the images that score, (R, K), or of some rows among them."""
    if domains.scored_rows is None:
        return predicting.test(rows)
    return predicting.target(domains.scored_rows if rows is None else domains.scored_rows[rows])


def run_result(config: TrainConfig, state: RunState, stage: Stage) -> TrainResult:
    """The result of a run after the last step of its last stage, with its score on all images that score."""
    network = state.networks.averaged.eval()
    return result(
        config,
        stage,
        network,
        ByImages(network, stage.domains),
        reports=state.reports,
        label_noise=state.neighbours.label_noise if state.neighbours else None,
        step=state.step,
        seconds=state.seconds,
        pretrained=state.networks.pretrained,
    )


def result(
    config: TrainConfig,
    stage: Stage,
    model: Classifier,
    predicting: Predicting,
    *,
    reports: Sequence[EpochReport],
    label_noise: float | None,
    step: int,
    seconds: float,
    pretrained: TrainedWeights | None,
) -> TrainResult:
    """The result of a run: see `TrainResult`; `predicting` is the model, and step the stage's last."""
    domains, scores, hits = stage.domains, None, None
    if domains.test_labels is not None:
        predicted = _of_scored(predicting, domains, None).argmax(1)
        scores = score(predicted, domains.test_labels, domains.spec.num_classes)
        found = predicted.cpu() == domains.test_labels.cpu()
        hits = np.packbits(found.numpy()).tobytes()
    return TrainResult(
        model=model,
        config=config,
        reports=list(reports),
        target_accuracy=scores.accuracy if scores else None,
        per_class_accuracy=scores.per_class if scores else None,
        confusion=scores.confusion if scores else None,
        label_uniformity=domains.uniformity.p_value if domains.uniformity else None,
        label_noise=label_noise,
        alpha=domains.alpha if 0 < domains.alpha < 1 else None,
        steps=stage.steps_before + step,
        epochs=config.length.epochs,
        seconds=seconds,
        pretrained=pretrained,
        scored_on=domains.scored_on,
        hits=hits,
    )
