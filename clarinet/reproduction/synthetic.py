"""SYN-DIGITS made anew: numbers in many fonts and colours, labelled by the digit in the middle.

The recipe is the one that the DANN paper gives in a sentence: one to three digits, many fonts, random
position, orientation, colours of ground and stroke, blur. No program can fetch the paper's own images; they
are read where they lie. Results on ours carry the word "regenerated".
"""

import json
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.files.arrays import made_by
from clarinet.recipes.errors import DataError
from clarinet.reproduction.glyphs import CELL, DRAWN_IN, GLYPH_HEIGHT, Glyphs

SIDE = 32  # pixels of an image
FINE = 64  # pixels of an image before it is reduced, which smooths edges
CHUNK = 1024  # images drawn at once; part of what a seed means
MOST_DIGITS = 3
MADE = "regenerated, "  # what every result says that rests on images made anew

SMALLEST, LARGEST = 13.0, 27.0  # height of a digit in pixels
STRETCH = 0.25  # relative change of its width
TILT = 20.0  # degrees
JITTER = 0.12  # of the height: the labelled digit stays the one nearest to the middle
NARROWEST = 0.4  # advance of the narrowest digit, in digit heights
LEAST_CONTRAST = 0.4  # distance of ink and ground in the RGB cube of side 1
OUTLINED = 0.3  # share of images whose digits have an outline of a third colour
BLUR = (0.2, 1.2)  # standard deviation in pixels
BLUR_REACH = 3  # pixels


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """What is drawn at random for each of B images; `digits[:, place]` is the label."""

    font: Tensor
    digits: Tensor
    count: Tensor
    place: Tensor
    height: Tensor
    stretch: Tensor
    tilt: Tensor
    shift: Tensor
    colours: Tensor
    outline: Tensor
    blur: Tensor


