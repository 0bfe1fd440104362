"""From uint8 images of any small size to what a network takes."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.joining import joined
from clarinet.networks.backbones import IMAGENET_MEAN, IMAGENET_SPREAD
from clarinet.networks.classifier import ModelSpec
from clarinet.recipes.choices import Greying, InputNormalisation
from clarinet.recipes.doing import OnPart, silently

CHUNK_PIXELS = 2**22  # resized at once: bounds the float copy to some 100 MB
BAND_PIXELS = 2**20  # of a single image that is larger
SPREAD_FLOOR = 0.1  # added to an image's spread, so that an almost empty image does not become all noise
GREY_DIMENSIONS = 3
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue, ITU-R BT.601
LEAST_INK = 25.5  # distance that is black on white: smaller ones, on a plain image, stay fainter
TIE = 2.0**-20  # far above float64's rounding, far below what a weighted mean of bytes can mean


def resized(images: Tensor, spec: ModelSpec, *, on_part: OnPart = silently) -> Tensor:
    """Bring images to the network's size and channels, bilinearly and smoothed where they shrink.

    An image that is not square becomes so: nothing is cut off, its proportions change.

    Args:
        images: uint8, (N, H, W) or (N, H, W, 3).
        spec: the network.
        on_part: called after some of them.

    Returns:
        uint8, (N, C, S, S). Grey is replicated for a colour network, colour becomes grey for a grey one as
        its spec says.
    """
    planes = images[:, None] if images.ndim == GREY_DIMENSIONS else images.movedim(3, 1)  # (N, 1 or 3, H, W)
    if planes.shape[1] < spec.channels:
        planes = planes.expand(-1, spec.channels, -1, -1)
    size = (spec.image_size, spec.image_size)
    if planes.shape[2:] == size and planes.shape[1] == spec.channels:
        return planes.contiguous()
    chunk = max(1, CHUNK_PIXELS // max(planes[0, 0].numel(), spec.image_size**2))

    def chunks() -> Iterator[Tensor]:
        for part in torch.split(planes, chunk):
            yield _resized_chunk(part, spec)
            on_part()

    return joined(chunks(), len(planes))


def _resized_chunk(planes: Tensor, spec: ModelSpec) -> Tensor:
    size = (spec.image_size, spec.image_size)
    if planes.shape[2] * planes.shape[3] > CHUNK_PIXELS:
        pixels = _narrowed(planes, spec)
    else:
        pixels = _as_seen_by(planes, spec)
    if pixels.shape[2:] != size:
        pixels = F.interpolate(pixels, size=size, mode="bilinear", antialias=True)
    return whole_levels(pixels).to(torch.uint8)


def _as_seen_by(planes: Tensor, spec: ModelSpec) -> Tensor:
    """(N, C, H, W) float64 in the network's channels, of bytes (N, 1 or 3, H, W)."""
    # In float64 and with ties rounded up, another order of the same sums (an exported model's, a GPU's) gives
    # the same bytes. In float32 a tie falls to either side, and one level can move a prediction by 1e-3.
    pixels = planes.double()
    if pixels.shape[1] > spec.channels:
        return greyed(pixels, spec.greying)
    return pixels


