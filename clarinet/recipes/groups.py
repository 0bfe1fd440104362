"""The groups of hyper-parameters that say how a run goes; `learning` has the others. Never imports torch.

The defaults are those of `clarinet` with preset `paper`. Each name occurs in one group only, so that it can
be set by itself. Times are shares of the whole run in [0, 1], so that a longer run keeps its shape.
"""

from dataclasses import dataclass

from clarinet.recipes.choices import (
    ARCHITECTURES,
    TIMM_NAME,
    Architecture,
    InputNormalisation,
    Optimizer,
    Precision,
)
from clarinet.recipes.fields import Group, OpenNames, option
from clarinet.recipes.upgrade import REWORDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Length(Group):
    """How long a run is, and how much a step sees."""

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
        "Not with networks for photographs.",
        minimum=0,
        maximum=1,
    )
    drop_last: bool = option(
        False,
        "Whether each pass over a domain drops the images that fill no whole batch, and each epoch begins "
        "new passes; else a batch may end one pass and begin the next. The first of two steps does as GAC.",
    )
    first_step_share: float = option(
        0.0,
        "Share of the epochs that train GAC first, with GAC's own step sizes; its predictions then label "
        "the source for networks that start anew. 0 means one step.",
        minimum=0,
        maximum=0.95,
    )

    @property
    def first_epochs(self) -> int:
        """How many of the epochs train the first of two steps; 0 where there is one."""
        if self.first_step_share == 0:
            return 0
        return min(max(round(self.epochs * self.first_step_share), 1), self.epochs - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(Group):
    """Which network, and what it sees of an image."""

    architecture: Architecture = option(
        "auto",
        "The network; auto is lenet where it sees grey images alone and dann (DANN's network) for colour. "
        "resnet18 and the names after it are torchvision's for photographs, and timm/NAME is any image "
        "classifier of timm.",
        names=OpenNames(ARCHITECTURES, TIMM_NAME, "timm/NAME for an image classifier of timm"),
    )
    pretrained: str = option(
        "",
        "Where a network for photographs gets trained weights: hub (a download by torchvision or timm), or a "
        "file; empty means none.",
        earlier=REWORDED["pretrained"],
    )
    pretrained_digest: str = option(
        "",
        "SHA-256 that the file of trained weights must have, in hexadecimal; empty takes the file as it is.",
    )
    image_size: int = option(
        28,
        "Height and width to which images are resized, in pixels; other shapes become square.",
        minimum=16,
        maximum=512,
    )
    input_normalisation: InputNormalisation = option(
        "range",
        "Scale pixels to -1..1 (range), each channel of each image to mean 0 and spread 1 (instance), or as "
        "trained weights expect them (imagenet): by the mean and spread of ImageNet, with a network of timm "
        "by those of its own weights.",
    )
    norm_per_domain: bool = option(
        False,
        "Whether batch normalisation keeps the domains apart: each is normalised by its own batches and "
        "running statistics. Else images that a step classifies together are, whatever their domain. dann "
        "has batch normalisation only where it keeps them apart.",
    )
    kept_features: bool = option(
        False,
        "Whether the network stays as its trained weights made it: its features of all images are computed "
        "once. Without a bottleneck each epoch is then a round in which the classes of both domains' images "
        "are found from them. For networks for photographs.",
    )
    bottleneck: int = option(
        0,
        "Width of the layer that the method's losses train behind kept features, with batch normalisation "
        "and dropout after it, in steps of batches; 0 means none.",
        minimum=0,
        maximum=4096,
    )
    precision: Precision = option(
        "float32",
        "Number format inside the networks; losses are always float32, and so is all else on a processor "
        "that has no fast bfloat16.",
    )

    @property
    def has_rounds(self) -> bool:
        """Whether classes are found from kept features in rounds, and no step takes a batch."""
        return self.kept_features and self.bottleneck == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimisation(Group):
    """How the weights move."""

    optimizer: Optimizer = option("sgd", "The optimiser: SGD with momentum 0.9, or AdamW.")
    learning_rate: float = option(
        5e-5, "Step size of feature extractor and classifier (gamma 1).", minimum=0, maximum=10
    )
    discriminator_learning_rate: float = option(
        5e-3, "Step size of the domain discriminator (gamma 2).", minimum=0, maximum=10
    )
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
    average_decay: float = option(
        0.0,
        "Decay per step of the averaged network that predicts; 0 means no averaging.",
        minimum=0,
        maximum=0.99999,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports(Group):
    """What is kept apart to judge a run, and how often it is written down."""

    held_out_share: float = option(
        0.05,
        "Share of the complementary labels kept out of training to estimate the accuracy on the source.",
        minimum=0,
        maximum=0.5,
    )
    checkpoint_every: int = option(5, "Epochs between two checkpoints.", minimum=1, maximum=100_000)
