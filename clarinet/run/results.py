"""What training reports while it runs and returns when it ends."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from clarinet.networks.classifier import Classifier
from clarinet.networks.precision import in_bfloat16
from clarinet.networks.weights import TrainedWeights
from clarinet.recipes.choices import Precision
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.scoring import ScoredOn
from clarinet.recipes.source_accuracy import EARLIER, SourceEstimate

# Of an equal share. The first 350 trainings of docs/results have targets with classes of about one size. 47
# of them were below it; each had a class of which three quarters of the images or more were misclassified.
MERGED_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """The state of a run after an epoch.

    Args:
        epoch, epochs: epochs done and in all.
        step, steps: optimiser steps done and in all.
        seconds: time spent training so far, over all resumptions.
        losses: mean of each loss over the epoch, in nats.
        target_accuracy: in [0, 1], on at most 2,000 of the images that score before the last epoch of a step;
            None without any, and in the pretraining, where the classifier learns nothing.
        source_estimate: from held-out complementary labels, or how many more these would have to be; None
            without any, where the labels cannot be uniform and how their questions were drawn is unknown, and
            where the config's share of wrong ones is 1/K or more, or above 0 beside questions of known,
            unequal probabilities; while enough are held out, in the pretraining, too, and in a report of an
            older version. Where some are wrong and the config does not say so, it is too low.
        smallest_predicted_share: share of target images predicted as the least predicted class; near 0 is an
            alarm that two classes have merged, which neither confidence nor loss would show.
        learning_rate: of the classifier at the epoch's last step; None where epochs are rounds, which have
            none, and in a report of an older version.
        pseudo_label_share: share of the same target images that train by the class that the network predicts,
            since it is sure of it; 0 until that begins, None where it never does and in a report of an older
            version.
        least_predicted_class: that class, the first of several. None where so few target images were looked
            at that a class may be missed by chance, and in a report of an older version.
        target_information: entropy of the mean prediction less the mean entropy, on the same target images,
            in nats; see `evaluation.information`.
        student_agreement: share of them that the averaged network and the one in training classify alike;
            None without averaging.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    seconds: float
    losses: dict[str, float]
    target_accuracy: float | None
    source_estimate: SourceEstimate | None
    smallest_predicted_share: float
    target_information: float
    student_agreement: float | None
    least_predicted_class: int | None = None
    learning_rate: float | None = None
    pseudo_label_share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild from `to_dict`, of earlier versions, too.

        Those kept an estimate and its error, which alone do not tell how far from 0 and 1 it may lie.
        """
        known = {name: value for name, value in values.items() if name not in EARLIER}
        estimate = known.pop("source_estimate", None)
        return cls(**known, source_estimate=SourceEstimate.from_dict(estimate) if estimate else None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainResult:
    """A finished run.

    Args:
        model: the classifier of the last step, averaged where the config asks for it, in eval mode.
        config: what it was trained with.
        reports: one per epoch.
        target_accuracy: on all of the target's images that score, in [0, 1]; None without any, as are the
            next two.
        per_class_accuracy: by class; None for a class of which no image scores.
        confusion: counts [true class][predicted class].
        label_uniformity: p-value of the complementary labels' uniformity, see `uniformity.check_uniformity`;
            None where there are none, or none trains and the probabilities of their questions are known.
        label_noise: the share of complementary labels that name the true class, as the labels of similar
            images tell it, at most 0.8 / K. None where they were not asked, or told no classes. A label that
            names the class they wrongly give its image counts as wrong.
        alpha: how much the true labels weighed beside the complementary ones, in 0..1; None where labels of
            one kind alone trained the model.
        steps, epochs: trained in all.
        seconds: time spent training, over all resumptions.
        pretrained: the file of trained weights that the network began with; None without.
        scored_on: which images score: test images of the target, or those it trained on.
        hits: a bit for each image that scores, in their order, the first one highest: whether its class was
            found. With those of another run on the same images it tells the two apart image by image. None
            without any, and in a result of an older version.
    """

    model: Classifier
    config: TrainConfig
    reports: list[EpochReport]
    target_accuracy: float | None
    per_class_accuracy: list[float | None] | None
    confusion: list[list[int]] | None
    label_uniformity: float | None
    label_noise: float | None
    alpha: float | None
    steps: int
    epochs: int
    seconds: float
    pretrained: TrainedWeights | None = None
    scored_on: ScoredOn
    hits: bytes | None = None

    @property
    def computed_in(self) -> Precision:
        """The number format inside the networks, on the device where the last part of the run was trained.

        Kept features are those of predictions, in float32, and rounds compute nothing else.
        """
        if self.config.network.has_rounds:
            return "float32"
        device = next(self.model.parameters()).device
        return "bfloat16" if in_bfloat16(self.config.network.precision, device) else "float32"

    @property
    def merged_class(self) -> int | None:
        """The class that hardly any image of the target is taken for, if there is one.

        It may have merged with another, or be rare in the target. No label of the target is looked at. None
        also where too few images of the target were.
        """
        last, num_classes = self.reports[-1], self.model.spec.num_classes
        return (
            last.least_predicted_class if last.smallest_predicted_share < MERGED_SHARE / num_classes else None
        )
