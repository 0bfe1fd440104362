"""Which preset fits what images look like, and the choice in one sentence. Never imports torch."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from clarinet.recipes.choices import BACKBONES, HUB, Architecture, Looks, Method, is_backbone
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.groups import Network
from clarinet.recipes.presets import METHODS

ASKED = ("default", "quick")
"""Names of no preset, which mean the one that fits the images."""

SMALL_PHOTOGRAPHS = frozenset({"conv-large"})  # the paper's network for those of 32 pixels

OF_ELSEWHERE = frozenset({"clarinet-plus", "mcc", "gac+mcc"})  # methods whose losses are not all the paper's

OF_IMAGENET = frozenset({"timm/tf_efficientnet_lite0"})  # networks of timm whose only weights are of ImageNet

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "lenet": "LeNet",
        "dann": "the network of DANN",
        "dtn": "DTN",
        "conv-large": "the network of mean teacher",
        "resnet18": "ResNet-18",
        "resnet34": "ResNet-34",
        "resnet50": "ResNet-50",
        "resnet101": "ResNet-101",
        "resnet152": "ResNet-152",
        "resnext50_32x4d": "ResNeXt-50",
        "wide_resnet50_2": "Wide ResNet-50",
        "mobilenet_v3_small": "MobileNet V3",
        "convnext_tiny": "ConvNeXt",
        "efficientnet_b0": "EfficientNet",
        "timm/tf_efficientnet_lite0": "EfficientNet-Lite0",
    }
)
"""Architecture to what people call it."""


def asked_of(method: str) -> tuple[str, ...]:
    """The names that mean, for this method, the preset that fits the images."""
    has_quick = all(f"{looks}-quick" in METHODS[method] for looks in get_args(Looks))
    return ASKED if has_quick else ASKED[:1]


def preset_for(method: str, asked: str | None, looks: Looks | None) -> str:
    """The preset of a method that is meant: what a configuration, a record and a card keep.

    * A preset of the method is itself, whatever the images look like.
    * None and "default" mean what fits the images; "quick" means the same, quickly.
    * "digits" means the method's first preset where none is called so.

    Args:
        method: a name in METHODS.
        asked: what somebody asked for.
        looks: of the images; None where nobody looked, which only None and real presets can do without.

    Raises:
        ConfigError: no such method or preset, or one that needs the looks.
    """
    if method not in METHODS:
        raise ConfigError(f"unknown method {method!r}; known ones are {', '.join(METHODS)}", "method")
    presets = METHODS[method]
    digits = "digits" if "digits" in presets else next(iter(presets))
    by_name = {name: name for name in presets} | {"digits": digits}
    if asked in by_name:
        return by_name[asked]
    if asked is not None and asked not in asked_of(method):
        raise ConfigError(f"method {method} has no preset {asked!r}; it has {', '.join(presets)}", "preset")
    if looks is None:
        if asked is None:
            return next(iter(presets))
        fitting = [preset_for(method, asked, known) for known in get_args(Looks)]
        raise ConfigError(
            f"preset {asked} of {method} means what fits the images, and nobody said what they look like; "
            f"give looks, or take {' or '.join(fitting)}",
            "preset",
        )
    return f"{looks}-quick" if asked == "quick" else by_name[looks]


def is_for(config: TrainConfig) -> Looks:
    """The images that a configuration is made for: its network says so."""
    architecture = config.network.architecture
    for_photographs = is_backbone(architecture) or architecture in SMALL_PHOTOGRAPHS
    return "photographs" if for_photographs else "digits"


def sees_ink(config: TrainConfig, *, source_in_colour: bool, target_in_colour: bool) -> bool:
    """Whether digits of a coloured source are seen as ink, because the target is grey."""
    digits = config.distortion.distortion_kind == "digits" and not is_backbone(config.network.architecture)
    return config.distortion.ink_of_colours and digits and source_in_colour and not target_in_colour


def architecture_of(config: TrainConfig, *, colour: bool) -> Architecture:
    """The network that a config means, never "auto"; `colour`: it sees any domain in colour."""
    if config.network.architecture == "auto":
        return "dann" if colour else "lenet"
    return config.network.architecture


def architecture_for(config: TrainConfig, *, source_in_colour: bool, target_in_colour: bool) -> Architecture:
    """The network that trains on a pair of domains, never "auto"."""
    inked = sees_ink(config, source_in_colour=source_in_colour, target_in_colour=target_in_colour)
    return architecture_of(config, colour=(source_in_colour or target_in_colour) and not inked)


def sentence_of(config: TrainConfig, architecture: Architecture | None = None) -> str:
    """What is trained, in words: "digits: LeNet at 28 pixels".

    Args:
        config: of the run.
        architecture: what "auto" came to, as `architecture_for` says; None where the images are not known.
    """
    network = config.network
    either = [architecture_of(config, colour=colour) for colour in (False, True)]
    names = [architecture] if architecture else list(dict.fromkeys(either))
    words = " or ".join(TITLES.get(name, name) for name in names)
    told = f"{is_for(config)}: {words} at {network.image_size} pixels"
    told = f"{told}, {_weights(network)}" if is_backbone(network.architecture) else told
    return f"{told}; {_on_kept(config.method)}" if network.bottleneck else told


def misfit(config: TrainConfig, looks: Looks) -> str:
    """What to say of a recipe that is not for such images; "" where it is."""
    if is_for(config) == looks:
        return ""
    fitting = preset_for(config.method, looks, looks)
    if fitting == config.preset:
        network = config.network.architecture
        return f"the images look like {looks}, but {network} is a network for {is_for(config)}"
    told = f"the images look like {looks}, but preset {config.preset} is made for {is_for(config)}"
    return f"{told}; preset {fitting} is made for {looks}"


def _on_kept(method: Method) -> str:
    whose = "its" if method in OF_ELSEWHERE else "the paper's"
    return f"{whose} losses on kept features of a frozen backbone; not the paper's network"


def _weights(network: Network) -> str:
    if not network.pretrained:
        return "untrained weights"
    if network.pretrained != HUB:
        return "trained weights from a file"
    # Those of timm may be of any other images.
    known = network.architecture in BACKBONES or network.architecture in OF_IMAGENET
    return f"trained weights {'of ImageNet' if known else 'from the hub'}"
