"""What one step minimises: the losses of every method, each switched by the config."""

from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.batches import Batches, SourceBatch
from clarinet.data.domains import Domains
from clarinet.data.images import normalised
from clarinet.data.inputs import Inputs
from clarinet.losses.adaptation.kinds import adaptation_loss
from clarinet.losses.adaptation.protocol import AdaptationLoss, DomainBatch, Shares
from clarinet.losses.adaptation.schedule import adaptation_share
from clarinet.losses.complementary import without_classes
from clarinet.networks.classifier import SOURCE, TARGET, Domain
from clarinet.networks.precision import mixed
from clarinet.plus.pretraining import Pretraining
from clarinet.plus.self_training import (
    SOURCE_WEIGHT,
    TARGET_WEIGHT,
    neighbour_loss,
    pseudo_label_loss,
    risen,
)
from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.config import TrainConfig
from clarinet.run.building import Networks
from clarinet.run.label_objective import LabelObjective

SMALL = ("lenet", "dann", "dtn")  # networks whose step is shorter than its launching
STATISTICS_EVERY = 10  # steps between two looks at a target in no loss yet, for its batch statistics


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

    Args:
        config, domains, networks: of the run, or of one of its two steps.
        steps, epoch_steps: in all, and in an epoch.
        neighbours: of a run that goes on; None until the pretraining has ended, when `find_neighbours` finds
            them, and for methods without it.
    """

    def __init__(
        self,
        config: TrainConfig,
        domains: Domains,
        networks: Networks,
        *,
        steps: int,
        epoch_steps: int,
        neighbours: NeighbourLabels | None = None,
    ) -> None:
        self.config = config
        self.domains = domains
        self.networks = networks
        self.device = domains.complementary.device
        self.steps = steps
        adapts = config.adaptation.adapts
        self.adaptation_from = config.adaptation.adaptation_start_epoch * epoch_steps if adapts else steps
        self._adaptation = adaptation_loss(config, networks.adaptation)
        self._epoch_steps = epoch_steps
        self._batches = Batches(config, domains, steps=steps, epoch_steps=epoch_steps)
        self._labels = LabelObjective(config, domains, batch_size=self._batches.size)
        self._neighbours = neighbours
        self._pretraining = None
        if networks.encoder is not None:
            self._pretraining = Pretraining(
                self._batches.config,
                domains,
                networks.encoder,
                steps=config.pretraining_epochs * epoch_steps,
                centre=self._batches.centre,
            )

    @property
    def neighbours(self) -> NeighbourLabels | None:
        """What similar images' labels say, once the pretraining has ended."""
        return self._neighbours

    @property
    def can_repeat(self) -> bool:
        """Whether a step may be taken again by the device alone: a small network's, with all images there.

        The larger networks compute for longer than their launching takes, and graphs would hold their
        activations once more for each phase. What a caller's own code does in a step nobody knows. Several
        processes wait for each other in each step.
        """
        domains = self.domains
        resident = isinstance(domains.source, Tensor) and isinstance(domains.target, Tensor)
        alone = domains.group.is_alone
        return alone and resident and domains.spec.architecture in SMALL and not domains.own

    def phase(self, step: int) -> Phase:
        """What is done in a step, once the neighbours have been found that it needs."""
        if self._pretraining is not None and step < self._pretraining.steps:
            return Phase(pretrains=True)
        target_teacher = self._target_teacher_weight(step) > 0
        adapting = self._adaptation is not None and step >= self.adaptation_from
        unseen = self.domains.spec.norm_per_domain and not target_teacher and not adapting
        return Phase(
            distorts=self._batches.distorted_share(step) > 0,
            adapts=adapting,
            source_teacher=self._source_teacher_weight(step) > 0,
            target_teacher=target_teacher,
            sees_target=unseen and step % STATISTICS_EVERY == 0,
            has_neighbours=self._neighbours is not None,
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
        objective, reported = self._labels(
            dict(zip(self._batches.kinds, parts, strict=True)),
            [logits for _, logits in outputs[: len(parts)]],
            label_noise=None if self._neighbours is None else self._neighbours.label_noise,
        )
        if self._neighbours is not None and config.pretraining.neighbour_weight > 0:
            first = parts[0]
            loss = neighbour_loss(self._neighbours, first.images, outputs[0][1], first.weights)
            objective = objective + config.pretraining.neighbour_weight * loss
            reported["neighbours"] = loss.detach()
        nothing = objective.new_zeros(())
        if config.self_training.source_self_training_start < 1:
            loss = self._source_self_training(parts[0], outputs[0][1]) if phase.source_teacher else nothing
            objective = objective + inputs.number("source teacher", self._source_teacher_weight) * loss
            reported["source_self_training"] = loss.detach()
        if config.self_training.target_self_training_start < 1:
            loss = self._target_self_training(inputs) if phase.target_teacher else nothing
            objective = objective + inputs.number("target teacher", self._target_teacher_weight) * loss
            reported["target_self_training"] = loss.detach()
        if self._adaptation is not None:
            loss = self._adapted(self._adaptation, inputs, parts, outputs) if phase.adapts else nothing
            objective = objective + loss
            reported[self._adaptation.name] = loss.detach()
        if phase.sees_target:
            self._see_target(inputs)
        return objective, reported

    def lacks_neighbours(self, step: int) -> bool:
        """Whether the loss of a step needs `find_neighbours` first."""
        return self._pretraining is not None and self._neighbours is None and step >= self._pretraining.steps

    def find_neighbours(self) -> NeighbourLabels:
        """Look, once, which classes similar source images agree on."""
        assert self._pretraining is not None
        self._neighbours = self._pretraining.neighbours()
        return self._neighbours

    def _source_teacher_weight(self, step: int) -> float:
        start = self.config.self_training.source_self_training_start
        return SOURCE_WEIGHT * risen(step, self.steps, start)

    def _target_teacher_weight(self, step: int) -> float:
        start = self.config.self_training.target_self_training_start
        return TARGET_WEIGHT * risen(step, self.steps, start)

    def _classify(self, pixels: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
        config = self.config

        def classify(own: Tensor) -> tuple[Tensor, ...]:
            with mixed(config.network.precision, own.device):
                out: tuple[Tensor, Tensor] = self.networks.classifier(
                    normalised(own, config.network.input_normalisation), domain
                )
            return out

        features, logits = self.domains.group.spread(pixels, classify)
        return features, logits

    def _classify_all(self, passes: list[tuple[Tensor, Domain]]) -> list[tuple[Tensor, Tensor]]:
        """Features and logits of several batches, in one pass unless each has its domain's normalisation."""
        if self.domains.spec.norm_per_domain:
            return [self._classify(pixels, domain) for pixels, domain in passes]
        features, logits = self._classify(torch.cat([pixels for pixels, _ in passes]), SOURCE)
        sizes = [len(pixels) for pixels, _ in passes]
        return list(zip(torch.split(features, sizes), torch.split(logits, sizes), strict=True))

    def teach(self, pixels: Tensor, domain: Domain) -> Tensor:
        """Logits (B, K) of the averaged network, in eval mode and without gradient."""
        config, teacher = self.config, self.networks.averaged
        was_training = teacher.training  # true where the classifier, for want of averaging, teaches itself
        teacher.eval()

        def classify(own: Tensor) -> tuple[Tensor, ...]:
            with mixed(config.network.precision, own.device):
                return (teacher(normalised(own, config.network.input_normalisation), domain)[1],)

        with torch.no_grad():
            (logits,) = self.domains.group.spread(pixels, classify)
        teacher.train(was_training)
        return logits

    def _source_self_training(self, part: SourceBatch, logits: Tensor) -> Tensor:
        """Cross-entropy towards the teacher's class, where it is sure once the known no-classes are out."""
        probabilities = without_classes(self.teach(part.pixels, SOURCE), part.no_classes)  # (B, K)
        return pseudo_label_loss(logits, probabilities, part.weights)

    def _target_self_training(self, inputs: Inputs) -> Tensor:
        """The teacher sees the clean target image, the student a distorted one."""
        pixels = self._batches.target(inputs)
        probabilities = self.teach(pixels, TARGET).softmax(1)  # (B, K)
        pixels = self._batches.distorted_target(inputs, pixels)
        _, logits = self._classify(pixels, TARGET)
        return pseudo_label_loss(logits, probabilities, torch.ones_like(logits[:, 0]))

    def _see_target(self, inputs: Inputs) -> None:
        """Move the target's batch statistics where no loss does; prediction needs them."""
        with torch.no_grad():
            self._classify(self._batches.target(inputs), TARGET)

    def _adapted(
        self,
        adaptation: AdaptationLoss,
        inputs: Inputs,
        parts: list[SourceBatch],
        outputs: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        """The loss that brings the domains together; the target is the last of the outputs."""
        features, logits = outputs[-1]
        target = DomainBatch(features, logits, torch.ones_like(logits[:, 0]))
        source = [DomainBatch(f, z, part.weights) for part, (f, z) in zip(parts, outputs, strict=False)]
        share = inputs.number("adaptation", self._adaptation_share)
        ahead = self.config.adaptation.entropy_schedule_lead > 0
        entropy = inputs.number("adaptation by entropy", self._entropy_share) if ahead else share
        return adaptation(source, target, Shares(share, entropy))

    def _adaptation_share(self, step: int) -> float:
        began = self.adaptation_from
        return adaptation_share(self.config, step - began, self.steps - began)

    def _entropy_share(self, step: int) -> float:
        return self._adaptation_share(step + self.config.adaptation.entropy_schedule_lead * self._epoch_steps)
