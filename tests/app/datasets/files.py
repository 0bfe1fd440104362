"""Files as people, and people who mean harm, send them."""

import io
import lzma
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pillow_heif
from PIL import Image, ImageCms

CENTRAL = b"PK\x01\x02"


def picture(
    format_: str = "PNG", *, mode: str = "RGB", size: tuple[int, int] = (6, 4), shade: int = 0, **options: Any
) -> bytes:
    """An image file; pictures of different shades differ."""
    width, height = size
    period = ((np.arange(251) * 7 + shade) % 251).astype(np.uint8)
    image = Image.fromarray(np.resize(period, (height, width))).convert(mode)
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


def animation(format_: str) -> bytes:
    """Two different pictures in one file."""
    first, second = (Image.new("RGB", (6, 4), colour) for colour in ("red", "blue"))
    out = io.BytesIO()
    first.save(out, format_, save_all=True, append_images=[second])
    return out.getvalue()


def profile(*, swapped: bool) -> bytes:
    """The colour profile of a screen, sRGB; or of one on which red looks green, and green red."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    if not swapped:
        return srgb
    for before, after in ((b"rXYZ", b"?XYZ"), (b"gXYZ", b"rXYZ"), (b"?XYZ", b"gXYZ")):
        srgb = srgb.replace(before, after)
    return srgb.replace("sRGB".encode("utf-16-be"), "swap".encode("utf-16-be"))


def zip_of(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these files, in this order."""
    return zip_of_pairs(list(files.items()), method)


def zip_of_pairs(
    files: Sequence[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """The same, where a name may come twice."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
        warnings.simplefilter("ignore")  # zipfile warns of names that come twice
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def zip_of_special(name: str, mode: int) -> bytes:
    """A zip with one member of a Unix file type other than a plain file."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return zip_of_pairs([(info, b"/etc/passwd")])


def patched(data: bytes, *, field: int, kind: str, value: int, entry: int = 0) -> bytes:
    """Overwrite a field of an entry in a zip's list of members; `field` is its offset there."""
    at = -1
    for _ in range(entry + 1):
        at = data.index(CENTRAL, at + 1)
    changed = bytearray(data)
    struct.pack_into(f"<{kind}", changed, at + field, value)
    return bytes(changed)


def npy(array: np.ndarray) -> bytes:
    """An array as an .npy file."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def npy_header(text: str, body: bytes = b"", *, version: int = 1, length: int | None = None) -> bytes:
    """An .npy file whose header says what it likes."""
    header = text.encode("latin1") + b"\n"
    size = len(header) if length is None else length
    return (
        b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + header + body
    )


def npz_of(method: int = zipfile.ZIP_DEFLATED, /, **arrays: np.ndarray | bytes) -> bytes:
    """An npz; members given as bytes are taken as they are."""
    files = {
        f"{name}.npy": value if isinstance(value, bytes) else npy(value) for name, value in arrays.items()
    }
    return zip_of(files, method)


def images(count: int, *shape: int, seed: int = 0) -> np.ndarray:
    """(count, *shape) uint8 noise."""
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_header(width: int, height: int, *, extra: bytes = b"") -> bytes:
    """A PNG that says it is large, with rows that are all zero as far as 1 MB of them goes."""
    rows = zlib.compress(bytes(min(1_000_000, (width // 8 + 2) * height)), 9)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + extra
        + png_chunk(b"IDAT", rows)
        + png_chunk(b"IEND", b"")
    )


def heic(image: Image.Image) -> bytes:
    """A photo as telephones keep it."""
    out = io.BytesIO()
    pillow_heif.from_pillow(image).save(out, quality=90)
    return out.getvalue()


def tiff_of_header(width: int, height: int) -> bytes:
    """A TIFF of one bit a pixel that says it is large, with a strip of 8 bytes."""
    tags = {256: width, 257: height, 258: 1, 259: 1, 262: 1, 273: 8, 277: 1, 278: height, 279: 8}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<I", 16) + bytes(8) + struct.pack("<H", len(tags)) + entries + bytes(4)


def webp_of_header(width: int, height: int) -> bytes:
    """A WebP that announces a canvas for an animation and brings nothing to put on it."""
    canvas = struct.pack("<I", 0x02) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + struct.pack("<I", len(canvas)) + canvas
    return b"RIFF" + struct.pack("<I", len(body)) + body


def lzma_member_with_dictionary(data: bytes, name: str, dictionary_bytes: int) -> bytes:
    """A zip whose LZMA member asks for a dictionary of this size."""
    archive = zip_of({name: data}, zipfile.ZIP_LZMA)
    properties = struct.pack("<BI", 93, lzma_dictionary(archive))
    return archive.replace(properties, struct.pack("<BI", 93, dictionary_bytes), 1)


def lzma_dictionary(archive: bytes) -> int:
    """The dictionary size that the first LZMA member of a zip states."""
    at = archive.index(b"\x5d", 30)  # lc=3, lp=0, pb=2: what every encoder writes
    size: int = struct.unpack_from("<I", archive, at + 1)[0]
    assert lzma.FILTER_LZMA1
    return size