def synthetic_digits(count: int, fonts: Glyphs, *, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw images in parts; image i is a function of the seed, i and the fonts, whatever the count.

    Args:
        count: images in all.
        fonts: see `glyphs`.
        seed: every draw is a function of it.

    Yields:
        uint8 images (B, 32, 32, 3) and int64 labels (B,), B at most 1,024.
    """
    for start in range(0, count, CHUNK):
        layout = _layout(fonts, generator(seed, f"syn-digits/{start // CHUNK}"))
        labels = layout.digits.gather(1, layout.place[:, None]).squeeze(1)
        wanted = min(CHUNK, count - start)
        yield _drawn(layout, fonts)[:wanted], labels[:wanted]


def _layout(fonts: Glyphs, draws: torch.Generator) -> _Layout:
    uniform = torch.rand(CHUNK, 9, generator=draws).to(DRAWN_IN).T  # (9, B)
    colours = torch.rand(CHUNK, 3, 3, generator=draws).to(DRAWN_IN)  # ground, ink, outline
    ground, ink = colours[:, 0], colours[:, 1]
    faint = (ground - ink).norm(dim=1) < LEAST_CONTRAST
    colours[faint, 1] = (ground[faint] + 0.5) % 1
    height = SMALLEST + (LARGEST - SMALLEST) * uniform[0]
    count = 1 + (uniform[1] * MOST_DIGITS).long()
    return _Layout(
        font=torch.randint(len(fonts.names), (CHUNK,), generator=draws),
        digits=torch.randint(10, (CHUNK, MOST_DIGITS), generator=draws),
        count=count,
        place=(uniform[2] * count).long(),
        height=height,
        stretch=1 + STRETCH * (2 * uniform[3] - 1),
        tilt=math.radians(TILT) * (2 * uniform[4] - 1),
        shift=JITTER * height[:, None] * (2 * uniform[5:7].T - 1),
        colours=colours,
        outline=torch.where(uniform[7] < OUTLINED, 1 + (uniform[7] < OUTLINED / 2).long(), 0),
        blur=BLUR[0] + (BLUR[1] - BLUR[0]) * uniform[8],
    )


def _drawn(layout: _Layout, fonts: Glyphs) -> Tensor:
    """uint8 (B, 32, 32, 3)."""
    ink = _ink(layout, fonts)  # (B, 1, FINE, FINE)
    around = ink.clone()
    for pixels in (1, 2):
        rows = layout.outline == pixels
        around[rows] = F.max_pool2d(ink[rows], 2 * pixels + 1, stride=1, padding=pixels)
    ground, stroke, outline = layout.colours[:, :, :, None, None].unbind(1)  # (B, 3, 1, 1) each
    image = ground + around * (outline - ground)
    image = F.avg_pool2d(image + ink * (stroke - image), FINE // SIDE)  # (B, 3, 32, 32)
    image = _blurred(_blurred(image, layout.blur, 2), layout.blur, 3)
    return (image * 255).round().clamp(0, 255).to(torch.uint8).movedim(1, 3).contiguous()


def _ink(layout: _Layout, fonts: Glyphs) -> Tensor:
    """(B, 1, FINE, FINE) in [0, 1]: the digits of each number, side by side along their tilted line."""
    ink = torch.zeros(CHUNK, 1, FINE, FINE, dtype=DRAWN_IN)
    offsets = _offsets(layout, fonts)
    for place in range(MOST_DIGITS):
        rows = (layout.count > place).nonzero().squeeze(1)
        masks = fonts.masks[layout.font[rows], layout.digits[rows, place]][:, None]  # (R, 1, CELL, CELL)
        theta = _maps(layout, offsets[:, place])[rows]
        grid = F.affine_grid(theta, [len(rows), 1, FINE, FINE], align_corners=False)
        ink[rows] = torch.maximum(ink[rows], F.grid_sample(masks, grid, align_corners=False))
    return ink


def _offsets(layout: _Layout, fonts: Glyphs) -> Tensor:
    """(B, 3): each digit's distance along the line from the labelled one, in unstretched digit heights."""
    advances = fonts.advances[layout.font[:, None], layout.digits].clamp(min=NARROWEST)  # (B, 3)
    steps = (advances[:, 1:] + advances[:, :-1]) / 2
    centres = F.pad(steps.cumsum(1), (1, 0))  # (B, 3)
    return centres - centres.gather(1, layout.place[:, None])


def _maps(layout: _Layout, offset: Tensor) -> Tensor:
    """(B, 2, 3) maps from an image's coordinates to a glyph's, as `affine_grid` wants them."""
    cosine, sine = layout.tilt.cos(), layout.tilt.sin()
    step = offset * layout.stretch * layout.height  # pixels along the line
    x, y = layout.shift[:, 0] + cosine * step, layout.shift[:, 1] + sine * step  # the digit's centre
    scale = SIDE / CELL * GLYPH_HEIGHT / layout.height
    across, down = scale / layout.stretch, scale
    half = SIDE / 2
    first = torch.stack([cosine * across, sine * across, -(cosine * x + sine * y) * across / half], dim=1)
    second = torch.stack([-sine * down, cosine * down, (sine * x - cosine * y) * down / half], dim=1)
    return torch.stack([first, second], dim=1)


def _blurred(images: Tensor, deviation: Tensor, axis: int) -> Tensor:
    """A Gaussian blur of (B, 3, 32, 32) along one axis, with a deviation for each image."""
    away = torch.arange(-BLUR_REACH, BLUR_REACH + 1)
    weights = torch.exp(-((away / deviation[:, None]) ** 2) / 2)  # (B, 7)
    weights = (weights / weights.sum(1, keepdim=True))[:, :, None, None, None]
    margin = (0, 0, BLUR_REACH, BLUR_REACH) if axis == 2 else (BLUR_REACH, BLUR_REACH, 0, 0)  # noqa: PLR2004
    wide = F.pad(images, margin, mode="replicate")
    return sum(
        (weights[:, i] * wide.narrow(axis, i, SIDE) for i in range(2 * BLUR_REACH + 1)),
        start=torch.zeros_like(images),
    )


def write_synthetic_digits(path: Path, count: int, fonts: Glyphs, *, seed: int) -> None:
    """Write `count` images as an npz with x_train and y_train, whose zip comment says how it was made.

    One part at a time is in memory. The same arguments give the same bytes.

    Raises:
        DataError: no image was asked for, or the file cannot be written.
    """
    if count < 1:
        raise DataError(f"{count} images were asked for; at least 1 is needed")
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    labels = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            made = f"{MADE}seed {seed}, {len(fonts.names)} fonts"
            archive.comment = json.dumps({"made": made}).encode()
            with archive.open("x_train.npy", "w", force_zip64=True) as member:
                _write_header(member, "|u1", (count, SIDE, SIDE, 3))
                for images, part in synthetic_digits(count, fonts, seed=seed):
                    member.write(images.numpy().data)
                    labels.append(part)
            with archive.open("y_train.npy", "w") as member:
                _write_header(member, "|u1", (count,))
                member.write(torch.cat(labels).to(torch.uint8).numpy().data)
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _write_header(member: IO[bytes], kind: str, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(member, {"descr": kind, "fortran_order": False, "shape": shape})


def recipe_of(path: Path) -> str | None:
    """How the images of an npz were made, if its zip comment says it in a line.

    Files come from anywhere: what is no short line of text says nothing.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            said = made_by(archive.comment)
    except (OSError, zipfile.BadZipFile):
        return None
    return None if said is None else MADE + said.removeprefix(MADE)
