"""Feature extractors of the paper and for photographs, label predictor and domain discriminator."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.networks.backbones import Backbone
from clarinet.networks.bottleneck import Bottleneck
from clarinet.networks.heads import CommonSpaceHead
from clarinet.networks.layers import DomainBatchNorm, DomainInForce, HalfDropout, replace_batch_norms
from clarinet.networks.own import CHANNELS, OWN, OwnBackbone
from clarinet.recipes.choices import (
    Architecture,
    DiscriminatorWeights,
    Greying,
    Head,
    InputNormalisation,
    is_backbone,
)
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fitting import architecture_of

SOURCE: Final = 0
TARGET: Final = 1
Domain = Literal[0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What is needed to rebuild a network and to prepare images for it; stored beside its weights.

    Args:
        architecture: see TrainConfig; never "auto". "own" is a caller's own module (`own.OwnBackbone`).
        channels: 1 for grey images, 3 for colour; backbones always have 3.
        image_size: height and width of its input, in pixels.
        input_normalisation: see TrainConfig.
        norm_per_domain: whether batch normalisation keeps the domains apart; the DANN network has batch
            normalisation only then, the others always or never.
        num_classes: K.
        greying: what a network for grey images sees of those in colour. "luminance" is theirs. "ink" is how
            far each pixel is from its image's ground, as light ink on a dark one; "dark-ink" is dark on
            light.
        head: the label predictor: a linear map of the features, or one behind a space in which both domains'
            features lie alike (`heads.CommonSpaceHead`).
        bottleneck: features of the layers that learn behind a backbone that stays as it is; 0 where all learn
            or none.
    """

    architecture: Architecture
    channels: int
    image_size: int
    input_normalisation: InputNormalisation
    norm_per_domain: bool
    num_classes: int
    greying: Greying = "luminance"
    head: Head = "linear"
    bottleneck: int = 0

    @property
    def sees_ink(self) -> bool:
        """Whether images in colour are seen as ink; then the source came in colour, and the target grey."""
        return self.greying != "luminance"

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)


def spec_for(config: TrainConfig, *, colour: bool, num_classes: int, is_own: bool = False) -> ModelSpec:
    """The network that a config means for images of a kind.

    Args:
        config: of the run.
        colour: whether it sees any domain in colour.
        num_classes: K.
        is_own: whether a caller's own module stands in the place of the config's feature extractor.
    """
    architecture = OWN if is_own else architecture_of(config, colour=colour)
    return ModelSpec(
        architecture=architecture,
        channels=CHANNELS if colour or is_own or is_backbone(architecture) else 1,
        image_size=config.network.image_size,
        input_normalisation=config.network.input_normalisation,
        norm_per_domain=config.network.norm_per_domain and architecture not in {"lenet", "convnext_tiny"},
        num_classes=num_classes,
        head="common-space" if config.network.has_rounds else "linear",
        bottleneck=config.network.bottleneck,
    )


