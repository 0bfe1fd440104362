"""What the commands of the library share: how they are described, and options that several of them take."""

import argparse
from math import isfinite
from typing import TYPE_CHECKING, Any

from clarinet.files.json_text import json_of
from clarinet.recipes.config import GROUP_OF, unknown
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.upgrade import OWN

if TYPE_CHECKING:
    import torch

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any  # the class is generic for the type checker alone

FAILED = 1  # exit status


def named_value(text: str) -> tuple[str, Any]:
    """Name and value of `name=value`; the value is JSON (finite numbers, true, false) or else the text.

    Raises:
        ConfigError: there is no `=`, or no hyper-parameter of that name to change.
    """
    name, separator, value = text.partition("=")
    if name in OWN:
        raise ConfigError(f"--set {text:.80}: {name} is chosen by an option of its own")
    if name not in GROUP_OF:
        raise ConfigError(f"--set {text:.80}: {unknown(name)}")
    if not separator:
        raise ConfigError(f"--set {text:.80}: expected NAME=VALUE")
    try:
        found = json_of(value)
    except ValueError:
        return name, value
    return name, value if isinstance(found, float) and not isfinite(found) else found


def add_weights_option(parser: argparse.ArgumentParser) -> None:
    """Describe `--weights`, which `changes_of` reads."""
    parser.add_argument(
        "--weights",
        metavar="FILE|hub",
        help="trained weights of a network for photographs: a file (safetensors, or a state dict that "
        "torch.save wrote), or hub for a download; short for --set pretrained=...",
    )


def changes_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `--set` and `--weights` change of a preset.

    Raises:
        ConfigError: a hyper-parameter is unknown, or both name weights.
    """
    changes = dict(named_value(text) for text in arguments.overrides)
    if arguments.weights is None:
        return changes
    if "pretrained" in changes:
        raise ConfigError("--weights and --set pretrained both name trained weights; leave one out")
    return changes | {"pretrained": arguments.weights}


def named_device(name: str) -> "torch.device":
    """The device called auto, cpu or cuda; auto takes CUDA where there is some."""
    from clarinet.run import devices

    return devices.named_device(name)


def percent(share: float | None) -> str:
    """A share in [0, 1] as people read it; a dash for none."""
    return "-" if share is None else f"{100 * share:.2f} %"
