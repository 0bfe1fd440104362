"""Digits as masks: fonts drawn from strokes, which need no font file, and fonts from files."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.recipes.errors import DataError

CELL = 64  # pixels of a glyph's square mask
GLYPH_HEIGHT = 44  # pixels of a digit in it; the rest is margin
DRAWN_FONTS = 60
STROKE_POINTS = 40  # the pen's positions along a stroke
SPACING = 0.1  # between two digits, in digit heights
# Processors differ in the last bits of a power or a sine. Bytes rounded from float64 do not show it.
DRAWN_IN = torch.float64
FONT_FILES = (".ttf", ".otf")


@dataclass(frozen=True, slots=True, eq=False)
class Glyphs:
    """Ten digits in each of several fonts.

    Args:
        masks: (F, 10, CELL, CELL) float64, ink in [0, 1], the digit's box in the middle.
        advances: (F, 10) float64, from one digit to an equal next one, in digit heights.
        names: F fonts.
    """

    masks: Tensor
    advances: Tensor
    names: tuple[str, ...]


def glyphs(folder: Path | None = None) -> Glyphs:
    """The fonts drawn here, the one that Pillow carries, and those of a folder.

    Raises:
        DataError: the folder holds no font, or one that cannot be read.
    """
    drawn = [_drawn_font(number) for number in range(DRAWN_FONTS)]
    names = [f"drawn {number}" for number in range(DRAWN_FONTS)]
    for weight in (0, 1, 3):
        drawn.append(_typeset(_sized(ImageFont.load_default(GLYPH_HEIGHT)), weight))
        names.append(f"Aileron, {weight} px bolder")
    for path in _font_files(folder) if folder else ():
        drawn.append(_typeset(_from_file(path), 0))
        names.append(path.name)
    masks = torch.stack(drawn)  # (F, 10, CELL, CELL)
    columns = (masks > 0.5).any(2)  # noqa: PLR2004 - half covered; (F, 10, CELL)
    return Glyphs(masks, columns.sum(2).to(DRAWN_IN) / GLYPH_HEIGHT + SPACING, tuple(names))


def _font_files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in FONT_FILES)
    if not found:
        raise DataError(f"{folder} holds no font file ({', '.join(FONT_FILES)})")
    return found


def _from_file(path: Path) -> ImageFont.FreeTypeFont:
    try:
        return _sized(ImageFont.truetype(path, GLYPH_HEIGHT))
    except OSError as error:
        raise DataError(f"{path} cannot be read as a font: {error}") from error


def _sized(font: "ImageFont.FreeTypeFont | ImageFont.ImageFont") -> ImageFont.FreeTypeFont:
    """The font in the size that makes an 8 as high as a glyph should be."""
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise DataError("this Pillow lacks FreeType, which draws letters; install Pillow from its wheel")
    _, top, _, bottom = font.getbbox("8")
    if bottom <= top:
        raise DataError(f"the font {font.getname()[0]} has no digits")
    return font.font_variant(size=GLYPH_HEIGHT * font.size / (bottom - top))


def _typeset(font: ImageFont.FreeTypeFont, weight: int) -> Tensor:
    """(10, CELL, CELL) masks of a font, its strokes `weight` pixels wider on either side."""
    masks = []
    for digit in range(10):
        left, top, right, bottom = font.getbbox(str(digit), stroke_width=weight)
        canvas = Image.new("L", (CELL, CELL))
        place = ((CELL - right - left) / 2, (CELL - bottom - top) / 2)
        ImageDraw.Draw(canvas).text(place, str(digit), fill=255, font=font, stroke_width=weight)
        masks.append(torch.frombuffer(bytearray(canvas.tobytes()), dtype=torch.uint8).reshape(CELL, CELL))
    return torch.stack(masks).to(DRAWN_IN) / 255


def _drawn_font(number: int) -> Tensor:
    """(10, CELL, CELL) masks of one font: a pen of some shape drawn along the digits' skeletons."""
    draws = torch.rand(8, generator=generator(number, "glyphs/font"))
    width, squareness, slant, weight, contrast, tip = draws[:6].tolist()
    shapes = torch.randint(0, 6, (10,), generator=generator(number, "glyphs/shapes")).tolist()
    axis = (torch.arange(CELL, dtype=DRAWN_IN) + 0.5 - CELL / 2) / GLYPH_HEIGHT  # in digit heights
    pen = 0.04 + (0.04 + 0.035 * width) * weight  # half its width; narrow digits would close
    flat = pen * (1 - 0.6 * contrast**2)  # half its height: printed digits have thinner horizontals
    size = torch.tensor([pen, flat], dtype=DRAWN_IN)[:, None, None]
    exponent = 2 + 2 * squareness**3
    masks = []
    for digit in range(10):
        points = torch.cat(_skeleton(digit, shapes[digit], exponent))  # (P, 2) in -1..1
        points = points * torch.tensor([0.2 + 0.14 * width - pen / 2, 0.5 - flat], dtype=DRAWN_IN)
        points[:, 0] -= 0.3 * slant**2 * points[:, 1]
        points -= (points.amin(0) + points.amax(0)) / 2
        # A round pen has exponent 2, a broad one nearly square corners.
        corner = 2 + 6 * tip**2
        across, down = ((axis[:, None] - points.T[:, None]).abs() / size) ** corner  # (CELL, P) each
        distance = (down[:, None] + across).amin(2) ** (1 / corner)  # (CELL, CELL), 1 on the pen's edge
        masks.append(((1 - distance) * flat * GLYPH_HEIGHT + 0.5).clamp(0, 1))
    return torch.stack(masks)


