"""Distortions of digits: mild affine maps, strokes changed and added, and blending onto the target's texture.

All of them take pixels (B, C, S, S) in [0, 1] and distort the rows they are told to. What chance decides is
drawn apart from what is done with it: the one by the CPU, the other on the device.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.feeding import Pixels, parts, taken
from clarinet.data.images import background
from clarinet.data.own_distortion import OwnDistortion
from clarinet.data.photographs import PhotoDistortion
from clarinet.data.seeding import on_device
from clarinet.networks.own import Transform
from clarinet.recipes.config import TrainConfig

CHUNK = 4096  # images measured at once
LEAST_CONTRAST = 0.3  # of a channel that is recoloured
STROKE_OFFSET = 0.3  # largest distance of an extra stroke's middle from the image's, in sides, along y and x
STROKE_LENGTH = (0.15, 0.4)  # in sides of the image
STROKE_WIDTH = (0.05, 0.115)  # likewise: about the thickness of pens
# Mild enough that a digit stays what it is: degrees, relative change of size, pixels.
ROTATION, SCALE, SHIFT = 10.0, 0.15, 2.0
LARGEST_MATCH = 1.6  # a ratio of ink spreads beyond this says that the statistic, not the size, differs


@dataclass(frozen=True, slots=True, eq=False)
class Distortion:
    """How far images are distorted; `centre` is the mean scale, (y, x).

    Args:
        rotation: largest rotation in degrees.
        scale: largest relative change of size, y and x apart.
        shift: largest shift in pixels.
        stroke: share of rows whose strokes change.
        extra_stroke: share of rows that get one more, short and straight, anywhere across them: writers bar
            their sevens and cross their zeros, and the source's may not.
        centre: scale about which sizes are drawn; (1, 1) keeps them.
    """

    rotation: float
    scale: float
    shift: float
    stroke: float
    extra_stroke: float = 0.0
    centre: tuple[float, float] = (1.0, 1.0)

    def __call__(self, pixels: Tensor, chosen: Tensor, draws: torch.Generator) -> Tensor:
        """Distort the chosen rows of (B, C, S, S); `chosen` is (B,) bool on the CPU."""
        drawn = self.drawn(chosen, pixels.shape[-1], draws)
        return self.applied(pixels, [on_device(value, pixels.device) for value in drawn])

    def drawn(self, chosen: Tensor, side: int, draws: torch.Generator) -> list[Tensor]:
        """All that chance decides, on the CPU: the chosen rows (R,) int64, and (R, ...) values of each row.

        Args:
            chosen: (B,) bool on the CPU.
            side: S, height and width of the images.
            draws: CPU generator.
        """
        rows = chosen.nonzero().squeeze(1)
        count = len(rows)
        theta = self._maps(count, side, draws)  # (R, 2, 3)
        thicker = torch.rand(count, generator=draws)
        changed = torch.rand(count, generator=draws) < self.stroke
        extra = [torch.rand(count, 6, generator=draws)] if self.extra_stroke > 0 else []
        return [rows, theta, thicker, changed, *extra]

    def applied(self, pixels: Tensor, drawn: Sequence[Tensor]) -> Tensor:
        """Distort (B, C, S, S) in [0, 1] by what `drawn` gave, on their device; gives the same shape."""
        rows, theta, thicker, changed, *extra = drawn
        if len(rows) == 0:
            return pixels
        images = pixels[rows]  # (R, C, S, S)
        ground = background(images)  # (R, C, 1, 1)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        images = F.grid_sample(images - ground, grid, align_corners=False) + ground
        images = _stroked(images, thicker, changed)
        if extra:
            images = _with_extra_stroke(images, ground, extra[0], self.extra_stroke)
        return pixels.index_copy(0, rows, images)

    def _maps(self, count: int, side: int, draws: torch.Generator) -> Tensor:
        """(R, 2, 3) maps from output to input coordinates, as `affine_grid` wants them."""
        uniform = torch.rand(count, 6, generator=draws) * 2 - 1
        angle = uniform[:, 0] * math.radians(self.rotation)
        shear = uniform[:, 1] * math.radians(self.rotation)
        scale_y = self.centre[0] * (1 + self.scale * uniform[:, 2])
        scale_x = self.centre[1] * (1 + self.scale * uniform[:, 3])
        shift_x, shift_y = (uniform[:, 4:] * (2 * self.shift / side)).unbind(1)
        first = torch.stack([angle.cos() / scale_x, (-angle.sin() + shear.sin()) / scale_x, shift_x], dim=1)
        second = torch.stack([angle.sin() / scale_y, angle.cos() / scale_y, shift_y], dim=1)
        return torch.stack([first, second], dim=1)


def distortion_of(
    config: TrainConfig, centre: tuple[float, float] = (1.0, 1.0), *, own: Transform | None = None
) -> Distortion | PhotoDistortion | OwnDistortion:
    """The distortion a config asks for, or a caller's own; `centre` is for digits, as in Distortion."""
    if own is not None:
        return OwnDistortion(own)
    if config.distortion.distortion_kind == "photographs":
        return PhotoDistortion()
    strokes = config.distortion
    return Distortion(ROTATION, SCALE, SHIFT, strokes.changed_stroke, strokes.extra_stroke, centre)


