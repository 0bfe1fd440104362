"""What one step minimises: the losses of every method, each switched by the config."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.data.batches import Batches, SourceBatch
from clarinet.data.domains import Domains
from clarinet.data.images import normalised
from clarinet.data.inputs import Inputs
from clarinet.losses.adaptation.adversary import DomainBatch, log_sharpened
from clarinet.losses.adaptation.terms import adaptation_losses, adaptation_share, adapts
from clarinet.losses.complementary import (
    bounded_complementary_loss,
    class_floor_loss,
    class_proportions,
    corrected_objective,
    estimated_class_ceiling,
    one_hot,
    per_class_complementary_risk,
    true_label_loss,
    without_classes,
)
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.precision import mixed
from clarinet.plus.pretraining import Pretraining
from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.config import TrainConfig
from clarinet.run.label_losses import NON_UNIFORM, LabelFacts, complementary_loss, true_loss

NEIGHBOUR_SHARPENING = 0.5  # temperature of what neighbours say: 3/4 against one other class is then 0.9
SMALL = ("lenet", "dann", "dtn")  # networks whose step is shorter than its launching
STATISTICS_EVERY = 10  # steps between two looks at a target in no loss yet, for its batch statistics


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """The networks of a run; `averaged` predicts and teaches, the last two are None where no loss asks.

    `encoder` is that of the pretraining, whose features tell which images of the source are similar.
    """

    classifier: Classifier
    averaged: Classifier
    discriminator: nn.Module | None
    encoder: Classifier | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """What a step does. Steps of a phase do the same with other inputs."""

    pretrains: bool = False
    distorts: bool = False
    adapts: bool = False
    source_teacher: bool = False
    target_teacher: bool = False
    sees_target: bool = False
    has_neighbours: bool = False


class Objective:
    """Losses of a step as a function of (config, data, networks, neighbours, step): otherwise stateless.

    `neighbours` are None until the pretraining has ended, and for methods without it.
    """

    def __init__(
        self, config: TrainConfig, domains: Domains, networks: Networks, *, steps: int, epoch_steps: int
    ) -> None:
        self.config = config
        self.domains = domains
        self.networks = networks
        self.device = domains.complementary.device
        self.steps = steps
        self.adaptation_from = config.adversarial_start_epoch * epoch_steps if adapts(config) else steps
        self.alpha = domains.alpha
        self._batches = Batches(config, domains, steps=steps)
        self._proportions = self._dataset_proportions() if config.class_proportions == "dataset" else None
        self._facts = (
            LabelFacts.of(config, domains, self._batches.size)
            if config.complementary_loss in NON_UNIFORM
            else None
        )
        self._floor = self._class_floor() if config.class_floor > 0 else None
        self.neighbours: NeighbourLabels | None = None
        self._pretraining = None
        if networks.encoder is not None:
            self._pretraining = Pretraining(
                self._batches.config,
                domains,
                networks.encoder,
                steps=config.pretraining_epochs * epoch_steps,
                centre=self._batches.centre,
            )

    def _dataset_proportions(self) -> Tensor:
        """(K,) share of each complementary label in the data set."""
        domains, rows = self.domains, self.domains.complementary_rows
        return class_proportions(domains.complementary[rows], domains.weights[rows], domains.spec.num_classes)

    def _class_floor(self) -> Tensor:
        """(K,) floor of each class's share: the config's, lowered where the labels say that it is rare."""
        domains, num_classes = self.domains, self.domains.spec.num_classes
        rows = domains.complementary_rows
        weights = domains.weights[rows]
        if domains.probabilities is not None:
            weights = weights / domains.probabilities[rows]
        ceiling = estimated_class_ceiling(domains.complementary[rows], weights, num_classes)
        return (ceiling / 2).clamp(1e-3 / num_classes, self.config.class_floor / num_classes)

    @property
    def can_repeat(self) -> bool:
        """Whether a step may be taken again by the device alone: a small network's, with all images there.

        The larger networks compute for longer than their launching takes, and graphs would hold their
        activations once more for each phase.
        """
        domains = self.domains
        resident = isinstance(domains.source, Tensor) and isinstance(domains.target, Tensor)
        return resident and domains.spec.architecture in SMALL

    def phase(self, step: int) -> Phase:
        """What is done in a step, once the neighbours have been found that it needs."""
        config = self.config
        if self._pretraining is not None and step < self._pretraining.steps:
            return Phase(pretrains=True)
        target_teacher = self._ramp(step, config.target_self_training_start) > 0
        adapting = adapts(config) and step >= self.adaptation_from
        unseen = self.domains.spec.batch_norm and not target_teacher and not adapting
        return Phase(
            distorts=self._batches.distorted_share(step) > 0,
            adapts=adapting,
            source_teacher=self._ramp(step, config.source_self_training_start) > 0,
            target_teacher=target_teacher,
            sees_target=unseen and step % STATISTICS_EVERY == 0,
            has_neighbours=self.neighbours is not None,
        )

    def losses(self, step: int, inputs: Inputs | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """The scalar to minimise at a step, and what to report: detached scalars by name.

        The names depend on the config only, so that an epoch's means are over the same terms throughout; in
        the pretraining, which takes whole epochs, there is but one.

        Args:
            step: counted from 0.
            inputs: of this step; None hands them over as they come.
        """
        config, phase = self.config, self.phase(step)
        inputs = Inputs(step, self.device) if inputs is None else inputs
        if phase.pretrains and self._pretraining is not None:
            loss = self._pretraining.loss(inputs)
            return loss, {"contrast": loss.detach()}
        parts = [self._batches.source(inputs, kind, distorted=phase.distorts) for kind in self._batches.kinds]
        passes: list[tuple[Tensor, Domain]] = [(part.pixels, SOURCE) for part in parts]
        if phase.adapts:
            passes.append((self._batches.target(inputs), TARGET))
        outputs = self._classify_all(passes)
        objective, reported = self._label_losses(parts, [logits for _, logits in outputs[: len(parts)]])
        if self._floor is not None:
            loss = class_floor_loss(outputs[0][1], self._floor)
            objective = objective + config.class_floor_weight * loss
            reported["class_floor"] = loss.detach()
        if self.neighbours is not None and config.neighbour_weight > 0:
            loss = self._neighbour_loss(self.neighbours, parts[0], outputs[0][1])
            objective = objective + config.neighbour_weight * loss
            reported["neighbours"] = loss.detach()
        nothing = objective.new_zeros(())
        if config.source_self_training_start < 1:
            loss = self._source_self_training(parts[0], outputs[0][1]) if phase.source_teacher else nothing
            objective = objective + inputs.number(self._source_teacher_weight) * loss
            reported["source_self_training"] = loss.detach()
        if config.target_self_training_start < 1:
            loss = self._target_self_training(inputs) if phase.target_teacher else nothing
            objective = objective + inputs.number(self._target_teacher_weight) * loss
            reported["target_self_training"] = loss.detach()
        if adapts(config):
            for name, loss in self._adaptation(inputs, parts, outputs).items():
                objective = objective + loss
                reported[name] = loss.detach()
        if phase.sees_target:
            self._see_target(inputs)
        return objective, reported

    def lacks_neighbours(self, step: int) -> bool:
        """Whether the loss of a step needs `find_neighbours` first."""
        return self._pretraining is not None and self.neighbours is None and step >= self._pretraining.steps

    def find_neighbours(self) -> NeighbourLabels:
        """Look, once, which classes similar source images agree on."""
        assert self._pretraining is not None
        self.neighbours = self._pretraining.neighbours()
        return self.neighbours

    def _source_teacher_weight(self, step: int) -> float:
        config = self.config
        return self._ramp(step, config.source_self_training_start) * config.source_self_training_weight

    def _target_teacher_weight(self, step: int) -> float:
        config = self.config
        return self._ramp(step, config.target_self_training_start) * config.target_self_training_weight

    def _ramp(self, step: int, start: float) -> float:
        """0 until start, a share of the run, then rising to 1 over the config's share of it."""
        progress = step / self.steps
        if progress < start:
            return 0.0
        return min(1.0, (progress - start + 1 / self.steps) / max(self.config.self_training_ramp, 1e-9))

    def _classify(self, pixels: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
        config = self.config
        with mixed(config.precision, pixels.device):
            out: tuple[Tensor, Tensor] = self.networks.classifier(
                normalised(pixels, config.input_normalisation), domain
            )
        return out

    def _classify_all(self, passes: list[tuple[Tensor, Domain]]) -> list[tuple[Tensor, Tensor]]:
        """Features and logits of several batches, in one pass unless each has its domain's normalisation."""
        if self.domains.spec.batch_norm:
            return [self._classify(pixels, domain) for pixels, domain in passes]
        features, logits = self._classify(torch.cat([pixels for pixels, _ in passes]), SOURCE)
        sizes = [len(pixels) for pixels, _ in passes]
        return list(zip(torch.split(features, sizes), torch.split(logits, sizes), strict=True))

    def teach(self, pixels: Tensor, domain: Domain) -> Tensor:
        """Logits (B, K) of the averaged network, in eval mode and without gradient."""
        config, teacher = self.config, self.networks.averaged
        was_training = teacher.training  # true where the classifier, for want of averaging, teaches itself
        teacher.eval()
        with torch.no_grad(), mixed(config.precision, pixels.device):
            logits: Tensor = teacher(normalised(pixels, config.input_normalisation), domain)[1]
        teacher.train(was_training)
        return logits

    def _label_losses(
        self, parts: list[SourceBatch], logits: list[Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """L_c = alpha L_true + (1 - alpha) L_comp, of PC-UDA, or the one of the two that there is.

        L_comp is what `corrected_objective` gives: while it ascends on the complementary risk, L_true still
        descends.
        """
        true, reported = None, {}
        if "true" in self._batches.kinds:
            true = self._true_loss(parts[-1], logits[-1])
            reported = {"true": true.detach()}
            if "complementary" not in self._batches.kinds:
                return true, reported
        if self._facts is None:
            objective, shown = self._complementary_loss(parts[0], logits[0])
        else:
            objective, shown = complementary_loss(self.config, self._facts, parts, logits)
        reported = {"complementary": shown.detach()} | reported
        if true is not None:
            objective = self.alpha * true + (1 - self.alpha) * objective
        return objective, reported

    def _true_loss(self, part: SourceBatch, logits: Tensor) -> Tensor:
        if self._facts is None:
            return true_label_loss(logits, part.true, part.weights)
        return true_loss(self.config, self._facts, part, logits)

    def _complementary_loss(self, part: SourceBatch, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The objective to minimise and the loss to show, which differ while the correction ascends."""
        config, labels, weights = self.config, part.complementary, part.weights
        if config.complementary_loss == "unbiased":
            risk = per_class_complementary_risk(
                logits, labels, weights, self._proportions, second_term_prior=config.second_term_prior
            )  # (K,)
            counts = None
            if config.ascent_weight == "count":
                counts = one_hot(labels, logits.shape[1]).sum(0)  # (K,)
            return corrected_objective(risk, counts), risk.sum()
        if config.complementary_loss == "cross-entropy":
            loss = true_label_loss(logits, labels, weights)  # towards what the images are not
        else:
            measured = None if self.neighbours is None else self.neighbours.label_noise
            noise = config.label_noise if measured is None else measured
            loss = bounded_complementary_loss(logits, labels, weights, label_noise=noise)
        return loss, loss

    def _neighbour_loss(self, neighbours: NeighbourLabels, part: SourceBatch, logits: Tensor) -> Tensor:
        """Cross-entropy towards the class on which an image's neighbours agree, sharpened, where they do."""
        if neighbours.label_noise is None:
            return logits.new_zeros(())
        agreed = neighbours.probabilities[part.images]  # (B, K)
        sharpened = log_sharpened(agreed.log(), NEIGHBOUR_SHARPENING).exp()
        return self._pseudo_label_loss(logits, sharpened, part.weights)

    def _source_self_training(self, part: SourceBatch, logits: Tensor) -> Tensor:
        """Cross-entropy towards the teacher's class, where it is sure once the known no-classes are out."""
        probabilities = without_classes(self.teach(part.pixels, SOURCE), part.no_classes)  # (B, K)
        return self._pseudo_label_loss(logits, probabilities, part.weights)

    def _target_self_training(self, inputs: Inputs) -> Tensor:
        """The teacher sees the clean target image, the student a distorted one."""
        pixels = self._batches.target(inputs)
        probabilities = self.teach(pixels, TARGET).softmax(1)  # (B, K)
        pixels = self._batches.distorted_target(inputs, pixels)
        _, logits = self._classify(pixels, TARGET)
        return self._pseudo_label_loss(logits, probabilities, torch.ones_like(logits[:, 0]))

    def _pseudo_label_loss(self, logits: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
        """Weighted mean (B,) of the cross-entropy towards the likeliest class, 0 where that is not sure."""
        confidence, labels = probabilities.max(1)  # (B,), (B,)
        sure = (confidence > self.config.confidence).to(logits.dtype)
        return (weights * sure * F.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()

    def _see_target(self, inputs: Inputs) -> None:
        """Move the target's batch statistics where no loss does; prediction needs them."""
        with torch.no_grad():
            self._classify(self._batches.target(inputs), TARGET)

    def _adaptation(
        self, inputs: Inputs, parts: list[SourceBatch], outputs: list[tuple[Tensor, Tensor]]
    ) -> dict[str, Tensor]:
        """The losses that bring the domains together; before their time (T_s) zeros, and no target pass."""
        config, discriminator = self.config, self.networks.discriminator
        if len(outputs) == len(parts):
            nothing = outputs[0][1].new_zeros(())
            names = {"adversarial": config.trade_off, "discrepancy": config.discrepancy_weight}
            return {name: nothing for name, weight in names.items() if weight > 0}
        features, logits = outputs[-1]
        target = DomainBatch(features, logits, torch.ones_like(logits[:, 0]))
        source = [DomainBatch(f, z, part.weights) for part, (f, z) in zip(parts, outputs, strict=False)]
        return adaptation_losses(config, discriminator, source, target, inputs.number(self._adaptation_share))

    def _adaptation_share(self, step: int) -> float:
        began = self.adaptation_from
        return adaptation_share(self.config, step - began, self.steps - began)
