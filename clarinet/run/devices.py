"""Devices by the names that people give them."""

import torch

from clarinet.recipes.errors import ConfigError


def named_device(name: str) -> torch.device:
    """The device called auto, or as torch calls it; auto takes CUDA where there is some.

    Raises:
        ConfigError: torch knows no such device, or finds no CUDA here.
    """
    available = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if available else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device is {name!r}; it is auto, cpu or cuda") from error
    if device.type == "cuda" and not available:
        raise ConfigError(f"device {name}: torch finds no CUDA device here")
    return device
