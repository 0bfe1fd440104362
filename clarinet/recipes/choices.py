"""The values that fields of `TrainConfig` may take, where they are names. Never imports torch."""

import re
from typing import Literal

Method = Literal[
    "clarinet",
    "clarinet-plus",
    "gac",
    "gac+dan",
    "gac+dann",
    "gac+cdan_e",
    "gac+mcc",
    "dan",
    "dann",
    "cdan_e",
    "mcc",
    "clarinet-ce",
    "clarinet-unconditioned",
    "clarinet-unsharpened",
]
Setting = Literal["cc", "pc"]
Preset = Literal[
    "paper",
    "published",
    "short",
    "digits",
    "digits-quick",
    "photographs",
    "photographs-quick",
    "photographs-untrained",
]
Looks = Literal["digits", "photographs"]  # of images
Architecture = str  # one of ARCHITECTURES, or timm/NAME
Precision = Literal["float32", "bfloat16"]
Optimizer = Literal["sgd", "adamw"]
ComplementaryLoss = Literal["unbiased", "bounded", "forward", "scarce", "inverse", "cross-entropy", "none"]
ClassProportions = Literal["dataset", "batch"]
SecondTermPrior = Literal["label", "class"]
AscentWeight = Literal["one", "count"]
DomainLoss = Literal["sum", "mean"]
AdversarialGradient = Literal["whole", "weights", "features"]
SourceTerms = Literal["sum", "mean"]
DiscriminatorWeights = Literal["uniform", "xavier"]
ReversalScale = Literal["discriminator", "classifier"]
AdaptationSchedule = Literal["constant", "progress", "10000-steps"]
InputNormalisation = Literal["range", "instance", "imagenet"]
Greying = Literal["luminance", "ink", "dark-ink"]
Head = Literal["linear", "common-space"]
DistortionKind = Looks
AdaptationKind = Literal["none", "adversary", "discrepancy", "confusion"]
DoingKind = Literal["features", "fine-tuning"]  # what a run does before or between its epochs

ARCHITECTURES = (
    "auto",
    "lenet",
    "dann",
    "dtn",
    "conv-large",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "wide_resnet50_2",
    "mobilenet_v3_small",
    "convnext_tiny",
    "efficientnet_b0",
)
PAPERS = frozenset({"auto", "lenet", "dann", "dtn", "conv-large"})  # auto is one of them
BACKBONES = frozenset(ARCHITECTURES) - PAPERS
LEAST_SIZES = {"convnext_tiny": 32}  # in pixels, where it exceeds that of image_size

TIMM = "timm/"  # before the name of a network of timm, which may have the tag of its weights behind a dot
TIMM_NAME = re.compile(r"timm/[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")  # whether timm has it shows when it is built

OWN_WEIGHTS = "own"  # as `pretrained`: those that the caller's own backbone has
HUB = "hub"  # as `pretrained`: the download of the package that the network is from


def is_backbone(architecture: Architecture) -> bool:
    """Whether a network is torchvision's or timm's, for photographs and with trained weights."""
    return architecture in BACKBONES or architecture.startswith(TIMM)
