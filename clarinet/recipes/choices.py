"""The values that fields of `TrainConfig` may take, where they are names. Never imports torch."""

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
Preset = Literal["paper", "published", "short", "digits", "digits-quick", "photographs", "photographs-quick"]
Looks = Literal["digits", "photographs"]  # of images
Architecture = Literal[
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
]
Precision = Literal["float32", "bfloat16"]
Optimizer = Literal["sgd", "adamw"]
ComplementaryLoss = Literal["unbiased", "bounded", "forward", "scarce", "inverse", "cross-entropy", "none"]
ClassProportions = Literal["dataset", "batch"]
SecondTermPrior = Literal["label", "class"]
AscentWeight = Literal["one", "count"]
DomainLoss = Literal["sum", "mean"]
EntropyGradient = Literal["none", "reversed"]
ReversalScale = Literal["discriminator", "classifier"]
AdaptationSchedule = Literal["constant", "progress", "10000-steps"]
InputNormalisation = Literal["range", "instance", "imagenet"]
Greying = Literal["luminance", "ink", "dark-ink"]
DistortionKind = Looks
AdaptationKind = Literal["none", "adversary", "discrepancy", "confusion"]

BACKBONES = frozenset(
    {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "wide_resnet50_2"}
    | {"mobilenet_v3_small", "convnext_tiny", "efficientnet_b0"}
)
LEAST_SIZES = {"convnext_tiny": 32}  # in pixels, where it exceeds that of image_size


def is_backbone(architecture: Architecture) -> bool:
    """Whether a network is one for photographs, for which there are trained weights."""
    return architecture in BACKBONES
