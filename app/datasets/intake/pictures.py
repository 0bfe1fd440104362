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
    MAX_COSTLY_PIXELS,
    MAX_PIXELS,
    MAX_STORED_SIDE,
)
from clarinet.files.depths import has_deep_colours
from clarinet.files.foreign import archive_kind
from clarinet.files.kinds import ending_of, is_named_as_image
from clarinet.files.pictures import Change, as_seen, opened
from clarinet.files.refusal import Refused

FORMATS = ("PNG", "JPEG", "WebP", "GIF", "BMP", "TIFF", "AVIF", "HEIF")
# Taken where a file is called so: the first bytes of some could be anything's.
BY_ENDING = {
    **dict.fromkeys(("pbm", "pgm", "ppm", "pnm"), "PPM"),
    **dict.fromkeys(("jp2", "j2k", "j2c", "jpc", "jpf", "jpx"), "JPEG2000"),
    **dict.fromkeys(("tga", "icb", "vda", "vst"), "TGA"),
    **dict.fromkeys(("sgi", "bw", "rgb", "rgba"), "SGI"),
    **dict.fromkeys(("dds",), "DDS"),
    **dict.fromkeys(("ico",), "ICO"),
    **dict.fromkeys(("pcx",), "PCX"),
    **dict.fromkeys(("qoi",), "QOI"),
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
    further = BY_ENDING.get(ending_of(name))
    with opened(io.BytesIO(data), name, formats=(*FORMATS, further) if further else FORMATS) as image:
        _check_size(image, name)
        yield image


def require_no_archive(start: bytes, name: str) -> None:
    """Raises Refused if a file that starts so is an archive, or empty."""
    if not start and is_named_as_image(name):
        raise Refused(name, "is empty")
    if archive := archive_kind(start):
        raise Refused(name, f"is {archive}; archives inside archives are not opened: unpack it first")


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
    is_costly = image.format in {"WEBP", "AVIF"} or has_deep_colours(image)
    limit = MAX_COSTLY_PIXELS if is_costly else MAX_PIXELS
    if image.width * image.height > limit:
        size = f"{image.width} x {image.height} pixels"
        raise Refused(name, f"has {size}; at most {limit // 1_000_000} million are taken")
