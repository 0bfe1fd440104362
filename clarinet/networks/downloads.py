"""Trained weights that a package knows an address of: downloaded once, then taken from its cache."""

import re
from pathlib import Path
from urllib.parse import urlparse

import torch

from clarinet.networks.backbones import Backbone
from clarinet.networks.from_timm import TimmFacts
from clarinet.recipes.errors import ConfigError, WeightsNotDownloaded

_FILES = ("model.safetensors", "pytorch_model.bin")  # of a repository on the Hugging Face hub, best first
_DIGEST = re.compile(
    r"-([0-9a-f]{8,})\."
)  # begins the SHA-256 in the names of torchvision's and timm's files


def downloaded(backbone: Backbone) -> tuple[Path, str]:
    """The file of the trained weights that torchvision or timm has for a network, and what to call it.

    Of several it is the best by the package's own account.

    Raises:
        ConfigError: there are none, or they cannot be downloaded (WeightsNotDownloaded): what to do instead.
    """
    if backbone.timm is None:
        from torchvision.models import get_model_weights  # noqa: PLC0415 - a second, which files need not wait

        return _from_address(get_model_weights(backbone.name).DEFAULT.url, backbone.name)
    if backbone.timm.hub:
        return _from_hugging_face(backbone.timm, backbone.name)
    if backbone.timm.address:
        return _from_address(backbone.timm.address, backbone.name)
    raise ConfigError(f"pretrained: timm has no trained weights of {backbone.name}; give a file, or none")


def _from_address(address: str, name: str) -> tuple[Path, str]:
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlparse(address).path).name
    promised = _DIGEST.search(path.name)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(address, str(path), promised and promised[1], progress=False)
    except (OSError, RuntimeError) as error:  # no network; a file that is not what was promised
        raise _failed(name, address, error) from error
    return path, path.name


def _from_hugging_face(network: TimmFacts, name: str) -> tuple[Path, str]:
    from huggingface_hub import hf_hub_download, hf_hub_url  # noqa: PLC0415 - a second, as above
    from huggingface_hub.errors import RemoteEntryNotFoundError  # noqa: PLC0415

    repository, _, revision = network.hub.partition("@")
    for file in _FILES:
        try:
            return Path(hf_hub_download(repository, file, revision=revision or None)), f"{repository}/{file}"
        except RemoteEntryNotFoundError:
            continue
        except Exception as error:  # its client raises whatever its several transports do
            raise _failed(name, hf_hub_url(repository, file, revision=revision or None), error) from error
    raise ConfigError(f"pretrained: {repository} has none of {', '.join(_FILES)}; give a file instead")


def _failed(name: str, address: str, error: Exception) -> WeightsNotDownloaded:
    why = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
    return WeightsNotDownloaded(
        f"pretrained: {name}'s weights cannot be downloaded from {address} ({why}); fetch the file where "
        "there is a network, and give a file instead of hub: its path, or in the application its name in the "
        "folder CLARINET_WEIGHTS_DIR",
        network=name,
        address=address,
    )
