"""Image files as people see them: upright, transparent parts on white, in eight bits, in sRGB."""

import enum
import io
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, UnidentifiedImageError

from clarinet.files.depths import bands, has_deep_planes, in_eight_bits, is_deep_grey
from clarinet.files.kinds import HEAD_BYTES, RAW_ENDINGS, ending_of
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
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_PROFILES = 4  # of cameras and programs, kept ready; the tables of one take up to some megabytes


class Change(enum.StrEnum):
    """What becomes of a picture that is not only decoded."""

    TURNED = "turned upright, as the camera said"
    WHITENED = "put on white, where it was transparent"
    FROM_CMYK = "brought from the colours of print (CMYK) to RGB"
    IN_SRGB = "converted from its colour profile to sRGB"
    FROM_16_BITS = "brought from 16 bits a channel to 8"
    FROM_12_BITS = "brought from 12 bits a channel to 8"
    FROM_8_BITS = "taken for 8 bits a channel, in more that its values do not use"
    FROM_MORE_BITS = "brought from more than 16 bits a channel to 8, by the range of its values"
    SMALLER = "made smaller"
    FIRST_ALONE = "taken as the first of several in one file"


FROM_BITS = {8: Change.FROM_8_BITS, 12: Change.FROM_12_BITS, 16: Change.FROM_16_BITS}
Note = Callable[[Change], None]


