"""Arrays of images as callers have them, as the library takes them: uint8 (N, H, W) or (N, H, W, 3)."""

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clarinet.recipes.errors import DataError

CHANNELS = (1, 3)  # of an image
PIECE = 2**22  # values that become bytes at once: bounds the copies in floats
GREY, COLOUR = 3, 4  # dimensions of a stack


def stack_of(images: NDArray[np.generic] | Tensor, name: str) -> Tensor:
    """A stack of images, channels last and in bytes.

    Args:
        images: (N, H, W); (N, H, W, C) or (N, C, H, W) with C = 1 or 3. uint8 in 0..255, or floats in 0..1,
            which become the nearest of 256 levels.
        name: what an error calls them.

    Returns:
        uint8 (N, H, W) or (N, H, W, 3), on the same device.

    Raises:
        DataError: another type, range or shape, or one that can be read in two ways.
    """
    found = images if isinstance(images, Tensor) else _tensor_of(images, name)
    # In this order: a copy of what was moved would be one in floats.
    return channels_last(levels_of(found.detach(), name), name)


def _tensor_of(images: NDArray[np.generic], name: str) -> Tensor:
    if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
        raise DataError(f"{name} are {images.dtype}; {_TYPES}")
    if any(step < 0 for step in images.strides) or not images.dtype.isnative:  # which torch refuses
        images = np.ascontiguousarray(images, images.dtype.newbyteorder("="))
    with warnings.catch_warnings():  # of arrays that must not be written to, as those of a mapped file
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(images)


_TYPES = "images must be uint8 in 0..255, or floats in 0..1"


def channels_last(images: Tensor, name: str) -> Tensor:
    """(N, H, W) or (N, H, W, 3) of a stack whose channels come second or last, as its shape tells.

    Raises:
        DataError: it tells neither, or both.
    """
    shape = tuple(images.shape)
    if images.ndim == GREY:
        return images
    if images.ndim != COLOUR:
        raise DataError(
            f"{name} have shape {shape}; expected (N, H, W), (N, H, W, 3) or (N, 3, H, W), and for a single "
            f"image {name}[None]"
        )
    second, last = shape[1] in CHANNELS, shape[3] in CHANNELS
    if second and last:
        raise DataError(
            f"{name} have shape {shape}, in which the channels may come second or last; make the images at "
            "least 4 pixels high and wide, or leave out a single channel: (N, H, W)"
        )
    if not second and not last:
        raise DataError(f"{name} have shape {shape}; expected one or three channels, as second or last axis")
    placed = images.movedim(1, 3) if second else images
    return placed[..., 0] if placed.shape[3] == 1 else placed


def levels_of(pixels: Tensor, name: str) -> Tensor:
    """uint8 of any shape: itself, or floats in 0..1 brought to the nearest of 256 levels.

    Raises:
        DataError: another type, or floats beyond 0..1.
    """
    if pixels.dtype == torch.uint8:
        return pixels
    if not pixels.is_floating_point():
        raise DataError(f"{name} are {pixels.dtype}; {_TYPES}")
    made = torch.empty(pixels.shape, dtype=torch.uint8, device=pixels.device)
    if pixels.numel() == 0:
        return made
    low, high = (float(end) for end in torch.aminmax(pixels))
    if not (low >= 0 and high <= 1):  # what is no number is refused as well
        raise DataError(
            f"{name} are floats from {low:.4g} to {high:.4g}; only 0 to 1 is taken: divide by the largest "
            "level, undo a normalisation, or give uint8 in 0..255"
        )
    for own, given in zip(
        torch.split(made.view(-1), PIECE), torch.split(pixels.reshape(-1), PIECE), strict=True
    ):
        own.copy_((given.float() * 255).round_())
    return made
