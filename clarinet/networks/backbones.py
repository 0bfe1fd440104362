"""Networks for photographs as feature extractors: torchvision's and timm's."""

from typing import Any

import torch
from torch import Tensor, nn

from clarinet.networks.from_timm import TimmFacts, timm_network
from clarinet.recipes.choices import TIMM

LARGEST_SMALL_IMAGE = 64  # pixels; up to here the usual stem would leave a ResNet almost no pixels
IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of R, G and B in [0, 1], as torchvision's weights expect
IMAGENET_SPREAD = (0.229, 0.224, 0.225)


class Backbone(nn.Module):
    """A network of torchvision or timm without its last layer: (B, 3, S, S) to (B, features).

    A ResNet of torchvision for images of at most 64 pixels begins with a 3x3 convolution of stride 1 and no
    pooling, as is usual on CIFAR. Networks of timm are as timm makes them.

    Args:
        name: as torchvision spells it, or timm/NAME as timm does.
        image_size: S.
        by_imagenet: whether pixels come by ImageNet's mean and spread. A network of timm whose trained
            weights expect others than ImageNet's then gets those.

    Raises:
        ConfigError: timm has no such network, or the network takes no images of this size.
    """

    body: Any  # an nn.Module; what it consists of is its package's affair
    scale: Tensor | None
    shift: Tensor | None

    def __init__(self, name: str, image_size: int, *, by_imagenet: bool = False) -> None:
        super().__init__()
        self.name = name
        self.timm: TimmFacts | None = None
        scale = shift = None
        if name.startswith(TIMM):
            self.body, self.timm = timm_network(name, image_size)
            self.features = self.timm.features
            if by_imagenet:
                scale, shift = _from_imagenet(self.timm.mean, self.timm.spread)
        else:
            self.body, self.features, self._last_layer = _torchvision(name, image_size)
        # Saved with a model: another version of timm may expect other pixels.
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F) of a batch (B, 3, S, S), pooled over each image."""
        if self.scale is not None and self.shift is not None:
            x = x * self.scale + self.shift
        features: Tensor = self.body(x)
        return features

    def has_in_last_layer(self, tensor: str) -> bool:
        """Whether a tensor of this name belongs to the last layer, which was left out."""
        if self.timm is not None:
            return self.timm.has_in_last_layer(tensor)
        return tensor.startswith(f"{self._last_layer}.")


def _from_imagenet(
    mean: tuple[float, ...], spread: tuple[float, ...]
) -> tuple[Tensor, Tensor] | tuple[None, None]:
    """Factor and summand, (3, 1, 1), from pixels by ImageNet's mean and spread to those by other ones."""
    if (mean, spread) == (IMAGENET_MEAN, IMAGENET_SPREAD):
        return None, None
    theirs, ours = (
        torch.tensor([mean, spread]).double(),
        torch.tensor([IMAGENET_MEAN, IMAGENET_SPREAD]).double(),
    )
    scale, shift = ours[1] / theirs[1], (ours[0] - theirs[0]) / theirs[1]
    return scale.float()[:, None, None], shift.float()[:, None, None]


def _torchvision(name: str, image_size: int) -> tuple[Any, int, str]:
    """A network without its last layer, the width of its features, and that layer's name."""
    # Takes a second and more, which runs without backbones need not spend.
    from torchvision.models import ResNet, get_model  # noqa: PLC0415

    body = get_model(name, weights=None)
    if hasattr(body, "fc"):
        last_layer = "fc"
        last, body.fc = body.fc, nn.Identity()
    else:
        last_layer = f"classifier.{len(body.classifier) - 1}"
        last, body.classifier[-1] = body.classifier[-1], nn.Identity()
    if isinstance(body, ResNet) and image_size <= LARGEST_SMALL_IMAGE:
        body.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(body.conv1.weight, mode="fan_out", nonlinearity="relu")
        body.maxpool = nn.Identity()
    return body, last.in_features, last_layer
