"""Hyper-parameters of a run: one frozen dataclass and its checks. Never imports torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Self, get_type_hints

from clarinet.recipes.choices import (
    AdaptationSchedule,
    Architecture,
    AscentWeight,
    AugmentationKind,
    ClassProportions,
    ComplementaryLoss,
    DomainLoss,
    EntropyGradient,
    InputNormalisation,
    Method,
    Optimizer,
    Precision,
    Preset,
    ReversalScale,
    SecondTermPrior,
    Setting,
)
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fields import checked, option
from clarinet.recipes.rules import check_together

LARGEST_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact
# Fields that came after checkpoints and results had been kept, at the values at which they do nothing.
ADDED_LATER: Mapping[str, Any] = MappingProxyType(
    {"ink_of_colours": False, "step_share": 0.0, "extra_stroke": 0.0}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run besides its data. The defaults are `clarinet` with preset `paper`.

    Use `config_for` for the values of another method or preset. Times are shares of the whole run in
    [0, 1], so that a longer run keeps its shape; a start of 1 means never.

    Raises:
        ConfigError: a value has the wrong type, is out of bounds or is none of its choices.
    """

    method: Method = option("clarinet", "The method: one of the paper's, or our stronger clarinet-plus.")
    setting: Setting = option(
        "cc", "Whether only complementary labels (cc) or true labels as well (pc) are used."
    )
    preset: Preset = option("paper", "The named set of values from which this configuration started.")
    seed: int = option(0, "The root of all randomness of one trial.", minimum=0, maximum=LARGEST_SEED)

    epochs: int = option(500, "How many epochs to train.", minimum=1, maximum=100_000)
    steps_per_epoch: int = option(
        0, "Optimiser steps in an epoch; 0 means one pass over the larger domain.", minimum=0, maximum=100_000
    )
    batch_size: int = option(
        128, "Labels of each kind, and images of the target, in a step.", minimum=2, maximum=4096
    )
    step_share: float = option(
        0.0,
        "Share of the labels that a step takes at least: a large source gets larger batches than batch_size. "
        "Not with resnet18 and the names after it.",
        minimum=0,
        maximum=1,
    )
    checkpoint_every: int = option(5, "Epochs between two checkpoints.", minimum=1, maximum=100_000)
    held_out_share: float = option(
        0.05,
        "Share of the complementary labels kept out of training to estimate the accuracy on the source.",
        minimum=0,
        maximum=0.5,
    )

    architecture: Architecture = option(
        "auto",
        "The network; auto is lenet where it sees grey images alone and dann (DANN's network) for colour, "
        "resnet18 and the names after it are for photographs.",
    )
    pretrained: str = option(
        "",
        "Where resnet18 and the names after it get trained weights: torchvision (a download), or a file; "
        "empty means none.",
    )
    image_size: int = option(
        28,
        "Height and width to which images are resized, in pixels; other shapes become square.",
        minimum=16,
        maximum=512,
    )
    input_normalisation: InputNormalisation = option(
        "range",
        "Scale pixels to -1..1 (range), each channel of each image to mean 0 and spread 1 (instance), or "
        "by the mean and spread of ImageNet, which pretrained networks expect (imagenet).",
    )
    batch_norm: bool = option(
        False,
        "Whether batch normalisation keeps the domains apart: each is normalised by its own batches and "
        "running statistics. Else images that a step classifies together are, whatever their domain. dann "
        "has batch normalisation only where it keeps them apart.",
    )
    precision: Precision = option(
        "float32",
        "Number format inside the networks; losses are always float32, and so is all else on a processor "
        "that has no fast bfloat16.",
    )

    optimizer: Optimizer = option("sgd", "The optimiser: SGD with momentum, or AdamW.")
    learning_rate: float = option(
        5e-5, "Step size of feature extractor and classifier (gamma 1).", minimum=0, maximum=10
    )
    discriminator_learning_rate: float = option(
        5e-3, "Step size of the domain discriminator (gamma 2).", minimum=0, maximum=10
    )
    momentum: float = option(0.9, "Momentum of SGD.", minimum=0, maximum=0.9999)
    weight_decay: float = option(5e-5, "Weight decay.", minimum=0, maximum=1)
    warmup: float = option(
        0.0, "Share of the run in which the step size rises from zero.", minimum=0, maximum=1
    )
    final_learning_rate: float = option(
        1.0,
        "Share of the step size left at the end of a cosine decay; 1 means no decay.",
        minimum=0,
        maximum=1,
    )
    averaging: float = option(
        0.0,
        "Decay per step of the averaged network that predicts; 0 means no averaging.",
        minimum=0,
        maximum=0.99999,
    )

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

    trade_off: float = option(
        0.01,
        "Strength of the reversal of the adversarial loss (lambda), times gamma 2 / gamma 1 where the "
        "discriminator's step size moves the features; 0 means no adaptation by adversary. The paper gives "
        "no value: with 0.01 the reversal is about as strong as in the published code.",
        minimum=0,
        maximum=100,
    )
    discrepancy_weight: float = option(
        0.0,
        "Weight of the discrepancy between the domains' features (multi-kernel MMD); 0 means none.",
        minimum=0,
        maximum=100,
    )
    adversarial_start_epoch: int = option(
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
    conditioning: bool = option(
        True,
        "Whether the discriminator sees features with sharpened predictions, weighted by certainty, or "
        "features alone.",
    )
    entropy_gradient: EntropyGradient = option(
        "none",
        "Whether the certainty weights of the adversarial loss are constants or pass a reversed gradient.",
    )
    sharpening: float = option(
        0.5,
        "Temperature of the sharpened predictions, l of T(f); smaller is sharper.",
        minimum=0.01,
        maximum=1,
    )

    pseudo_label_share: float = option(
        0.0,
        "Share of the epochs that train GAC first, with GAC's own step sizes; its predictions then label "
        "the source for networks that start anew. 0 means one step.",
        minimum=0,
        maximum=0.95,
    )

    augmentation: float = option(
        0.0, "Largest share of images that are distorted; 0 means none.", minimum=0, maximum=1
    )
    augmentation_start: float = option(
        0.05, "Share of the run after which source images begin to be distorted.", minimum=0, maximum=1
    )
    augmentation_full: float = option(
        0.25,
        "Share of the run after which the largest share of source images is distorted.",
        minimum=0,
        maximum=1,
    )
    augmentation_kind: AugmentationKind = option(
        "digits",
        "How images are distorted: digits by rotation, scale, shift and strokes changed or added; "
        "photographs by crop, shift, flip and colour jitter.",
    )
    rotation: float = option(
        10.0, "Largest rotation of a distorted image, in degrees.", minimum=0, maximum=180
    )
    scale: float = option(
        0.15, "Largest relative change of size of a distorted image.", minimum=0, maximum=0.9
    )
    shift: float = option(2.0, "Largest shift of a distorted image, in pixels.", minimum=0, maximum=16)
    stroke: float = option(
        0.5, "Share of distorted images whose strokes become thicker or thinner.", minimum=0, maximum=1
    )
    extra_stroke: float = option(
        0.0,
        "Share of distorted digits that get one more short stroke, anywhere across them; 0 where one stroke "
        "makes another sign. None do where the source is in colour and the network sees its ink.",
        minimum=0,
        maximum=1,
    )
    crop: float = option(
        0.3,
        "Smallest share of its area that the crop of a photograph keeps; 1 keeps all.",
        minimum=0.05,
        maximum=1,
    )
    flip: float = option(
        0.5, "Share of distorted photographs that become their mirror image.", minimum=0, maximum=1
    )
    colour_jitter: float = option(
        0.4,
        "Largest relative change of a photograph's brightness, contrast and saturation.",
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

    pretraining: float = option(
        0.0,
        "Share of the run, in whole epochs, in which an encoder learns from pairs of distorted views of the "
        "source's images, without labels, which images are similar.",
        minimum=0,
        maximum=0.9,
    )
    contrast_temperature: float = option(
        0.5,
        "Temperature of the pretraining's loss; smaller looks closer at the most similar images.",
        minimum=0.01,
        maximum=10,
    )
    view_distortion: float = option(
        1.5,
        "How many times further the pretraining's views of digits are distorted than other images; those of "
        "photographs are distorted alike.",
        minimum=0,
        maximum=5,
    )
    neighbour_weight: float = option(
        0.0,
        "Weight of the loss on classes on which the answers about similar source images agree; needs "
        "pretraining, from whose features the similar images follow.",
        minimum=0,
        maximum=10,
    )

    confidence: float = option(
        0.9,
        "Probability above which what the averaged network says, or what the neighbours say once it is "
        "sharpened, becomes a pseudo-label.",
        minimum=0,
        maximum=1,
    )
    source_self_training_start: float = option(
        1.0,
        "Share of the run after which the source learns from pseudo-labels; 1 means never.",
        minimum=0,
        maximum=1,
    )
    source_self_training_weight: float = option(
        0.5, "Weight of the loss on pseudo-labels of the source.", minimum=0, maximum=10
    )
    target_self_training_start: float = option(
        1.0,
        "Share of the run after which the target learns from pseudo-labels; 1 means never.",
        minimum=0,
        maximum=1,
    )
    target_self_training_weight: float = option(
        1.0, "Weight of the loss on pseudo-labels of the target.", minimum=0, maximum=10
    )
    self_training_ramp: float = option(
        0.075, "Share of the run over which a self-training loss rises to its weight.", minimum=0, maximum=1
    )

    def __post_init__(self) -> None:
        kinds = get_type_hints(TrainConfig)
        for item in fields(self):
            value = checked(item.name, getattr(self, item.name), kinds[item.name], item.metadata)
            object.__setattr__(self, item.name, value)
        check_together(self)

    @property
    def first_epochs(self) -> int:
        """How many of the epochs train the first of two steps; 0 where there is one."""
        if self.pseudo_label_share == 0:
            return 0
        return min(max(round(self.epochs * self.pseudo_label_share), 1), self.epochs - 1)

    @property
    def pretraining_epochs(self) -> int:
        """How many of the epochs learn without labels; 0 where the run is too short for one."""
        return round(self.pretraining * self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; absent fields take their default.

        Raises:
            ConfigError: a name is no field, or a value is refused.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            near = get_close_matches(unknown[0], known)
            told = f"did you mean {' or '.join(near)}?" if near else "see the fields of TrainConfig"
            raise ConfigError(f"unknown hyper-parameter {unknown[0]!r}; {told}")
        return cls(**values)


def in_force(values: Mapping[str, Any]) -> dict[str, Any]:
    """A config's values without later fields that do nothing: the same for all versions that train so."""
    return {name: value for name, value in values.items() if ADDED_LATER.get(name, ...) != value}
