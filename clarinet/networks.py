"""Feature extractors, label predictor and domain discriminator of the paper, for small images."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.config import InputNormalisation

SOURCE: Final = 0
TARGET: Final = 1
Domain = Literal[0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What is needed to rebuild a network and to prepare images for it; stored beside its weights.

    Args:
        channels: 1 for the LeNet on grey images, 3 for the colour network.
        image_size: height and width of its input, in pixels.
        input_normalisation: see TrainConfig.
        batch_norm: whether the colour network has batch normalisation.
        num_classes: K.
    """

    channels: int
    image_size: int
    input_normalisation: InputNormalisation
    batch_norm: bool
    num_classes: int

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)


class DomainBatchNorm(nn.Module):
    """Batch normalisation with one scale and offset, and running statistics for each domain apart."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(2, channels))
        self.register_buffer("variance", torch.ones(2, channels))

    def forward(self, x: Tensor, domain: Domain) -> Tensor:
        """(B, C, H, W) to the same shape, in the statistics of a domain."""
        return F.batch_norm(
            x, self.mean[domain], self.variance[domain], self.weight, self.bias, training=self.training
        )


class LeNet(nn.Module):
    """The LeNet that CDAN uses for U<->M: (B, 1, S, S) to (B, 500)."""

    features = 500

    def __init__(self, image_size: int) -> None:
        super().__init__()
        side = _side_after_two_blocks(image_size)
        self.first = nn.Conv2d(1, 20, 5)
        self.second = nn.Conv2d(20, 50, 5)
        self.full = nn.Linear(50 * side * side, self.features)

    def forward(self, x: Tensor, domain: Domain) -> Tensor:  # noqa: ARG002 - both extractors are called alike
        """Features of a batch; the domain does not matter here."""
        x = F.max_pool2d(self.first(x), 2).relu()  # (B, 20, S', S')
        x = F.max_pool2d(F.dropout2d(self.second(x), 0.5, self.training), 2)  # (B, 50, S'', S'')
        x = self.full(x.relu().flatten(1)).relu()  # (B, 500)
        return F.dropout(x, 0.5, self.training)


class ColourNet(nn.Module):
    """The network of DANN for M->m, normalised per domain if wanted: (B, 3, S, S) to (B, 100)."""

    features = 100

    def __init__(self, image_size: int, *, batch_norm: bool) -> None:
        super().__init__()
        side = _side_after_two_blocks(image_size)
        self.first = nn.Conv2d(3, 32, 5)
        self.second = nn.Conv2d(32, 48, 5)
        self.full = nn.Linear(48 * side * side, 100)
        self.last = nn.Linear(100, self.features)
        self.norms = nn.ModuleList([DomainBatchNorm(32), DomainBatchNorm(48)] if batch_norm else [])

    def forward(self, x: Tensor, domain: Domain) -> Tensor:
        """Features of a batch of one domain."""
        x = F.max_pool2d(self._normalised(self.first(x), 0, domain).relu(), 2)  # (B, 32, S', S')
        x = self._normalised(self.second(x), 1, domain).relu()
        x = F.max_pool2d(F.dropout2d(x, 0.5, self.training), 2)  # (B, 48, S'', S'')
        x = self.full(x.flatten(1)).relu()  # (B, 100)
        return torch.relu(self.last(x))  # (B, 100)

    def _normalised(self, x: Tensor, index: int, domain: Domain) -> Tensor:
        out: Tensor = self.norms[index](x, domain) if len(self.norms) else x
        return out


class Classifier(nn.Module):
    """Feature extractor G and label predictor F; `spec` says which images it takes."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.extractor: LeNet | ColourNet = (
            LeNet(spec.image_size)
            if spec.channels == 1
            else ColourNet(spec.image_size, batch_norm=spec.batch_norm)
        )
        self.predictor = nn.Linear(self.extractor.features, spec.num_classes)

    def forward(self, images: Tensor, domain: Domain = TARGET) -> tuple[Tensor, Tensor]:
        """Features (B, D) and logits (B, K), both float32, of normalised images (B, C, S, S)."""
        features = self.extractor(images, domain)  # (B, D)
        logits = self.predictor(features)  # (B, K)
        return features.float(), logits.float()


def discriminator(inputs: int) -> nn.Sequential:
    """The domain discriminator D, 500-500-1 with ReLU and dropout: (B, inputs) to (B, 1) logits."""
    return nn.Sequential(
        nn.Linear(inputs, 500),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(500, 500),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(500, 1),
    )


def _side_after_two_blocks(image_size: int) -> int:
    """Pixels left after twice a 5x5 convolution without padding and a pooling by 2."""
    return ((image_size - 4) // 2 - 4) // 2