def ink_spread(images: Pixels) -> tuple[float, float]:
    """Mean standard deviation of the ink's position, (y, x) in pixels; ink is what is not background.

    Args:
        images: uint8 (N, C, S, S) of grey images, whose channels are alike, N >= 1.
    """
    sums = [
        sum(spreads) for spreads in zip(*(_ink_spreads(part) for part in parts(images, CHUNK)), strict=True)
    ]
    return sums[0] / len(images), sums[1] / len(images)


def _ink_spreads(images: Tensor) -> tuple[float, float]:
    """The sums over images of what `ink_spread` gives the means of."""
    pixels = images[:, :1].float() / 255
    ink = (pixels - background(pixels)).abs().squeeze(1)  # (N, S, S)
    total = ink.sum((1, 2)).clamp(min=1e-6)
    place = torch.arange(ink.shape[1], device=ink.device, dtype=ink.dtype)

    def spread(profile: Tensor) -> float:
        mean = (profile * place).sum(1) / total
        variance = (profile * (place - mean[:, None]).square()).sum(1) / total
        return float(variance.sqrt().double().sum())

    return spread(ink.sum(2)), spread(ink.sum(1))


def moment_match(source: Pixels, target: Pixels) -> tuple[float, float]:
    """The scale (y, x) that brings the source's ink to the target's mean extent.

    It is at most LARGEST_MATCH, and at least 1 / LARGEST_MATCH.

    Args:
        source, target: uint8 (N, C, S, S) of grey images, whose channels are alike, N >= 1 of its own.
    """
    ratios = (b / max(a, 1e-6) for a, b in zip(ink_spread(source), ink_spread(target), strict=True))
    y, x = (min(max(ratio, 1 / LARGEST_MATCH), LARGEST_MATCH) for ratio in ratios)
    return y, x


def _stroked(images: Tensor, thicker: Tensor, changed: Tensor) -> Tensor:
    """Mix images with their dilation (thicker > 1/2) or erosion, by up to all of it."""
    grown = _dilated(images)
    shrunk = -_dilated(-images)
    amount = ((thicker * 2 - 1) * changed)[:, None, None, None]
    return images + amount.clamp(min=0) * (grown - images) - amount.clamp(max=0) * (shrunk - images)


def _with_extra_stroke(images: Tensor, ground: Tensor, draws: Tensor, share: float) -> Tensor:
    """Draw a straight stroke with round ends, in the image's own ink, across a share of the images.

    Args:
        images: (R, C, S, S).
        ground: (R, C, 1, 1) of each; the ink is what is furthest from it.
        draws: (R, 6) in [0, 1): place (y, x), angle, length and width, and whether there is one.
        share: how many get one, on average.
    """
    count, channels, side, _ = images.shape
    furthest = (images - ground).abs().sum(1).flatten(1).argmax(1)  # (R,) pixels
    ink = images.flatten(2).gather(2, furthest[:, None, None].expand(count, channels, 1))[..., None]
    drawn = draws[..., None, None]  # (R, 6, 1, 1)
    place = (torch.arange(side, device=images.device) + 0.5) / side - 0.5  # (S,), in sides from the middle
    y = place[:, None] - STROKE_OFFSET * (2 * drawn[:, 0] - 1)  # (R, S, 1)
    x = place[None, :] - STROKE_OFFSET * (2 * drawn[:, 1] - 1)  # (R, 1, S)
    angle = math.pi * drawn[:, 2]
    half_length, half_width = (
        torch.lerp(torch.full_like(share_of, low), torch.full_like(share_of, high), share_of) / 2
        for share_of, (low, high) in ((drawn[:, 3], STROKE_LENGTH), (drawn[:, 4], STROKE_WIDTH))
    )
    along = x * angle.cos() + y * angle.sin()  # (R, S, S)
    across = y * angle.cos() - x * angle.sin()
    distance = torch.hypot((along.abs() - half_length).clamp(min=0), across)
    covered = ((half_width - distance) * side + 0.5).clamp(0, 1)  # of each pixel, about
    covered = covered * (drawn[:, 5] < share)
    return torch.lerp(images, ink, covered[:, None])


