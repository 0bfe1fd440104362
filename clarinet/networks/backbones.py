"""Torchvision's networks as feature extractors, and pretrained weights for them."""

import pickle
import struct
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from clarinet.networks.layers import DomainBatchNorm
from clarinet.recipes.errors import ConfigError

LARGEST_SMALL_IMAGE = 64  # pixels; up to here the usual stem would leave a ResNet almost no pixels


class Backbone(nn.Module):
    """A network of torchvision without its last layer: (B, 3, S, S) to (B, features).

    A ResNet for images of at most 64 pixels begins with a 3x3 convolution of stride 1 and no pooling, as is
    usual on CIFAR.

    Args:
        name: as torchvision spells it.
        image_size: S.
    """

    def __init__(self, name: str, image_size: int) -> None:
        super().__init__()
        # Takes a second and more, which runs without backbones need not spend.
        from torchvision.models import ResNet, get_model  # noqa: PLC0415

        self.name = name
        self.body = get_model(name, weights=None)
        if hasattr(self.body, "fc"):
            self.last_layer = "fc"
            last, self.body.fc = self.body.fc, nn.Identity()
        else:
            self.last_layer = f"classifier.{len(self.body.classifier) - 1}"
            last, self.body.classifier[-1] = self.body.classifier[-1], nn.Identity()
        self.features: int = last.in_features
        if isinstance(self.body, ResNet) and image_size <= LARGEST_SMALL_IMAGE:
            self.body.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            nn.init.kaiming_normal_(self.body.conv1.weight, mode="fan_out", nonlinearity="relu")
            self.body.maxpool = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F) of a batch (B, 3, S, S)."""
        features: Tensor = self.body(x)
        return features


def load_pretrained(backbone: Backbone, origin: str) -> None:
    """Fill a backbone with trained weights; statistics of batch normalisation are taken for each domain.

    Args:
        backbone: with its batch normalisations replaced by ours.
        origin: "torchvision" for its download of the best weights it has, or a file in torchvision's naming:
            safetensors, or what torch.save wrote, of which only tensors are unpickled.

    Raises:
        ConfigError: nothing can be downloaded or read there, or it fits another network.
    """
    given = _downloaded(backbone.name) if origin == "torchvision" else _read(Path(origin))
    norms = {name for name, module in backbone.body.named_modules() if isinstance(module, DomainBatchNorm)}
    values: dict[str, Tensor] = {}
    for name, own in backbone.body.state_dict().items():
        layer, _, leaf = name.rpartition(".")
        theirs = f"{layer}.{_STATISTICS[leaf]}" if layer in norms and leaf in _STATISTICS else name
        if theirs not in given:
            raise ConfigError(f"pretrained: {origin} lacks {theirs}, which {backbone.name} has")
        value = given[theirs]
        shape = own.shape if theirs == name else own.shape[1:]
        if value.shape != shape:
            hint = "; an image_size above 64 takes the usual first layer" if name == "conv1.weight" else ""
            raise ConfigError(
                f"pretrained: {theirs} in {origin} has shape {tuple(value.shape)}, but {backbone.name} for "
                f"this image_size has {tuple(shape)}{hint}"
            )
        values[name] = value.expand_as(own)
        del given[theirs]
    for name in given:
        if not name.startswith(f"{backbone.last_layer}.") and not name.endswith(".num_batches_tracked"):
            raise ConfigError(f"pretrained: {origin} has {name}, which {backbone.name} has not")
    backbone.body.load_state_dict(values)


# What the readers of safetensors, zip and pickle raise on other bytes.
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    struct.error,
    pickle.UnpicklingError,
    SafetensorError,
)
_STATISTICS = {"mean": "running_mean", "variance": "running_var"}  # our names to torch's


def _downloaded(name: str) -> dict[str, Tensor]:
    from torchvision.models import get_model_weights  # noqa: PLC0415 - slow, as above

    try:
        return dict(get_model_weights(name).DEFAULT.get_state_dict(progress=False, check_hash=True))
    except (OSError, RuntimeError) as error:  # no network; a file that is not what was promised
        raise ConfigError(
            f"pretrained: torchvision cannot download the weights of {name} ({error}); give a file instead"
        ) from error


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        reason = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
        raise ConfigError(f"pretrained: {path} cannot be read: {reason}") from error
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ConfigError(f"pretrained: {path} does not hold tensors by name")
    return dict(content)
