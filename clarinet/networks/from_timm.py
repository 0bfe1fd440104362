"""Image classifiers of timm without their last layer; timm itself is imported when one is made."""

from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from clarinet.recipes.choices import TIMM
from clarinet.recipes.errors import ConfigError

# What timm's networks raise of a size that they were not made for, as each of its modules showed.
_OF_A_SIZE = (ArithmeticError, AssertionError, LookupError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimmFacts:
    """What timm knows of a network whose last layer was left out, and of its trained weights.

    Args:
        name: as timm spells it, with the tag of the weights if that was told.
        features: width of what it gives.
        mean, spread: of the pixels in [0, 1] that its trained weights expect, by channel.
        layers: begin the names of the tensors in the last layer.
        hub: repository of the weights on the Hugging Face hub; "" for none.
        address: where else they are; "" for nowhere.
    """

    name: str
    features: int
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    layers: tuple[str, ...]
    hub: str
    address: str

    def has_in_last_layer(self, tensor: str) -> bool:
        """Whether a tensor of this name is a part of the whole network, of which the body lacks the end."""
        if tensor.startswith(self.layers):
            return True
        import timm  # noqa: PLC0415 - seconds, which only who uses it should spend; likewise below

        with torch.random.fork_rng(devices=[]):
            return tensor in timm.create_model(self.name).state_dict()


def timm_network(architecture: str, image_size: int) -> tuple[nn.Module, TimmFacts]:
    """A network of timm, (B, 3, S, S) to (B, features), its weights drawn from torch's global generator.

    Args:
        architecture: timm/NAME or timm/NAME.TAG.
        image_size: S.

    Raises:
        ConfigError: timm is not installed or has no such network, or the network takes no images of the size.
    """
    known = _known(architecture)
    import timm  # noqa: PLC0415

    name = architecture.removeprefix(TIMM)
    # Where the size is a part of the network, as in transformers, it has to be told.
    told: dict[str, Any] = {"img_size": image_size} if known.fixed_input_size else {}
    try:
        try:
            body = timm.create_model(name, num_classes=0, **told)
        except TypeError:  # of a network that is for one size
            body = timm.create_model(name, num_classes=0)
        features = _features(body, image_size)
    except _OF_A_SIZE as error:
        why = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
        raise ConfigError(
            f"image_size is {image_size}, which {architecture} does not take; it was made for "
            f"{known.input_size[-1]} ({why})",
            "image_size",
        ) from error
    classifiers = (known.classifier,) if isinstance(known.classifier, str) else known.classifier or ()
    return body, TimmFacts(
        name=name,
        features=features,
        mean=tuple(known.mean),
        spread=tuple(known.std),
        layers=tuple(f"{layer}." for layer in classifiers),
        hub=known.hf_hub_id or "",
        address=known.url or "",
    )


def _features(body: nn.Module, image_size: int) -> int:
    """The width of what a body gives, which timm tells for some alone; raises what the body does."""
    was_training = body.training
    with torch.no_grad():
        found = body.eval()(torch.zeros(1, 3, image_size, image_size))
    body.train(was_training)
    if found.ndim != 2:  # noqa: PLR2004 - images and features
        raise ValueError(f"it gives {tuple(found.shape[1:])} for an image, no vector")
    return int(found.shape[1])


def _known(architecture: str) -> Any:
    """What timm knows of a network: its PretrainedCfg, which no type describes here."""
    if find_spec("timm") is None:
        raise ConfigError(
            f"architecture {architecture} needs the package timm: pip install 'clarinet[train]'",
            "architecture",
        )
    import timm  # noqa: PLC0415
    from timm.models import get_pretrained_cfg  # noqa: PLC0415

    name = architecture.removeprefix(TIMM)
    network, _, tag = name.partition(".")
    if not timm.is_model(network):
        near = get_close_matches(network, timm.list_models())
        told = (
            f"did you mean {' or '.join(TIMM + n for n in near)}?" if near else "timm.list_models() has them"
        )
        raise ConfigError(f"architecture is {architecture}, which timm has not; {told}", "architecture")
    try:
        found = get_pretrained_cfg(name)
    except RuntimeError:  # a tag that it has not
        found = None
    if found is None:
        tags = sorted(full.partition(".")[2] for full in timm.list_models(f"{network}.*", pretrained=True))
        told = f"it has {', '.join(tags)}" if tags else "it has none by tags"
        raise ConfigError(
            f"architecture is {architecture}, but timm has no weights {tag!r} of {network}; {told}",
            "architecture",
        )
    return found
