"""Image files as people see them: upright, transparent parts on white, in eight bits."""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from clarinet.recipes.errors import DataError

GREY_MODES = frozenset({"1", "L", "LA", "La"})
STEPS_OF_16_BITS = 257  # in one step of 8 bits
ORIENTATION = 0x0112  # EXIF's tag
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# What Pillow raises on other bytes, on broken ones and on ones that would fill the memory.
_UNDECODABLE = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,
    LookupError,
    TypeError,
    struct.error,
    Image.DecompressionBombError,
)


def decoded(path: Path, *, side: int | None, colour: bool | None = None) -> NDArray[np.uint8]:
    """The pixels of an image file, as the application shows it to people.

    It is turned as its camera said, if that can be read; transparent parts become white, 16-bit grey becomes
    8-bit; of several pictures in a file the first counts.

    Args:
        path: of any format that Pillow reads.
        side: pixels of the square that it becomes, smoothed; None keeps its size.
        colour: RGB, or else luminance; None takes what the file has.

    Returns:
        (H, W) or (H, W, 3).

    Raises:
        DataError: no image, a broken one, or one of floating-point numbers, which have no known range.
    """
    try:
        with Image.open(path) as opened:
            if side is not None:
                opened.draft(None, (2 * side, 2 * side))  # JPEG: decode fewer pixels
            picture = _plain(_upright(opened))
    except _UNDECODABLE as error:
        raise DataError(f"{path} cannot be read as an image: {error}") from error
    if colour is not None:
        picture = picture.convert("RGB" if colour else "L")
    if side is not None and picture.size != (side, side):
        picture = picture.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(picture)


def is_grey(path: Path) -> bool:
    """Whether `decoded` would make (H, W) of an image file; only its head is read.

    Raises:
        DataError: no image, or one of floating-point numbers.
    """
    try:
        with Image.open(path) as opened:
            _require_range(opened)
            return opened.mode in GREY_MODES or opened.mode.startswith("I")
    except _UNDECODABLE as error:
        raise DataError(f"{path} cannot be read as an image: {error}") from error


def _upright(picture: Image.Image) -> Image.Image:
    """Turned as its camera said; as it is stored where that cannot be read.

    Pillow's own `exif_transpose` also writes all that cameras say anew, and fails where it cannot.
    """
    picture.load()  # an error here is the picture's, not its metadata's
    try:
        turn = TURNS.get(picture.getexif().get(ORIENTATION, 1))
    except _UNDECODABLE:
        return picture
    return picture if turn is None else picture.transpose(turn)


def _require_range(picture: Image.Image) -> None:
    if picture.mode == "F":
        raise ValueError("its pixels are floating-point numbers; save it with 8 or 16 bits")


def _plain(picture: Image.Image) -> Image.Image:
    """Mode L or RGB, without transparency."""
    _require_range(picture)
    if picture.mode.startswith("I"):
        levels = np.asarray(picture).clip(0, 2**16 - 1) / STEPS_OF_16_BITS
        return Image.fromarray(levels.round().astype(np.uint8))
    is_grey = picture.mode in GREY_MODES
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return picture.convert("L" if is_grey else "RGB")
