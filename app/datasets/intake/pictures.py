"""Strangers' image files -> pictures that we encoded ourselves: grey or RGB, 8 bit, upright, only pixels."""

import io
import struct
from dataclasses import dataclass

import numpy as np
from PIL import Image, UnidentifiedImageError

from app.datasets.intake.limits import (
    JPEG_QUALITY,
    LOSSLESS_PIXELS,
    MAX_PIXELS,
    MAX_STORED_SIDE,
    MAX_WEBP_PIXELS,
)
from clarinet.files.refusal import Refused

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
ARCHIVE_MAGIC = {
    b"PK\x03\x04": "a zip",
    b"PK\x05\x06": "a zip",
    b"\x1f\x8b": "a gzip file",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
}
TAR_MAGIC = slice(257, 262)
ORIENTATION = 0x0112  # EXIF's tag
_NO_EXIF = (OSError, SyntaxError, ValueError, LookupError, TypeError, struct.error)  # Pillow, of a broken one
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
PNG_COMPRESSION = 3  # of zlib; 6 takes a third longer for 3 % on handwritten digits


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image and what is known of it."""

    data: bytes
    media_type: str  # image/png or image/jpeg
    width: int  # pixels
    height: int  # pixels
    channels: int  # 1 grey, 3 RGB


def picture_of_file(data: bytes, name: str) -> Picture:
    """Decode a PNG, JPEG, WebP, GIF or BMP file and encode its pixels anew.

    The orientation that a camera noted is applied, if it can be read; transparent parts become white; CMYK
    and palettes become RGB, 16-bit grey becomes 8-bit. Pictures longer than MAX_STORED_SIDE are made smaller.
    Of a JPEG with several pictures (as phones make them) the first counts; an animation is refused, because
    nobody could say which of its pictures was asked about.

    Raises:
        Refused: not such an image, damaged, animated, or above MAX_PIXELS.
    """
    require_no_archive(data, name)
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check(image, name)
            return encode(_plain(image))
    except UnidentifiedImageError as error:
        raise Refused(name, "is not a PNG, JPEG, WebP, GIF or BMP image") from error
    except MemoryError as error:
        raise Refused(name, "needs more memory than an import may use") from error
    except Refused:
        raise
    except Exception as error:
        # Pillow lets through whatever its parsers trip over: OSError, SyntaxError, struct.error, IndexError.
        raise Refused(name, "is cut short or damaged and cannot be decoded") from error


def require_no_archive(start: bytes, name: str) -> None:
    """Raises Refused if a file that starts so is an archive."""
    archive = next((kind for magic, kind in ARCHIVE_MAGIC.items() if start.startswith(magic)), None)
    if archive is not None or start[TAR_MAGIC] == b"ustar":
        raise Refused(name, f"is {archive or 'a tar archive'}; archives inside archives are not opened")


def picture_of_pixels(pixels: np.ndarray) -> Picture:
    """Encode uint8 pixels, (H, W) grey or (H, W, 3) RGB."""
    return encode(Image.fromarray(pixels))


def encode(image: Image.Image) -> Picture:
    """Encode an image of mode L or RGB: as PNG up to LOSSLESS_PIXELS, as JPEG above."""
    out = io.BytesIO()
    if image.width * image.height <= LOSSLESS_PIXELS:
        media_type = "image/png"
        image.save(out, "PNG", compress_level=PNG_COMPRESSION)
    else:
        media_type = "image/jpeg"
        image.save(out, "JPEG", quality=JPEG_QUALITY)
    return Picture(out.getvalue(), media_type, image.width, image.height, 3 if image.mode == "RGB" else 1)


def _check(image: Image.Image, name: str) -> None:
    """Judge by the header, before anything is decoded."""
    limit = MAX_WEBP_PIXELS if image.format == "WEBP" else MAX_PIXELS
    if image.width * image.height > limit:
        size = f"{image.width} x {image.height} pixels"
        raise Refused(name, f"has {size}; at most {limit // 1_000_000} million are taken")
    if getattr(image, "is_animated", False) and image.format != "MPO":
        raise Refused(name, "is an animation; a question needs one still picture")


def _eight_bits(deep: np.ndarray) -> np.ndarray:
    """(H, W) uint8 from 16-bit grey: v / 257 to the nearest, in steps that need no wider, larger numbers."""
    values = deep.astype(np.uint16) if deep.dtype == np.uint16 else deep.clip(0, 65535).astype(np.uint16)
    values -= values >> 8
    values += 127
    values >>= 8
    return values.astype(np.uint8)


def _plain(image: Image.Image) -> Image.Image:
    """The picture as mode L or RGB, upright, at most MAX_STORED_SIDE long, without metadata.

    It is made smaller first, so that the later copies are small.
    """
    picture = image
    if picture.mode.startswith("I"):
        picture = Image.fromarray(_eight_bits(np.asarray(picture)))
    elif picture.mode in ("P", "PA"):
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    elif picture.mode == "1":
        picture = picture.convert("L")
    if picture is not image:
        picture.info["exif"] = image.info.get("exif", b"")
    picture.thumbnail((MAX_STORED_SIDE, MAX_STORED_SIDE))
    picture = _upright(picture)
    is_grey = picture.mode in ("L", "LA", "La")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = picture.convert("L" if is_grey else "RGB")
    picture.info.clear()  # the PNG writer would keep a colour profile found there
    return picture


def _upright(picture: Image.Image) -> Image.Image:
    """Turned as its camera said; as it is stored where that cannot be read.

    Pillow's own `exif_transpose` also writes all that cameras say anew, and fails where it cannot.
    """
    picture.load()  # an error here is the picture's, not its metadata's
    try:
        turn = TURNS.get(picture.getexif().get(ORIENTATION, 1))
    except _NO_EXIF:
        return picture
    return picture if turn is None else picture.transpose(turn)