def _unsaid(_: Change) -> None:
    """For callers that do not ask."""


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
        Refused: no such image, a broken one, a camera's raw data, or floating-point numbers, which have no
            known range.
    """
    _require_no_raw(name)
    has_heif = _knows_heif()
    try:
        with Image.open(file, formats=formats) as image:
            _require_range(image, name)
            yield image
    except (Refused, MemoryError):
        raise
    except UnidentifiedImageError as error:
        if not has_heif and _is_heif(_head(file)):
            raise Refused(
                name, "is a HEIC picture, which needs a package: pip install pillow-heif"
            ) from error
        raise Refused(name, _unknown(_head(file), formats)) from error
    except Image.DecompressionBombError as error:
        raise Refused(name, "has more pixels than any picture; Pillow refuses to decode it") from error
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise Refused(name, f"cannot be read: {error.strerror}") from error
        # Pillow lets through whatever its parsers trip over: OSError, SyntaxError, struct.error, IndexError.
        raise Refused(name, "is cut short or damaged and cannot be decoded") from error


def as_seen(image: Image.Image, *, longest: int | None = None, note: Note = _unsaid) -> Image.Image:
    """The first picture of a file as people see it: mode L or RGB, nothing but pixels.

    It is turned as its camera said, if that can be read. Transparent parts become white, palettes and CMYK
    become RGB. Values of more than 8 bits are scaled by their range: see `in_eight_bits`. A colour profile
    that can be read is applied. The picture is made smaller before it is copied.

    Args:
        image: as `opened` gives it.
        longest: pixels of its longest side; None keeps its size.
        note: is told each change.
    """
    if getattr(image, "is_animated", False):
        note(Change.FIRST_ALONE)
    if image.mode == "CMYK":
        note(Change.FROM_CMYK)
    picture, bits = in_eight_bits(image)
    if bits is not None:
        note(FROM_BITS.get(bits, Change.FROM_MORE_BITS))
    if longest is not None:
        if max(image.size) > longest:
            note(Change.SMALLER)
        picture = _plain_mode(picture)
        picture.thumbnail((longest, longest))  # a JPEG decodes fewer pixels
    image.load()  # an error here is the picture's, not its metadata's
    picture = _in_bands(picture, image.info.get("icc_profile"), note)
    picture = _upright(picture, image, note)
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
        picture = drafted(image, side=side)
    del image  # a large one takes as much memory as what was made of it
    return pixels_of(picture, None if side is None else (side, side), colour=colour)


def drafted(image: Image.Image, *, side: int | None) -> Image.Image:
    """`as_seen` of a picture that will be made a square of so many pixels, none of its detail lost."""
    if side is not None:
        image.draft(None, (2 * side, 2 * side))  # JPEG: decode fewer pixels
    return as_seen(image)


def pixels_of(
    picture: Image.Image, size: tuple[int, int] | None, *, colour: bool | None
) -> NDArray[np.uint8]:
    """The pixels of a picture of mode L or RGB, smoothed where it shrinks.

    Args:
        picture: as `as_seen` and `drafted` give it.
        size: (H, W) that it gets; None keeps its own.
        colour: RGB, or else luminance; None takes what it has.

    Returns:
        (H, W) or (H, W, 3).
    """
    if colour is False and picture.mode != "L":
        picture = picture.convert("L")
    if size is not None and picture.size != size[::-1]:
        picture = picture.resize(size[::-1], Image.Resampling.BILINEAR)
    if colour and picture.mode != "RGB":  # now that it is small: its channels are alike
        picture = picture.convert("RGB")
    return np.asarray(picture)


def is_grey(path: Path) -> bool:
    """Whether `decoded` would make (H, W) of an image file; only its head is read.

    Raises:
        Refused: as `opened` does.
    """
    with opened(path, path) as image:
        return image.mode in GREY_MODES or is_deep_grey(image)


def _require_range(image: Image.Image, name: str | Path) -> None:
    if image.mode == "F":
        raise Refused(name, "has floating-point pixels, of no known range; save it with 8 or 16 bits")
    if has_deep_planes(image):
        why = "holds each channel of more than 8 bits in a plane of its own, which is not read"
        raise Refused(name, f"{why}; save it with its channels together, or as PNG")


def _require_no_raw(name: str | Path) -> None:
    if ending_of(str(name)) in RAW_ENDINGS:
        raise Refused(name, "is a camera's raw data, of which only a stamp could be read; save it as TIFF")


@cache
def _knows_heif() -> bool:
    """Whether HEIC can be read; from then on Pillow does."""
    try:
        import pillow_heif  # noqa: PLC0415 - it need not be there
    except ImportError:
        return False
    pillow_heif.options.DECODE_THREADS = 1  # imports have processes of their own, whose memory is bounded
    pillow_heif.register_heif_opener()
    return True


def _head(file: Path | IO[bytes]) -> bytes:
    if isinstance(file, Path):
        with file.open("rb") as opened_file:
            return opened_file.read(HEAD_BYTES)
    file.seek(0)
    return file.read(HEAD_BYTES)


def _is_heif(head: bytes) -> bool:
    return head[4:8] == b"ftyp" and head[8:] in _HEIF_BRANDS


def _unknown(head: bytes, formats: tuple[str, ...] | None) -> str:
    """Why a file that begins so is no picture that can be read."""
    if head.startswith(TIFF_STARTS):
        return "is a TIFF of a kind that is not read, or damaged; save it as PNG, or as TIFF in RGB or grey"
    if formats is None:
        return "is not an image of a known kind"
    return f"is not a {', '.join(formats[:-1])} or {formats[-1]} image"


def _in_bands(picture: Image.Image, profile: bytes | None, note: Note) -> Image.Image:
    """A picture in mode L or RGB; of a large one some rows at once, or it would be in memory many times."""
    boxes = list(bands(picture.size))
    if len(boxes) == 1:
        return _in_plain_colours(picture, profile, note)
    made: Image.Image | None = None
    for box in boxes:
        band = _in_plain_colours(picture.crop(box), profile, note)
        made = made or Image.new(band.mode, picture.size)
        made.paste(band, box)
    assert made is not None
    return made


def _in_plain_colours(picture: Image.Image, profile: bytes | None, note: Note) -> Image.Image:
    """A copy in mode L or RGB: in 8 bits, on white, in the colours that a screen shows."""
    picture = _plain_mode(picture)
    is_grey = picture.mode in GREY_MODES
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        if picture.getchannel("A").getextrema() != (255, 255):
            note(Change.WHITENED)
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        picture = picture.convert("L" if is_grey else "RGB")
    return _in_srgb(picture, profile, note).convert("L" if is_grey else "RGB")


def _plain_mode(image: Image.Image) -> Image.Image:
    """Itself, or without a palette."""
    if image.mode in {"P", "PA"}:
        return image.convert("RGBA" if image.has_transparency_data else "RGB")
    return image.convert("L") if image.mode == "1" else image


def _upright(picture: Image.Image, image: Image.Image, note: Note) -> Image.Image:
    """Turned as its file's camera said; as it is stored where that cannot be read.

    Pillow's own `exif_transpose` also writes all that cameras say anew, and fails where it cannot.
    """
    try:
        turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
    except _BROKEN:
        return picture
    if turn is None:
        return picture
    note(Change.TURNED)
    return picture.transpose(turn)


def _in_srgb(picture: Image.Image, profile: bytes | None, note: Note) -> Image.Image:
    """In the colours that a screen shows; as it is stored without a profile that can be read."""
    if not profile:
        return picture
    try:
        transform = _transform(profile, picture.mode)
        if transform is None:
            return picture
        made = transform.apply(picture)
    except (ImageCms.PyCMSError, *_BROKEN):
        return picture
    note(Change.IN_SRGB)
    return made


@lru_cache(_PROFILES)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """From a profile's colours to those of sRGB, in mode RGB; None where they are those."""
    own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if ImageCms.getProfileDescription(own).startswith("sRGB"):
        return None  # rounding would change pixels that need no change
    return ImageCms.buildTransform(own, ImageCms.createProfile("sRGB"), mode, "RGB")