def _narrowed(planes: Tensor, spec: ModelSpec) -> Tensor:
    """(N, C, H, S) of large images (N, 1 or 3, H, W), some rows at once.

    A whole one would take 8 bytes a value. The resize is separable, so that these are its first sums.
    """
    bands = torch.split(planes, max(1, BAND_PIXELS // planes.shape[3]), dim=2)
    if planes.shape[1] > spec.channels and spec.sees_ink:
        seen = _inked_bands(planes, bands, spec.greying)
    else:
        seen = (_as_seen_by(band, spec) for band in bands)
    # Made at once: parts that stay between those that go would keep their memory from the system.
    shape = (len(planes), spec.channels, planes.shape[2], spec.image_size)
    narrow, done = torch.empty(shape, dtype=torch.float64, device=planes.device), 0
    for band in seen:
        size = (band.shape[2], spec.image_size)
        narrow[:, :, done : done + size[0]] = F.interpolate(band, size=size, mode="bilinear", antialias=True)
        done += size[0]
    return narrow


def _inked_bands(planes: Tensor, bands: Sequence[Tensor], how: Greying) -> Iterator[Tensor]:
    """The parts of `greyed` of large images, whose ground and furthest pixel are those of the whole."""
    ground = _ground(planes).double()  # a level of the border: the same in bytes
    furthest = torch.stack([_distance(band.double(), ground).amax((2, 3), keepdim=True) for band in bands])
    for band in bands:
        yield _inked(_distance(band.double(), ground), furthest.amax(0), how)


def greyed(pixels: Tensor, how: Greying) -> Tensor:
    """Grey of images in colour.

    Args:
        pixels: (N, 3, H, W) float64 RGB in 0..255.
        how: "luminance", or "ink": the pixel furthest in colour from its image's ground is white and the
            ground black, whatever colours the two have. "dark-ink" is the other way round.

    Returns:
        (N, 1, H, W) float64 in 0..255.
    """
    if how == "luminance":
        return (pixels * pixels.new_tensor(LUMINANCE)[:, None, None]).sum(1, keepdim=True)
    distance = _distance(pixels, _ground(pixels))
    return _inked(distance, distance.amax((2, 3), keepdim=True), how)


def _ground(pixels: Tensor) -> Tensor:
    """(N, 3, 1, 1) the same median as `background`, by operators that ONNX has."""
    border = _border(pixels)
    return border.sort(dim=2).values[:, :, (border.shape[2] - 1) // 2, None, None]


def _distance(pixels: Tensor, ground: Tensor) -> Tensor:
    """(N, 1, H, W) of (N, 3, H, W) from their ground (N, 3, 1, 1)."""
    return (pixels - ground).square().sum(1, keepdim=True).sqrt()


def _inked(distance: Tensor, furthest: Tensor, how: Greying) -> Tensor:
    """Distances (N, 1, H, W) as a share of the largest (N, 1, 1, 1), in 0..255."""
    ink = 255 * distance / furthest.clamp(min=LEAST_INK)
    return ink if how == "ink" else 255 - ink


def background(pixels: Tensor) -> Tensor:
    """The median of each image's border per channel: (B, C, H, W) to (B, C, 1, 1).

    Digits may touch the border (USPS does) and grounds may be light, so neither zeros nor edge pixels can
    fill in.
    """
    return _border(pixels).median(dim=2).values[:, :, None, None]


def _border(pixels: Tensor) -> Tensor:
    """(B, C, H, W) to (B, C, 2 (H + W))."""
    return torch.cat([pixels[:, :, 0], pixels[:, :, -1], pixels[:, :, :, 0], pixels[:, :, :, -1]], dim=2)


def whole_levels(pixels: Tensor) -> Tensor:
    """Round levels, float64 of any shape about 0..255, to whole ones in 0..255, and ties up."""
    return torch.floor(pixels + (0.5 + TIE)).clamp(0, 255)


def normalised(pixels: Tensor, how: InputNormalisation) -> Tensor:
    """Scale pixels in [0, 1] for a network.

    Args:
        pixels: (B, C, S, S) float in [0, 1].
        how: "range" maps to [-1, 1]. "instance" gives each channel of each image mean 0 and spread about 1.
            "imagenet" takes off the mean of ImageNet and divides by its spread, by channel; for C = 1 by the
            means over the channels. A backbone whose weights expect other pixels goes on from there.

    Returns:
        (B, C, S, S) float, channels last in memory, which convolutions on CPU prefer.
    """
    if how == "range":
        scaled = pixels * 2 - 1
    elif how == "imagenet":
        scaled = _as_imagenet(pixels)
    else:
        centred = pixels - pixels.mean((2, 3), keepdim=True)
        # torch.std takes fifteen times as long on the CPU for rows this short.
        spread = centred.square().mean((2, 3), keepdim=True).sqrt()  # (B, C, 1, 1)
        scaled = centred / (spread + SPREAD_FLOOR)
    return scaled.contiguous(memory_format=torch.channels_last)


def _as_imagenet(pixels: Tensor) -> Tensor:
    # Plane by plane with plain numbers: a tensor of three would be copied to the device in every step.
    if pixels.shape[1] == 1:
        return (pixels - fmean(IMAGENET_MEAN)) / fmean(IMAGENET_SPREAD)
    planes = zip(torch.split(pixels, 1, dim=1), IMAGENET_MEAN, IMAGENET_SPREAD, strict=True)
    return torch.cat([(plane - mean) / spread for plane, mean, spread in planes], dim=1)
