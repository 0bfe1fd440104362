"""Image files as people see them: upright, transparent parts on white, in eight bits, in sRGB."""

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, UnidentifiedImageError

from clarinet.files.refusal import Refused

GREY_MODES = frozenset({"1", "L", "LA", "La"})
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
# What Pillow raises, of broken metadata and profiles. ImportError: a Pillow without colour management.
_BROKEN = (OSError, SyntaxError, ValueError, LookupError, TypeError, struct.error, ImportError)
BAND_PIXELS = 2**20  # of a large picture that are brought to their last mode at once
_PROFILES = 4  # of cameras and programs, kept ready; the tables of one take up to some megabytes


@contextmanager
def opened(
    file: Path | IO[bytes], name: str | Path, *, formats: tuple[str, ...] | None = None
) -> Iterator[Image.Image]:
    """An image file, of which only the head was read; what fails while it is used is the file's fault.

    Args:
        file: where it lies, or its bytes.
        name: what a refusal calls it.
        formats: that are taken, as Pillow calls them; None takes all that it reads.

    Raises:
        Refused: no such image, a broken one, or one of floating-point numbers, which have no known range.
    """
    try:
        with Image.open(file, formats=formats) as image:
            _require_range(image, name)
            yield image
    except (Refused, MemoryError):
        raise
    except UnidentifiedImageError as error:
        known = (
            f"a {', '.join(formats[:-1])} or {formats[-1]} image" if formats else "an image of a known kind"
        )
        raise Refused(name, f"is not {known}") from error
    except Image.DecompressionBombError as error:
        raise Refused(name, "has more pixels than any picture; Pillow refuses to decode it") from error
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise Refused(name, f"cannot be read: {error.strerror}") from error
        # Pillow lets through whatever its parsers trip over: OSError, SyntaxError, struct.error, IndexError.
        raise Refused(name, "is cut short or damaged and cannot be decoded") from error


def as_seen(image: Image.Image, *, longest: int | None = None) -> Image.Image:
    """The first picture of a file as people see it: mode L or RGB, nothing but pixels.

    It is turned as its camera said, if that can be read. Transparent parts become white, palettes and CMYK
    become RGB, 16-bit grey becomes 8-bit. A colour profile that can be read is applied. The picture is made
    smaller before it is copied.

    Args:
        image: as `opened` gives it.
        longest: pixels of its longest side; None keeps its size.
    """
    picture = image
    if longest is not None:
        picture = _plain_mode(image)
        picture.thumbnail((longest, longest))  # a JPEG decodes fewer pixels
    image.load()  # an error here is the picture's, not its metadata's
    picture = _upright(_in_bands(picture, image.info.get("icc_profile")), image)
    picture.info.clear()  # a writer would keep a colour profile found there
    return picture


def decoded(path: Path, *, side: int | None, colour: bool | None = None) -> NDArray[np.uint8]:
    """The pixels of an image file, as `as_seen` shows it.

    Args:
        path: of any format that Pillow reads.
        side: pixels of the square that it becomes, smoothed; None keeps its size.
        colour: RGB, or else luminance; None takes what the file has.

    Returns:
        (H, W) or (H, W, 3).

    Raises:
        Refused: as `opened` does.
    """
    with opened(path, path) as image:
        if side is not None:
            image.draft(None, (2 * side, 2 * side))  # JPEG: decode fewer pixels
        picture = as_seen(image)
    del image  # a large one takes as much memory as what was made of it
    if colour is False and picture.mode != "L":
        picture = picture.convert("L")
    if side is not None and picture.size != (side, side):
        picture = picture.resize((side, side), Image.Resampling.BILINEAR)
    if colour and picture.mode != "RGB":  # now that it is small: its channels are alike
        picture = picture.convert("RGB")
    return np.asarray(picture)


def is_grey(path: Path) -> bool:
    """Whether `decoded` would make (H, W) of an image file; only its head is read.

    Raises:
        Refused: as `opened` does.
    """
    with opened(path, path) as image:
        return image.mode in GREY_MODES or image.mode.startswith("I")


def _require_range(image: Image.Image, name: str | Path) -> None:
    if image.mode == "F":
        raise Refused(name, "has floating-point pixels, of no known range; save it with 8 or 16 bits")


def _in_bands(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """A picture in mode L or RGB; of a large one some rows at once, or it would be in memory many times."""
    width, height = picture.size
    rows = max(1, BAND_PIXELS // width)
    if rows >= height:
        return _in_plain_colours(picture, profile)
    made: Image.Image | None = None
    for top in range(0, height, rows):
        band = picture.crop((0, top, width, min(top + rows, height)))
        band = _in_plain_colours(band, profile)
        made = made or Image.new(band.mode, picture.size)
        made.paste(band, (0, top))
    assert made is not None
    return made


def _in_plain_colours(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """A copy in mode L or RGB: in 8 bits, on white, in the colours that a screen shows."""
    picture = _plain_mode(picture)
    is_grey = picture.mode in GREY_MODES
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        picture = picture.convert("L" if is_grey else "RGB")
    return _in_srgb(picture, profile).convert("L" if is_grey else "RGB")


def _plain_mode(image: Image.Image) -> Image.Image:
    """Itself, or in 8 bits without a palette."""
    if image.mode.startswith("I"):
        return Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in {"P", "PA"}:
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    return image.convert("L") if image.mode == "1" else image


def _eight_bits(deep: NDArray[np.generic]) -> NDArray[np.uint8]:
    """(H, W) of 16-bit grey: v / 257 to the nearest, by whole numbers."""
    values = deep.clip(0, 2**16 - 1).astype(np.uint32)
    return ((values * 255 + 32_895) >> 16).astype(np.uint8)


def _upright(picture: Image.Image, image: Image.Image) -> Image.Image:
    """Turned as its file's camera said; as it is stored where that cannot be read.

    Pillow's own `exif_transpose` also writes all that cameras say anew, and fails where it cannot.
    """
    try:
        turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
    except _BROKEN:
        return picture
    return picture if turn is None else picture.transpose(turn)


def _in_srgb(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """In the colours that a screen shows; as it is stored without a profile that can be read."""
    if not profile:
        return picture
    try:
        transform = _transform(profile, picture.mode)
        return picture if transform is None else transform.apply(picture)
    except (ImageCms.PyCMSError, *_BROKEN):
        return picture


@lru_cache(_PROFILES)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """From a profile's colours to those of sRGB, in mode RGB; None where they are those."""
    own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if ImageCms.getProfileDescription(own).startswith("sRGB"):
        return None  # rounding would change pixels that need no change
    return ImageCms.buildTransform(own, ImageCms.createProfile("sRGB"), mode, "RGB")