class LeNet(nn.Module):
    """The LeNet that CDAN uses for U<->M: (B, C, S, S) to (B, 500).

    First a convolution to 20 maps 5x5, max pooling by 2, ReLU. Then a convolution to 50 maps 5x5, dropout of
    maps 0.5, max pooling by 2, ReLU. Then linear to 500, ReLU, dropout 0.5.
    """

    features = 500

    def __init__(self, channels: int, image_size: int) -> None:
        super().__init__()
        side = _side_after_two_blocks(image_size)
        self.first = nn.Conv2d(channels, 20, 5)
        self.second = nn.Conv2d(20, 50, 5)
        self.drop_maps = nn.Dropout2d(0.5)
        self.full = nn.Linear(50 * side * side, self.features)
        self.dropout = HalfDropout()

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, 500) of a batch (B, C, S, S)."""
        x = F.max_pool2d(self.first(x), 2).relu()  # (B, 20, S', S')
        x = F.max_pool2d(self.drop_maps(self.second(x)), 2)  # (B, 50, S'', S'')
        x = self.full(x.relu().flatten(1)).relu()  # (B, 500)
        out: Tensor = self.dropout(x)
        return out


class DannNet(nn.Module):
    """The network of DANN for M->m, normalised per domain if wanted: (B, C, S, S) to (B, 100).

    First a convolution to 32 maps 5x5, ReLU, max pooling by 2. Then a convolution to 48 maps 5x5, ReLU,
    dropout of maps 0.5, max pooling by 2. Then twice linear to 100 and ReLU. The normalisation, if any,
    follows each convolution.
    """

    features = 100

    def __init__(self, channels: int, image_size: int, domain: DomainInForce | None) -> None:
        super().__init__()
        side = _side_after_two_blocks(image_size)
        self.first = nn.Conv2d(channels, 32, 5)
        self.second = nn.Conv2d(32, 48, 5)
        self.drop_maps = nn.Dropout2d(0.5)
        self.full = nn.Linear(48 * side * side, 100)
        self.last = nn.Linear(100, self.features)
        self.norms = nn.ModuleList(
            nn.Identity() if domain is None else DomainBatchNorm(width, per_domain=True, domain=domain)
            for width in (32, 48)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, 100) of a batch (B, C, S, S)."""
        x = F.max_pool2d(self.norms[0](self.first(x)).relu(), 2)  # (B, 32, S', S')
        x = self.norms[1](self.second(x)).relu()
        x = F.max_pool2d(self.drop_maps(x), 2)  # (B, 48, S'', S'')
        x = self.full(x.flatten(1)).relu()  # (B, 100)
        return torch.relu(self.last(x))  # (B, 100)


class DigitsNet(nn.Sequential):
    """The DTN that CDAN uses for colour digits (S->M; here Y->M and Y->S too): (B, C, S, S) to (B, 512).

    Three convolutions go to 64, 128 and 256 maps, 5x5 in steps of 2. Each has batch normalisation, dropout of
    maps (0.1, 0.3, 0.5) and ReLU. Then linear to 512, batch normalisation, ReLU, dropout 0.5.
    """

    features = 512

    def __init__(self, channels: int, image_size: int) -> None:
        layers: list[nn.Module] = []
        side = image_size
        for width, dropout in ((64, 0.1), (128, 0.3), (256, 0.5)):
            convolution = nn.Conv2d(channels, width, 5, stride=2, padding=2)
            layers += [convolution, nn.BatchNorm2d(width), nn.Dropout2d(dropout), nn.ReLU()]
            channels, side = width, (side + 1) // 2
        full = nn.Linear(channels * side * side, self.features)
        super().__init__(*layers, nn.Flatten(), full, nn.BatchNorm1d(self.features), nn.ReLU(), HalfDropout())


class ConvLarge(nn.Sequential):
    """The convolutional network of mean teacher, for C->T: (B, C, S, S) to (B, 128).

    Three blocks of three convolutions: three to 128 maps 3x3; three to 256 maps 3x3; to 512 maps 3x3 without
    padding, 256 maps 1x1 and 128 maps 1x1. Batch normalisation and leaky ReLU 0.1 after each, max pooling by
    2 and dropout 0.5 after the first two blocks, at the end the mean over all pixels.
    """

    features = 128

    def __init__(self, channels: int) -> None:
        layers: list[nn.Module] = []
        # Width, side and padding of each convolution; None ends a block.
        plan = (
            [(128, 3, 1)] * 3 + [None] + [(256, 3, 1)] * 3 + [None] + [(512, 3, 0), (256, 1, 0), (128, 1, 0)]
        )
        for step in plan:
            if step is None:
                layers += [nn.MaxPool2d(2), HalfDropout()]
                continue
            width, side, padding = step
            convolution = nn.Conv2d(channels, width, side, padding=padding)
            layers += [convolution, nn.BatchNorm2d(width), nn.LeakyReLU(0.1)]
            channels = width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


Extractor = LeNet | DannNet | DigitsNet | ConvLarge | Backbone | OwnBackbone


