"""Devices by the names that people give them, and the most memory that a process held."""

import sys
from contextlib import suppress

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


def most_memory(device: torch.device) -> int | None:
    """Bytes that this process held at most: of the GPU for its tensors where it is the device, else in all.

    Returns:
        None where the system does not tell.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    with suppress(ImportError):
        import resource  # noqa: PLC0415  # Windows has none

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return None
