"""Trained weights for backbones: from a hub or a file, checked name by name."""

import hashlib
import pickle
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from clarinet.networks.backbones import Backbone
from clarinet.networks.downloads import downloaded
from clarinet.networks.layers import DomainBatchNorm
from clarinet.networks.weight_names import in_timms_spelling
from clarinet.recipes.choices import HUB
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.upgrade import REWORDED


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """Which trained weights a network began with: the file's name, and its SHA-256 in hexadecimal.

    What came from the Hugging Face hub has the repository before its name, for many have the same.
    """

    name: str
    digest: str


def load_pretrained(
    backbone: Backbone, origin: str, *, folder: Path | None = None, digest: str = ""
) -> TrainedWeights:
    """Fill a backbone with trained weights; statistics of batch normalisation are taken for each domain.

    Args:
        backbone: with its batch normalisations replaced by ours.
        origin: "hub" for the download of torchvision or timm, or a file: safetensors, or what torch.save
            wrote, of which only tensors are unpickled. Its tensors have the names of torchvision or timm, or
            those of EfficientNet's first package in PyTorch.
        folder: where the file is, if its bare name is given.
        digest: SHA-256 that the file must have; "" takes it as it is.

    Returns:
        Name and digest of the file that was read.

    Raises:
        ConfigError: nothing can be downloaded or read there, it is another file than the digest says, or it
            fits another network: the message names a tensor.
    """
    path, name = _place(backbone, origin, folder)
    given, found = _read(path)
    if digest and found != digest:
        raise ConfigError(
            f"pretrained: {name} is another file than was meant: its SHA-256 is {found}, not {digest}; "
            "bring the file of then back, or start anew with this one"
        )
    _fill(backbone, given, name)
    return TrainedWeights(name, found)


def _place(backbone: Backbone, origin: str, folder: Path | None) -> tuple[Path, str]:
    if REWORDED["pretrained"].get(origin, origin) == HUB:
        return downloaded(backbone)
    if folder is None:
        return Path(origin), Path(origin).name
    if Path(origin).name != origin:
        raise ConfigError(f"pretrained: {origin} is no bare name of a file in the folder of trained weights")
    return folder / origin, origin


def _fill(backbone: Backbone, given: Mapping[str, Tensor], where: str) -> None:
    own = backbone.body.state_dict()
    wanted = _wanted(backbone, own)
    named = dict(given)
    if backbone.timm is not None:
        named = in_timms_spelling(named, own)
        if _misfit(wanted, named):
            named = _by_timm(backbone, named)
    if misfit := _misfit(wanted, named):
        raise ConfigError(f"pretrained: {misfit.told(where, backbone.name)}")
    needed = {theirs for theirs, _ in wanted.values()}
    for name in sorted(set(named) - needed):
        if not name.endswith(".num_batches_tracked") and not backbone.has_in_last_layer(name):
            raise ConfigError(f"pretrained: {where} has {name}, which {backbone.name} has not")
    values = {name: named[theirs].expand_as(own[name]) for name, (theirs, _) in wanted.items()}
    backbone.body.load_state_dict(values)


def _wanted(backbone: Backbone, own: Mapping[str, Tensor]) -> dict[str, tuple[str, torch.Size]]:
    """Our tensors' names to their names and shapes in files, where statistics are those of one domain."""
    norms = {name for name, module in backbone.body.named_modules() if isinstance(module, DomainBatchNorm)}
    wanted: dict[str, tuple[str, torch.Size]] = {}
    for name, value in own.items():
        layer, _, leaf = name.rpartition(".")
        is_statistic = layer in norms and leaf in _STATISTICS
        theirs = f"{layer}.{_STATISTICS[leaf]}".lstrip(".") if is_statistic else name
        wanted[name] = theirs, value.shape[1:] if is_statistic else value.shape
    return wanted


@dataclass(frozen=True, slots=True)
class _Misfit:
    """The first tensor that a file lacks, or has in another shape than a network."""

    name: str
    wanted: torch.Size
    found: torch.Size | None

    def told(self, where: str, network: str) -> str:
        if self.found is None:
            return f"{where} lacks {self.name}, which {network} has"
        # The one shape that torchvision's networks have for some image sizes alone.
        hint = "; an image_size above 64 takes the usual first layer" if self.name == "conv1.weight" else ""
        return (
            f"{self.name} in {where} has shape {tuple(self.found)}, but {network} for this image_size has "
            f"{tuple(self.wanted)}{hint}"
        )


def _misfit(wanted: Mapping[str, tuple[str, torch.Size]], given: Mapping[str, Tensor]) -> _Misfit | None:
    for theirs, shape in wanted.values():
        found = given[theirs].shape if theirs in given else None
        if found != shape:
            return _Misfit(theirs, shape, found)
    return None


def _by_timm(backbone: Backbone, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """What timm makes of tensors in other spellings or of another image size, where it knows how to."""
    convert = getattr(sys.modules[type(backbone.body).__module__], "checkpoint_filter_fn", None)
    if convert is None:
        return given
    try:
        return dict(convert(dict(given), backbone.body))
    except Exception:  # of tensors for another network it raises anything; their names will tell
        return given


# What the readers of safetensors, zip and pickle raise on other bytes.
_UNREADABLE = (
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


def _read(path: Path) -> tuple[dict[str, Tensor], str]:
    """The tensors of a file by name, and its digest."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            content = _content(file, path.suffix)
    except OSError as error:
        raise ConfigError(f"pretrained: {path} cannot be read: {error.strerror or error}") from error
    except _UNREADABLE as error:  # whose own words are advice to who calls torch
        raise ConfigError(
            f"pretrained: {path} cannot be read as trained weights; give a file of safetensors, or one that "
            "torch.save wrote, which holds tensors by name and no whole model"
        ) from error
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ConfigError(f"pretrained: {path} does not hold tensors by name")
    return dict(content), digest


def _content(file: BinaryIO, suffix: str) -> object:
    if suffix.lower() == ".safetensors":
        return load(file.read())
    return torch.load(file, map_location="cpu", weights_only=True)