def _extractor(spec: ModelSpec, domain: DomainInForce, backbone: nn.Module | None) -> Extractor:
    if backbone is not None:
        return OwnBackbone(backbone, spec.image_size)
    match spec.architecture:
        case "lenet":
            return LeNet(spec.channels, spec.image_size)
        case "dann":
            return DannNet(spec.channels, spec.image_size, domain if spec.norm_per_domain else None)
        case "dtn":
            return DigitsNet(spec.channels, spec.image_size)
        case "conv-large":
            return ConvLarge(spec.channels)
        case "auto":
            raise ConfigError("a model's architecture must be a name; auto is resolved from the images")
        case "own":
            raise ConfigError("a model with a backbone of somebody's own is made of that module alone")
        case name:
            return Backbone(name, spec.image_size, by_imagenet=spec.input_normalisation == "imagenet")


class Classifier(nn.Module):
    """Feature extractor G and label predictor F; `spec` says which images it takes.

    Args:
        spec: of the network.
        backbone: a caller's own module, of which a copy gives the features; None where the spec names one.

    Raises:
        ConfigError: the backbone, or the one that the spec names, cannot be had or takes no such images.
    """

    def __init__(self, spec: ModelSpec, backbone: nn.Module | None = None) -> None:
        super().__init__()
        self.spec = spec
        self._domain = DomainInForce()
        self.extractor: Extractor | Bottleneck = _extractor(spec, self._domain, backbone)
        if spec.bottleneck:
            assert isinstance(self.extractor, Backbone | OwnBackbone)
            self.extractor = Bottleneck(self.extractor, spec.bottleneck)
        self.predictor: nn.Linear
        if spec.head == "linear":
            self.predictor = nn.Linear(self.extractor.features, spec.num_classes)
        else:
            self.predictor = CommonSpaceHead(self.extractor.features, spec.num_classes, self._domain)
        replace_batch_norms(self.extractor, per_domain=spec.norm_per_domain, domain=self._domain)
        if isinstance(self.extractor, Bottleneck):
            self.extractor.freeze()

    @property
    def backbone(self) -> Extractor:
        """What gives the features that a run may keep: the extractor, or the part of it that never learns."""
        return self.extractor.backbone if isinstance(self.extractor, Bottleneck) else self.extractor

    def forward(self, images: Tensor, domain: Domain = TARGET) -> tuple[Tensor, Tensor]:
        """Features (B, D) and logits (B, K), both float32, of normalised images (B, C, S, S).

        Behind a frozen backbone its features (B, F) may take the place of the images.
        """
        self._domain.number = domain
        features = self.extractor(images)  # (B, D)
        logits = self.predictor(features)  # (B, K)
        return features.float(), logits.float()

    def features_of(self, images: Tensor, domain: Domain = TARGET) -> Tensor:
        """Features (B, D), float32, of normalised images (B, C, S, S)."""
        self._domain.number = domain
        features: Tensor = self.extractor(images)
        return features.float()

    def kept_of(self, images: Tensor, domain: Domain = TARGET) -> Tensor:
        """Features (B, F), float32, that a run may keep of normalised images (B, C, S, S)."""
        self._domain.number = domain
        kept: Tensor = self.backbone(images)
        return kept.float()

    def classify(self, features: Tensor, domain: Domain = TARGET) -> Tensor:
        """Logits (B, K), float32, of features (B, D)."""
        self._domain.number = domain
        logits: Tensor = self.predictor(features)
        return logits.float()


def discriminator(inputs: int, *, weights: DiscriminatorWeights = "uniform") -> nn.Sequential:
    """The domain discriminator D, 500-500-1 with ReLU and dropout: (B, inputs) to (B, 1) logits.

    Args:
        inputs: of its first layer.
        weights: how they are drawn: uniform within 1/sqrt(inputs of the layer), biases alike (torch's
            default), or normal with variance 2 / (inputs + outputs) and biases of 0 (Xavier's; CDAN's code).
    """
    network = nn.Sequential(
        nn.Linear(inputs, 500),
        nn.ReLU(),
        HalfDropout(),
        nn.Linear(500, 500),
        nn.ReLU(),
        HalfDropout(),
        nn.Linear(500, 1),
    )
    if weights == "xavier":
        for layer in network:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
    return network


def _side_after_two_blocks(image_size: int) -> int:
    """Pixels left after twice a 5x5 convolution without padding and a pooling by 2."""
    return ((image_size - 4) // 2 - 4) // 2
