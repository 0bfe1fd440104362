"""The groups that say what a run learns from; `groups` has the others. Never imports torch."""

from dataclasses import dataclass

from clarinet.recipes.choices import (
    AdaptationKind,
    AdaptationSchedule,
    AdversarialGradient,
    AscentWeight,
    ClassProportions,
    ComplementaryLoss,
    DiscriminatorWeights,
    DistortionKind,
    DomainLoss,
    ReversalScale,
    SecondTermPrior,
    SourceTerms,
)
from clarinet.recipes.fields import Group, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses(Group):
    """What is learned from labels."""

    complementary_loss: ComplementaryLoss = option(
        "unbiased",
        "For uniform labels the paper's unbiased risk with its correction, or the bounded likelihood "
        "-log(1 - p). For questions that prefer some classes forward correction or SCARCE; for "
        "questions drawn with known unequal probabilities their inverse; cross-entropy towards the "
        "label is an ablation that learns what images are not, and none uses true labels alone.",
    )
    class_proportions: ClassProportions = option(
        "dataset",
        "Whose shares of complementary labels, pi, weigh the unbiased risk: the data set's or the batch's.",
    )
    second_term_prior: SecondTermPrior = option(
        "label",
        "Whose share weighs the second term of the unbiased risk: that of the image's label, or (a fault "
        "of the published code) that of the class whose risk it is.",
    )
    ascent_weight: AscentWeight = option(
        "one", "How much each negative class risk weighs in the correction: one, or the count of its labels."
    )
    label_noise: float = option(
        0.0,
        "Assumed share of wrong complementary labels in forward correction and, where no pretraining "
        "measures it (or similar images' labels agree on no class), in the bounded likelihood; the estimated "
        "accuracy on the source allows for it. None is given where questions of known, unequal "
        "probabilities were asked.",
        minimum=0,
        maximum=0.5,
    )
    class_floor: float = option(
        0.0,
        "Share of an equal share below which no class should be predicted; 0 lets classes die out.",
        minimum=0,
        maximum=1,
    )
    class_floor_weight: float = option(
        1.0, "Weight of the loss on classes below their floor.", minimum=0, maximum=100
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation(Group):
    """What brings the domains together, and how its weight rises."""

    adaptation_kind: AdaptationKind = option(
        "adversary",
        "Which loss brings the domains together, if any; docs/library.md says what each is.",
    )
    adaptation_weight: float = option(
        0.01,
        "Weight of that loss. Of an adversary it is the strength of the reversal (lambda), times gamma 2 / "
        "gamma 1 where the discriminator's step size moves the features. The paper gives no value: with "
        "0.01 the reversal is about as strong as in the published code.",
        minimum=0,
        maximum=100,
    )
    adaptation_start_epoch: int = option(
        50, "Epochs trained before the adaptation to the target begins (T_s).", minimum=0, maximum=100_000
    )
    adaptation_schedule: AdaptationSchedule = option(
        "constant",
        "How the weight of the adaptation rises once it has begun: not at all, by 2/(1 + exp(-10 p)) - 1 "
        "over the rest of the run, or likewise over 10,000 steps.",
    )
    reversal_scale: ReversalScale = option(
        "discriminator",
        "Whose step size moves the features on the adversarial loss: the discriminator's (gamma 2) or "
        "the classifier's own (gamma 1).",
    )
    domain_loss: DomainLoss = option(
        "sum", "Whether the adversarial loss is the sum of the domains' two means or their mean."
    )
    source_terms: SourceTerms = option(
        "sum",
        "Whether complementary and true labels, where there are both, each add a whole term of the source to "
        "the adversarial loss, as the paper prints it, or the mean of the two.",
    )
    conditioning: bool = option(
        True,
        "Whether the discriminator sees features with sharpened predictions, weighted by certainty, or "
        "features alone.",
    )
    adversarial_gradient: AdversarialGradient = option(
        "whole",
        "What the reversed gradient of the adversarial loss passes through: all that depends on the "
        "classifier (features, sharpened predictions, certainty weights), as the paper prints it; features "
        "and certainty weights, their sum held constant, as in the published code; or features alone.",
    )
    entropy_epsilon: float = option(
        0.0,
        "What is added to each prediction inside the logarithm of the certainty weights' entropy.",
        minimum=0,
        maximum=1,
    )
    entropy_schedule_lead: int = option(
        0,
        "Epochs by which the schedule is ahead for the gradient of the certainty weights, where features and "
        "certainty weights pass it.",
        minimum=0,
        maximum=100_000,
    )
    discriminator_weights: DiscriminatorWeights = option(
        "uniform",
        "How the discriminator's weights are drawn: uniform, biases alike, as torch does, or normal after "
        "Xavier's rule with biases of 0, as in the published code.",
    )
    second_decay: bool = option(
        False,
        "Whether weight decay acts twice on the classifier in steps that adapt, as where the adversarial "
        "loss takes a step of its own.",
    )
    sharpening: float = option(
        0.5,
        "Temperature of the sharpened predictions, l of T(f); smaller is sharper.",
        minimum=0.01,
        maximum=1,
    )

    @property
    def adapts(self) -> bool:
        """Whether any loss brings the domains together."""
        return self.adaptation_kind != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distortion(Group):
    """How images are changed before a network learns from them."""

    distortion_kind: DistortionKind = option(
        "digits",
        "How images are distorted: digits by rotation, scale, shift and strokes changed or added; "
        "photographs by crop, shift, flip and colour jitter.",
    )
    distorted_share: float = option(
        0.0, "Largest share of images that are distorted; 0 means none.", minimum=0, maximum=1
    )
    distortion_start: float = option(
        0.05, "Share of the run after which source images begin to be distorted.", minimum=0, maximum=1
    )
    distortion_full: float = option(
        0.25,
        "Share of the run after which the largest share of source images is distorted.",
        minimum=0,
        maximum=1,
    )
    changed_stroke: float = option(
        0.5, "Share of distorted digits whose strokes become thicker or thinner.", minimum=0, maximum=1
    )
    extra_stroke: float = option(
        0.0,
        "Share of distorted digits that get one more short stroke, anywhere across them; 0 where one stroke "
        "makes another sign. None do where the source is in colour and the network sees its ink.",
        minimum=0,
        maximum=1,
    )
    ink_of_colours: bool = option(
        False,
        "Whether digits of a coloured source become grey, each pixel by its distance from the colour of its "
        "ground, when the target is grey; not for photographs, nor for resnet18 and the names after it.",
    )
    moment_match: bool = option(
        False, "Whether grey digits of the source are brought to the target's mean extent of ink."
    )
    recolouring: bool = option(
        False,
        "Whether the channels of digits are scaled and inverted at random when a grey source meets a target "
        "in colour and is not blended onto it.",
    )
    background_blending: bool = option(
        False,
        "Whether grey digits of the source are blended onto target images when the target is in colour.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretraining(Group):
    """What is learned from the source's images before their labels, and what similar images then say."""

    pretraining_share: float = option(
        0.0,
        "Share of the run, in whole epochs, in which an encoder learns from pairs of distorted views of the "
        "source's images, without labels, which images are similar.",
        minimum=0,
        maximum=0.9,
    )
    neighbour_weight: float = option(
        0.0,
        "Weight of the loss on classes on which the answers about similar source images agree; needs "
        "pretraining, from whose features the similar images follow.",
        minimum=0,
        maximum=10,
    )

    def epochs_of(self, epochs: int) -> int:
        """How many of so many epochs learn without labels."""
        return round(self.pretraining_share * epochs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTraining(Group):
    """When the averaged network begins to teach."""

    source_self_training_start: float = option(
        1.0,
        "Share of the run after which the source learns from pseudo-labels; 1 means never.",
        minimum=0,
        maximum=1,
    )
    target_self_training_start: float = option(
        1.0,
        "Share of the run after which the target learns from pseudo-labels; 1 means never.",
        minimum=0,
        maximum=1,
    )
    fine_tuning_turns: int = option(
        0,
        "How often a network of kept features learns from the classes that were found with it, on images "
        "distorted in a way of its own. Its features are then computed anew, and the classes found once "
        "more.",
        minimum=0,
        maximum=20,
    )
    fine_tuning_steps: int = option(
        150,
        "Optimiser steps in such a turn, of batch_size images of each domain.",
        minimum=1,
        maximum=100_000,
    )
    fine_tuning_size: int = option(
        0,
        "Height and width of the images in such a turn, in pixels: smaller ones take less time, and what is "
        "learned on them serves larger ones. 0 means image_size.",
        minimum=0,
        maximum=512,
    )
