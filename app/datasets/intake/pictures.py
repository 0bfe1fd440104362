"""Strangers' image files -> pictures that we encoded ourselves: grey or RGB, 8 bit, upright, only pixels."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image

from app.datasets.intake.limits import (
    JPEG_QUALITY,
    LOSSLESS_PIXELS,
    MAX_PIXELS,
    MAX_STORED_SIDE,
    MAX_WEBP_PIXELS,
)
from clarinet.files.pictures import Change, as_seen, opened
from clarinet.files.refusal import Refused

FORMATS = ("PNG", "JPEG", "WebP", "GIF", "BMP", "TIFF", "AVIF", "HEIF")
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
PNG_COMPRESSION = 3  # of zlib; 6 takes a third longer for 3 % on handwritten digits


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image and what is known of it."""

    data: bytes
    media_type: str  # image/png or image/jpeg
    width: int  # pixels
    height: int  # pixels
    channels: int  # 1 grey, 3 RGB


def picture_of_file(data: bytes, name: str, *, note: Callable[[Change], None] = lambda _: None) -> Picture:
    """Encode anew what people see of a file in one of FORMATS: see `as_seen`, which tells `note` of changes.

    Pictures longer than MAX_STORED_SIDE are made smaller. Of several pictures in a file, as phones and
    animations have them, the first counts: it is what people are asked about.

    Raises:
        Refused: not such an image, damaged, or above MAX_PIXELS.
    """
    try:
        with opened_upload(data, name) as image:
            return encode(as_seen(image, longest=MAX_STORED_SIDE, note=note))
    except MemoryError as error:
        raise Refused(name, "needs more memory than an import may use") from error


@contextmanager
def opened_upload(data: bytes, name: str) -> Iterator[Image.Image]:
    """What a stranger sent, of which only the head was read.

    Raises:
        Refused: not an image of one of FORMATS, damaged, or above MAX_PIXELS.
    """
    require_no_archive(data, name)
    with opened(io.BytesIO(data), name, formats=FORMATS) as image:
        _check_size(image, name)
        yield image


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


def _check_size(image: Image.Image, name: str) -> None:
    """Judge by the header, before anything is decoded."""
    limit = MAX_WEBP_PIXELS if image.format in {"WEBP", "AVIF"} else MAX_PIXELS
    if image.width * image.height > limit:
        size = f"{image.width} x {image.height} pixels"
        raise Refused(name, f"has {size}; at most {limit // 1_000_000} million are taken")
