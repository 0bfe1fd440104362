"""Distortions of photographs: crops, mirror images, colours and lines. Takes what `digits` takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import on_device

# As is usual for photographs. CROP is the share of the area that a crop keeps at least, and SHIFT how many
# pixels it may reach beyond the edge. FLIP is the share of mirror images. COLOUR_JITTER is the largest
# relative change of brightness, contrast and saturation.
CROP, SHIFT, FLIP, COLOUR_JITTER = 0.3, 2.0, 0.5, 0.4
LARGEST_ASPECT = 4 / 3  # of a crop's sides, as is usual for photographs
EDGE = ((1.0, 0.0, -1.0), (2.0, 0.0, -2.0), (1.0, 0.0, -1.0))  # Sobel's operator
BLACKEST = 0.98  # share of an image's edges that are fainter than black
LEAST_EDGE = 0.2  # that is black, so that an image without edges does not become all noise


GREY, LINES = 1, 2  # looks of a row


@dataclass(frozen=True, slots=True, eq=False)
class PhotoDistortion:
    """How far photographs are distorted; hue is left alone, as classes may be told by it.

    Args:
        crop: smallest share of the area that a crop keeps; 1 keeps all.
        shift: how far a crop may reach beyond the edge, in pixels; the image is mirrored there.
        flip: share of rows that become their mirror image.
        colour_jitter: largest relative change of brightness, then contrast, then saturation.
        turn: largest angle by which a crop is turned, in degrees.
        grey: share of rows that lose their colours.
        lines: share of rows of which the edges alone are left, dark on white, as in a drawing.
    """

    crop: float = CROP
    shift: float = SHIFT
    flip: float = FLIP
    colour_jitter: float = COLOUR_JITTER
    turn: float = 0.0
    grey: float = 0.0
    lines: float = 0.0

    def __call__(self, pixels: Tensor, chosen: Tensor, draws: torch.Generator) -> Tensor:
        """Distort the chosen rows of (B, C, S, S); `chosen` is (B,) bool on the CPU."""
        drawn = self.drawn(chosen, pixels.shape[-1], draws)
        return self.applied(pixels, [on_device(value, pixels.device) for value in drawn])

    def drawn(self, chosen: Tensor, side: int, draws: torch.Generator) -> list[Tensor]:
        """All that chance decides, on the CPU: see `digits.Distortion`."""
        rows = chosen.nonzero().squeeze(1)
        theta = self._crops(len(rows), side, draws)  # (R, 2, 3)
        factors = 1 + self.colour_jitter * (2 * torch.rand(len(rows), 3, generator=draws) - 1)
        if not (self.turn or self.grey or self.lines):
            return [rows, theta, factors]
        uniform = torch.rand(len(rows), 2, generator=draws)
        look = (uniform[:, 1] < self.lines).long() * LINES
        look[(uniform[:, 1] >= self.lines) & (uniform[:, 1] < self.lines + self.grey)] = GREY
        return [rows, _turned(theta, math.radians(self.turn) * (2 * uniform[:, 0] - 1)), factors, look]

    def applied(self, pixels: Tensor, drawn: Sequence[Tensor]) -> Tensor:
        """Distort (B, C, S, S) in [0, 1] by what `drawn` gave, on their device; gives the same shape."""
        rows, theta, factors, *more = drawn
        if len(rows) == 0:
            return pixels
        images = pixels[rows]  # (R, C, S, S)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        images = F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
        images = _recoloured(images, factors)
        for look in more:
            images = _with_look(images, look)
        return pixels.index_copy(0, rows, images)

    def _crops(self, count: int, side: int, draws: torch.Generator) -> Tensor:
        """(R, 2, 3) maps from output to input coordinates, as `affine_grid` wants them."""
        uniform = torch.rand(count, 5, generator=draws)
        area = self.crop + (1 - self.crop) * uniform[:, 0]
        # A crop may be as long as wide times LARGEST_ASPECT, but in no direction larger than the image.
        longest = (-area.log()).clamp(min=0, max=math.log(LARGEST_ASPECT))
        aspect = ((2 * uniform[:, 1] - 1) * longest).exp()
        sides = torch.stack([(area * aspect).sqrt(), (area / aspect).sqrt()], dim=1)  # (R, 2) x, y
        centre = (2 * uniform[:, 2:4] - 1) * (1 - sides + 2 * self.shift / side)  # (R, 2) x, y
        mirrored = torch.where(uniform[:, 4] < self.flip, -1.0, 1.0)
        nothing = torch.zeros(count)
        first = torch.stack([mirrored * sides[:, 0], nothing, centre[:, 0]], dim=1)
        second = torch.stack([nothing, sides[:, 1], centre[:, 1]], dim=1)
        return torch.stack([first, second], dim=1)


def _turned(theta: Tensor, angle: Tensor) -> Tensor:
    """(R, 2, 3) maps whose crops are turned about their centre by (R,) radians."""
    cosine, sine = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([cosine, -sine], dim=1), torch.stack([sine, cosine], dim=1)], dim=1)
    return torch.cat([theta[:, :, :2] @ turn, theta[:, :, 2:]], dim=2)


def _with_look(images: Tensor, look: Tensor) -> Tensor:
    """(R, C, S, S), of which rows are grey or lines alone, as (R,) says."""
    kind = look[:, None, None, None]
    grey = _grey(images)
    images = torch.where(kind == GREY, grey, images)
    return torch.where(kind == LINES, _lines(grey), images)


def _lines(grey: Tensor) -> Tensor:
    """(R, 1, S, S) edges of grey images, dark on white."""
    across = grey.new_tensor(EDGE)[None, None]
    padded = F.pad(grey, (1, 1, 1, 1), mode="replicate")
    edges = torch.hypot(F.conv2d(padded, across), F.conv2d(padded, across.transpose(2, 3)))
    black = edges.flatten(1).quantile(BLACKEST, dim=1).clamp(min=LEAST_EDGE)  # (R,)
    return 1 - (edges / black[:, None, None, None]).clamp(max=1)


def _recoloured(images: Tensor, factors: Tensor) -> Tensor:
    """Change brightness, contrast and saturation of (R, C, S, S) by factors (R, 3), and stay in [0, 1]."""
    brightness, contrast, saturation = factors[:, :, None, None, None].unbind(1)  # (R, 1, 1, 1)
    images = (images * brightness).clamp(0, 1)
    mean = _grey(images).mean((2, 3), keepdim=True)  # (R, 1, 1, 1)
    images = (mean + (images - mean) * contrast).clamp(0, 1)
    grey = _grey(images)
    return (grey + (images - grey) * saturation).clamp(0, 1)


def _grey(images: Tensor) -> Tensor:
    """Luminance (R, 1, S, S); grey images as they are."""
    if images.shape[1] == 1:
        return images
    red, green, blue = torch.split(images, 1, dim=1)
    return 0.299 * red + 0.587 * green + 0.114 * blue  # ITU-R BT.601