def _skeleton(digit: int, shape: int, exponent: float) -> list[Tensor]:  # noqa: PLR0911 - one for each digit
    """A digit's strokes, (P, 2) points (x, y) each, y downwards, in the square -1..1.

    Args:
        digit: 0 to 9.
        shape: 0 to 5; digits that are written in several ways take one of them.
        exponent: of the superellipse that rounds are made of; 2 makes ellipses.
    """

    arc = partial(_arc, exponent)
    match digit, shape % 3:
        case 0, _:
            return [arc((0, 0), (1, 1), 0, 360)]
        case 1, variant:
            flag = [_line(-0.7, -0.5, 0.05, -1)] if variant else []
            foot = [_line(-0.6, 1, 0.7, 1)] if variant == 2 else []  # noqa: PLR2004 - one of three
            return [_line(0.05, -1, 0.05, 1), *flag, *foot]
        case 2, _:
            top = arc((0, -0.42), (0.95, 0.58), 190, 395)
            x, y = top[-1].tolist()
            return [top, _line(x, y, -1, 1), _line(-1, 1, 1, 1)]
        case 3, 0:
            flat = [_line(-0.85, -1, 0.85, -1), _line(0.85, -1, 0, -0.12)]
            return [*flat, arc((0, 0.44), (1, 0.56), 270, 515)]
        case 3, _:
            return [arc((-0.05, -0.5), (0.85, 0.5), 200, 450), arc((-0.05, 0.47), (1, 0.53), 270, 515)]
        case 4, _ if shape == 0:
            return [_line(-0.5, -1, -0.95, 0.35), _line(-0.95, 0.35, 1, 0.35), _line(0.4, -0.5, 0.4, 1)]
        case 4, _:
            return [_line(0.45, -1, -1, 0.42), _line(-1, 0.42, 1, 0.42), _line(0.45, -1, 0.45, 1)]
        case 5, _:
            top = _line(0.85, -1, -0.75, -1)
            return [top, _line(-0.75, -1, -0.85, 0), arc((0, 0.38), (1, 0.62), 215, 500)]
        case 7, variant:
            bar = [_line(-0.45, 0, 0.7, 0)] if shape == 0 else []
            tick = [_line(-1, -1, -1, -0.65)] if variant == 2 else []  # noqa: PLR2004 - one of three
            return [_line(-1, -1, 1, -1), _line(1, -1, -0.35, 1), *bar, *tick]
        case 8, _:
            return [arc((0, -0.5), (0.84, 0.5), 0, 360), arc((0, 0.48), (1, 0.52), 0, 360)]
        case _, variant:
            stem = arc((0.55, 0.42), (1.55, 1.42), 180, 264) if variant else _line(-0.92, 0.2, 0.35, -1)
            six = [arc((0, 0.4), (1, 0.6), 0, 360), stem]
            return six if digit == 6 else [-stroke for stroke in six]  # noqa: PLR2004 - a 9 is one turned


def _arc(
    exponent: float, centre: tuple[float, float], radii: tuple[float, float], start: float, end: float
) -> Tensor:
    """Part of a superellipse from one angle to another, in degrees, clockwise from the right."""
    angle = torch.linspace(math.radians(start), math.radians(end), 2 * STROKE_POINTS, dtype=DRAWN_IN)
    sides = torch.stack([angle.cos(), angle.sin()], dim=1)  # (P, 2)
    # By its radius, not by powers of sine and cosine: those leave gaps where they cross zero.
    length = sides.abs().pow(exponent).sum(1, keepdim=True).pow(-1 / exponent)
    return torch.tensor(centre, dtype=DRAWN_IN) + length * sides * torch.tensor(radii, dtype=DRAWN_IN)


def _line(x0: float, y0: float, x1: float, y1: float) -> Tensor:
    along = torch.linspace(0, 1, STROKE_POINTS, dtype=DRAWN_IN)[:, None]  # (P, 1)
    ends = torch.tensor([[x0, y0], [x1, y1]], dtype=DRAWN_IN)
    return ends[0] * (1 - along) + ends[1] * along
