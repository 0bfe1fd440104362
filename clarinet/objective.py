"""What one step minimises: the losses of every method, each switched by the config."""

from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.adaptation import adaptation_losses, adaptation_share, adapts
from clarinet.adversarial import DomainBatch, log_sharpened
from clarinet.augmentation import (
    blended,
    distortion_of,
    drawn_factors,
    drawn_grounds,
    moment_match,
    recoloured,
)
from clarinet.config import TrainConfig
from clarinet.domains import Domains
from clarinet.feeding import Feed, Pixels
from clarinet.images import normalised
from clarinet.inputs import Drawn, Inputs
from clarinet.label_losses import NON_UNIFORM, LabelFacts, complementary_loss, true_loss
from clarinet.losses import (
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
from clarinet.networks import SOURCE, TARGET, Classifier, Domain
from clarinet.precision import mixed
from clarinet.pretraining import Pretraining
from clarinet.seeding import generator
from clarinet.stages import batch_size
from clarinet.votes import NeighbourLabels

NEIGHBOUR_SHARPENING = 0.5  # temperature of what neighbours say: 3/4 against one other class is then 0.9
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


@dataclass(frozen=True, slots=True, eq=False)
class SourceBatch:
    """One part of a source batch: pixels (B, C, S, S); labels of both kinds (-1: none) and weights, (B,).

    `images` (B,) are their source images; `no_classes` (B, M) are all classes that each image is known not to
    be, -1 beyond those it has; `probabilities` (B,) are those with which the questions were drawn, where they
    are known.
    """

    pixels: Tensor
    complementary: Tensor
    true: Tensor
    weights: Tensor
    images: Tensor
    no_classes: Tensor
    probabilities: Tensor | None


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
        labelled = {"complementary": domains.complementary_rows, "true": domains.true_rows}
        self._batch_size = batch_size(config, max(len(rows) for rows in labelled.values()))
        self._feeds = {
            kind: self._feed(domains.source, rows, kind) for kind, rows in labelled.items() if len(rows)
        }
        self._target = self._feed(domains.target, torch.arange(len(domains.target)), "target")
        self._proportions = self._dataset_proportions() if config.class_proportions == "dataset" else None
        self._facts = (
            LabelFacts.of(config, domains, self._batch_size)
            if config.complementary_loss in NON_UNIFORM
            else None
        )
        self._floor = self._class_floor() if config.class_floor > 0 else None
        grey = domains.source_is_grey and domains.target_is_grey
        digits = config.augmentation_kind == "digits"
        matched = config.moment_match and config.augmentation > 0 and grey and digits
        centre = moment_match(domains.source, domains.target) if matched else (1.0, 1.0)
        # Pictures in colour have strokes of their own beside the digit; with more of them digits were lost.
        drawn = replace(config, extra_stroke=0.0) if domains.spec.sees_ink else config
        self.neighbours: NeighbourLabels | None = None
        self._pretraining = None
        if networks.encoder is not None:
            steps = config.pretraining_epochs * epoch_steps
            self._pretraining = Pretraining(drawn, domains, networks.encoder, steps=steps, centre=centre)
        self._distort_source = distortion_of(drawn, centre)
        self._distort_target = distortion_of(drawn)
        self._blend = config.background_blending and digits and domains.grey_to_colour
        # Grounds of the target show its colours; others on top of them only make the digits harder to see.
        self._recolour = config.recolouring and digits and domains.grey_to_colour and not self._blend

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

    def _feed(self, images: Pixels, rows: Tensor, stream: str) -> Feed:
        """Batches of source labels, whose images `example` knows, or of the target's images."""
        example = self.domains.example if images is self.domains.source else rows
        return Feed(images, rows, example, batch_size=self._batch_size, seed=self.config.seed, stream=stream)

    @property
    def can_repeat(self) -> bool:
        """Whether the device alone takes a step, once it has the inputs: no image is read meanwhile."""
        return isinstance(self.domains.source, Tensor) and isinstance(self.domains.target, Tensor)

    def phase(self, step: int) -> Phase:
        """What is done in a step, once the neighbours have been found that it needs."""
        config = self.config
        if self._pretraining is not None and step < self._pretraining.steps:
            return Phase(pretrains=True)
        target_teacher = self._ramp(step, config.target_self_training_start) > 0
        adapting = adapts(config) and step >= self.adaptation_from
        unseen = self.domains.spec.batch_norm and not target_teacher and not adapting
        return Phase(
            distorts=self._augmented_share(step) > 0,
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
        parts = [self._source_batch(inputs, kind, distorts=phase.distorts) for kind in self._feeds]
        passes: list[tuple[Tensor, Domain]] = [(part.pixels, SOURCE) for part in parts]
        if phase.adapts:
            passes.append((self._target_pixels(inputs), TARGET))
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

    def _source_batch(self, inputs: Inputs, kind: str, *, distorts: bool) -> SourceBatch:
        domains = self.domains
        index, levels = self._feeds[kind].batch(inputs)  # (B,), (B, C, S, S)
        pixels = levels.float() / 255
        if distorts:
            _, rows, others = inputs.drawn(partial(self._source_draws, kind, len(index)))
            pixels = self._distort_source.applied(pixels, rows)
            if self._blend:
                pixels = blended(pixels, domains.target, others)
            if self._recolour:
                pixels = recoloured(pixels, *others)
        return SourceBatch(
            pixels=pixels,
            complementary=domains.complementary[index],
            true=domains.true[index],
            weights=domains.weights[index],
            images=domains.example[index],
            no_classes=domains.no_classes[domains.example[index]],
            probabilities=None if domains.probabilities is None else domains.probabilities[index],
        )

    def _source_draws(self, kind: str, count: int, step: int) -> Drawn:
        """How a batch of so many is distorted, and put on grounds or recoloured where that is done."""
        spec, draws = self.domains.spec, generator(self.config.seed, f"augment/{kind}/{step}")
        chosen = torch.rand(count, generator=draws) < self._augmented_share(step)
        rows = self._distort_source.drawn(chosen, spec.image_size, draws)
        if self._blend:
            return Drawn(count, rows, drawn_grounds(chosen, len(self.domains.target), spec.image_size, draws))
        return Drawn(count, rows, [drawn_factors(chosen, spec.channels, draws)] if self._recolour else [])

    def _target_draws(self, count: int, step: int) -> Drawn:
        """Likewise of a batch of the target."""
        spec, draws = self.domains.spec, generator(self.config.seed, f"augment/target/{step}")
        chosen = torch.rand(count, generator=draws) < self.config.augmentation
        rows = self._distort_target.drawn(chosen, spec.image_size, draws)
        return Drawn(count, rows, [drawn_factors(chosen, spec.channels, draws)] if self._recolour else [])

    def _augmented_share(self, step: int) -> float:
        """Share of source images to distort: a curriculum, as distorting from the start stalls it."""
        config = self.config
        length = max(config.augmentation_full - config.augmentation_start, 1e-9)
        return config.augmentation * min(
            max((step / self.steps - config.augmentation_start) / length, 0.0), 1.0
        )

    def _label_losses(
        self, parts: list[SourceBatch], logits: list[Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """L_c = alpha L_true + (1 - alpha) L_comp, of PC-UDA, or the one of the two that there is.

        L_comp is what `corrected_objective` gives: while it ascends on the complementary risk, L_true still
        descends.
        """
        true, reported = None, {}
        if "true" in self._feeds:
            true = self._true_loss(parts[-1], logits[-1])
            reported = {"true": true.detach()}
            if "complementary" not in self._feeds:
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
        pixels = self._target_pixels(inputs)
        probabilities = self.teach(pixels, TARGET).softmax(1)  # (B, K)
        _, rows, others = inputs.drawn(partial(self._target_draws, len(pixels)))
        pixels = self._distort_target.applied(pixels, rows)
        if self._recolour:
            pixels = recoloured(pixels, *others)
        _, logits = self._classify(pixels, TARGET)
        return self._pseudo_label_loss(logits, probabilities, torch.ones_like(logits[:, 0]))

    def _pseudo_label_loss(self, logits: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
        """Weighted mean (B,) of the cross-entropy towards the likeliest class, 0 where that is not sure."""
        confidence, labels = probabilities.max(1)  # (B,), (B,)
        sure = (confidence > self.config.confidence).to(logits.dtype)
        return (weights * sure * F.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()

    def _target_pixels(self, inputs: Inputs) -> Tensor:
        return self._target.batch(inputs)[1].float() / 255  # (B, C, S, S)

    def _see_target(self, inputs: Inputs) -> None:
        """Move the target's batch statistics where no loss does; prediction needs them."""
        with torch.no_grad():
            self._classify(self._target_pixels(inputs), TARGET)

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