def _dilated(images: Tensor) -> Tensor:
    """The largest value in each 3x3 neighbourhood, row by row and then column by column.

    Equal to max_pool2d with stride 1, which takes twenty times as long on the CPU for one channel.
    """
    wide = F.pad(images, (1, 1, 0, 0), mode="replicate")
    rows = torch.maximum(torch.maximum(wide[..., :-2], wide[..., 1:-1]), wide[..., 2:])
    high = F.pad(rows, (0, 0, 1, 1), mode="replicate")
    return torch.maximum(torch.maximum(high[..., :-2, :], high[..., 1:-1, :]), high[..., 2:, :])


def drawn_factors(chosen: Tensor, channels: int, draws: torch.Generator) -> Tensor:
    """(B, C, 1, 1) factors for `recoloured`, on the CPU.

    What colours ink and ground have, and which of them is lighter, says nothing of a digit. Every other row,
    on average, takes one factor for all its channels.

    Args:
        chosen: (B,) bool on the CPU; other rows keep their colours.
        channels: C.
        draws: CPU generator.
    """
    count = len(chosen)
    factors = torch.rand(count, channels, generator=draws) * 2 - 1
    alike = torch.rand(count, 1, generator=draws) < 1 / 2
    factors = torch.where(alike, factors[:, :1], factors)
    factors = factors.sign() * (LEAST_CONTRAST + (1 - LEAST_CONTRAST) * factors.abs())
    return torch.where(chosen[:, None], factors, 1.0)[:, :, None, None]


def recoloured(pixels: Tensor, factors: Tensor) -> Tensor:
    """Scale each channel of (B, C, S, S) about mid-grey by a factor of either sign, (B, C, 1, 1)."""
    return 0.5 + (pixels - 0.5) * factors


def drawn_grounds(chosen: Tensor, target: Pixels, side: int, draws: torch.Generator) -> list[Tensor]:
    """What `blended` takes beside the pixels.

    Args:
        chosen: (B,) bool on the CPU; other rows keep their ground.
        target: uint8 (M, C, S, S), from which grounds are drawn.
        side: S.
        draws: CPU generator.

    Returns:
        Six tensors. First `chosen`, (B,) bool, and images of the target, uint8 (B, C, S, S). Then the rows
        and the columns of their corner, (S // 3,) each. Then their rows and columns as they are rolled, (S,)
        each.
    """
    picks = torch.randint(len(target), (len(chosen),), generator=draws)
    third = side // 3
    corner = (side - third) * torch.randint(2, (2,), generator=draws)
    roll = side // 2 + torch.randint(-side // 7, side // 7 + 1, (2,), generator=draws)
    corners = [start + torch.arange(third) for start in corner]
    rolled = [(torch.arange(side) - by) % side for by in roll]
    return [chosen, taken(target, picks), *corners, *rolled]


def blended(pixels: Tensor, drawn: Sequence[Tensor]) -> Tensor:
    """Put rows onto grounds from the target, as |ground - image|.

    Grounds should show no digit, or two lie on top of each other and only one is the answer. Half of the
    grounds are target images rolled by about half their side, which leaves the parts of their digit in the
    corners. The other half are corners of target images, enlarged.

    Args:
        pixels: (B, C, S, S) in [0, 1].
        drawn: what `drawn_grounds` returned, on the device of the pixels.

    Returns:
        (B, C, S, S) in [0, 1].
    """
    chosen, images, corner_y, corner_x, rolled_y, rolled_x = drawn
    grounds = images.float() / 255  # (B, C, S, S)
    corner = grounds.index_select(2, corner_y).index_select(3, corner_x)
    enlarged = F.interpolate(corner, size=pixels.shape[2:], mode="bilinear")
    rolled = grounds.index_select(2, rolled_y).index_select(3, rolled_x)
    even = (torch.arange(len(pixels), device=pixels.device) % 2 == 0)[:, None, None, None]
    ground = torch.where(even, enlarged, rolled)
    return torch.where(chosen[:, None, None, None], (ground - pixels).abs(), pixels)
