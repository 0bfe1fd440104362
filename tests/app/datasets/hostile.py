"""Hostile and broken uploads, each with the sentence it must be refused with."""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image

from tests.app.datasets.files import (
    heic,
    images,
    lzma_member_with_dictionary,
    npy,
    npy_header,
    npz_of,
    patched,
    picture,
    png_chunk,
    png_of_header,
    tiff_of_header,
    webp_of_header,
    zip_of,
    zip_of_pairs,
    zip_of_special,
)

PNG = picture()
HEIC = heic(Image.new("RGB", (64, 64), "teal"))
NAME = "upload.bin"
TABLE = "table.csv"
DAMAGED = "is cut short or damaged and cannot be decoded."
NO_IMAGE = "is not a PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF or HEIF image."
CUT = f"is cut short or damaged inside {NAME}."
LARGE_BMP = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")


class Hostile(NamedTuple):
    """An upload that must be refused."""

    make: Callable[[], bytes]
    sentence: str
    table: bytes | None = None


def one(data: bytes, why: str, name: str = "cat/1.png") -> Hostile:
    """A zip with a good picture and this one."""
    return Hostile(lambda: zip_of({"cat/0.png": PNG, name: data}), f'"{name}" {why}')


def named(name: str, why: str, shown: str | None = None) -> Hostile:
    """A zip with a good picture under this name."""
    return Hostile(lambda: zip_of({"cat/0.png": PNG, name: PNG}), f'"{shown or name}" {why}')


def arrays(why: str, **members: np.ndarray | bytes) -> Hostile:
    """An npz with these arrays."""
    return Hostile(lambda: npz_of(**members), why)


def table(text: str | bytes, sentence: str) -> Hostile:
    """A zip with a.png and b.png, and a table beside it."""
    data = text if isinstance(text, bytes) else text.encode()
    return Hostile(lambda: zip_of({"a.png": PNG, "b.png": PNG}), sentence, data)


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"), io.BytesIO())
    return out.getvalue()


def _dict(shape: str, descr: str = "'|u1'", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


LEAVES = "has a name that leaves its folder."
BOMB = "would unpack to more than 200 times its size, as a zip bomb does."
HEADERLESS = '"x_train.npy" has no header of a numpy array.'

NAMES = {
    "parent": named("../evil.png", LEAVES),
    "parent-inside": named("cat/../../evil.png", LEAVES),
    "empty-part": named("cat//evil.png", LEAVES),
    "absolute": named("/etc/evil.png", "has an absolute path for a name."),
    "drive": named("C:/evil.png", "has an absolute path for a name."),
    "backslash": named("..\\evil.png", "has a backslash in its name; folders must be parted by /."),
    "unc": named("\\\\host\\share.png", "has a backslash in its name; folders must be parted by /."),
    "newline": named(
        "cat/a\nb.png", "has control characters in its name.", "cat/a\N{REPLACEMENT CHARACTER}b.png"
    ),
    "escape": named(
        "cat/\x1b[2J.png", "has control characters in its name.", "cat/\N{REPLACEMENT CHARACTER}[2J.png"
    ),
    "nul": Hostile(
        lambda: zip_of({"cat/0.png": PNG, "cat/a_.exe.png": PNG}).replace(b"a_.exe", b"a\0.exe"),
        '"cat/a\N{REPLACEMENT CHARACTER}.exe.png" has control characters in its name.',
    ),
    "long": named(
        "x" * 397 + ".png", "has a name of more than 400 characters.", "x" * 119 + "\N{HORIZONTAL ELLIPSIS}"
    ),
    "twice": Hostile(
        lambda: zip_of_pairs([("cat/0.png", PNG), ("cat/0.png", PNG)]), f'"cat/0.png" is in {NAME} twice.'
    ),
    "case": named("CAT/0.PNG", 'has the same name as "cat/0.png" but for upper and lower case or accents.'),
    "accents": Hostile(
        lambda: zip_of({"caf\u00e9.png": PNG, "cafe\u0301.png": PNG}),
        '"cafe\u0301.png" has the same name as "caf\u00e9.png" but for upper and lower case or accents.',
    ),
    "class-case": named(
        "Cat/1.png",
        'is the same class name as "Cat" but for upper and lower case, accents, spaces or invisible '
        "characters.",
        "cat",
    ),
    "class-long": named("k" * 81 + "/1.png", "is a class name of more than 80 characters.", "k" * 81),
    "classes-many": Hostile(
        lambda: zip_of({f"{n}/0.png": PNG for n in range(1001)}),
        f'"{NAME}" has 1001 classes; at most 1000 are taken.',
    ),
    "deep": Hostile(
        lambda: zip_of({"cat/0.png": PNG, "dog/old/1.png": PNG}),
        f'"dog/old/1.png" lies too deep in {NAME}; '
        "expected class/image, train/class/image or test/class/image.",
    ),
    "stray": named("1.png", "lies outside the class folders; put every image into one, or none."),
}

ARCHIVES = {
    "cut": Hostile(lambda: zip_of({"cat/0.png": PNG})[:-30], f'"{NAME}" is cut short or no zip file at all.'),
    "only-magic": Hostile(
        lambda: b"PK\x03\x04" + bytes(100), f'"{NAME}" is cut short or no zip file at all.'
    ),
    "empty": Hostile(lambda: zip_of({}), f'"{NAME}" holds no files.'),
    "only-litter": Hostile(lambda: zip_of({"__MACOSX/._a.png": PNG}), f'"{NAME}" holds no files.'),
    "only-remarks": Hostile(lambda: zip_of({"README.md": b"hello"}), f'"{NAME}" holds no images.'),
    "link": Hostile(
        lambda: zip_of_special("a.png", stat.S_IFLNK | 0o777),
        '"a.png" is a link; only plain files are taken.',
    ),
    "device": Hostile(
        lambda: zip_of_special("a.png", stat.S_IFCHR | 0o666),
        '"a.png" is no plain file; only plain files are taken.',
    ),
    "encrypted": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=8, kind="H", value=1), '"a.png" is encrypted.'
    ),
    "method": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=10, kind="H", value=97),
        '"a.png" is packed in a way that is not supported.',
    ),
    "overlap": Hostile(
        lambda: patched(zip_of({"a.png": PNG, "b.png": PNG}), field=42, kind="I", value=0, entry=1),
        f'"b.png" shares its bytes with another file of {NAME}.',
    ),
    "too-long-member": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=20, kind="I", value=10**6),
        f'"{NAME}" says that it holds more bytes than it has.',
    ),
    "bomb": Hostile(lambda: zip_of({"a.png": bytes(16 << 20)}), f'"a.png" {BOMB}'),
    "bomb-in-parts": Hostile(
        lambda: zip_of({f"{n}.png": bytes(1 << 20) for n in range(16)}), f'"{NAME}" {BOMB}'
    ),
    "size-lies": Hostile(
        lambda: patched(zip_of({"a.png": PNG * 9}), field=24, kind="I", value=len(PNG)), f'"a.png" {CUT}'
    ),
    "checksum-lies": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=16, kind="I", value=1), f'"a.png" {CUT}'
    ),
    "large-member": Hostile(
        lambda: zip_of({"a.png": bytes((64 << 20) + 1)}, zipfile.ZIP_STORED), '"a.png" is larger than 64 MB.'
    ),
    "dictionary": Hostile(
        lambda: lzma_member_with_dictionary(PNG, "a.png", 0xFFFFFFFF),
        f'"{NAME}" needs more memory than an import may use.',
    ),
    "nested-zip": one(zip_of({"a.png": PNG}), "is a zip; archives inside archives are not opened."),
    "nested-gzip": one(gzip.compress(PNG), "is a gzip file; archives inside archives are not opened."),
    "nested-tar": one(_tar(), "is a tar archive; archives inside archives are not opened."),
    "nested-by-its-name": one(
        zip_of({"a.png": PNG}), "is a zip; archives inside archives are not opened.", "data/train.zip"
    ),
    "text-alone": Hostile(lambda: zip_of({"README.md": b"no images here"}), f'"{NAME}" holds no images.'),
}

PICTURES = {
    "empty": one(b"", NO_IMAGE),
    "text": one(b"hello", NO_IMAGE),
    "svg": one(b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', NO_IMAGE, "cat/1.svg"),
    "html": one(b"<!doctype html><script>alert(1)</script>", NO_IMAGE),
    "pdf": one(b"%PDF-1.7\n", NO_IMAGE),
    "postscript": one(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", NO_IMAGE, "cat/1.eps"),
    "tiff-cut": one(picture("TIFF", size=(64, 64))[:400], DAMAGED, "cat/1.tiff"),
    "tiff-huge": one(
        tiff_of_header(60_000, 60_000), "has 60000 x 60000 pixels; at most 40 million are taken.", "cat/1.tif"
    ),
    "heic-cut": one(HEIC[:-20], DAMAGED, "cat/1.heic"),
    "heic-head": one(HEIC[:40], NO_IMAGE, "cat/1.heic"),
    "avif-cut": one(picture("AVIF", size=(64, 64))[:-40], DAMAGED, "cat/1.avif"),
    "avif-head": one(picture("AVIF")[:30], NO_IMAGE, "cat/1.avif"),
    "raw": one(
        picture("TIFF"),
        "is a camera's raw data, of which only a stamp could be read; save it as TIFF.",
        "cat/1.dng",
    ),
    "icon": one(picture("ICO"), NO_IMAGE),
    "png-cut": one(picture(size=(64, 64))[:200], DAMAGED),
    "png-header-only": one(PNG[:33], NO_IMAGE),
    "png-bit": one(PNG[:45] + bytes([PNG[45] ^ 255]) + PNG[46:], DAMAGED),
    "jpeg-cut": one(picture("JPEG", size=(64, 64))[:-40], DAMAGED),
    "gif-cut": one(picture("GIF")[:-12], DAMAGED),
    "webp-cut": one(picture("WEBP")[:30], DAMAGED),
    "bmp-cut": one(picture("BMP", size=(64, 64))[:200], DAMAGED),
    "png-13000": one(png_of_header(13000, 13000), "has 13000 x 13000 pixels; at most 40 million are taken."),
    "png-huge": one(
        png_of_header(2**31 - 1, 2**31 - 1),
        "has 2147483647 x 2147483647 pixels; at most 40 million are taken.",
    ),
    "gif-huge": one(
        b"GIF89a\xff\xff\xff\xff" + picture("GIF")[10:],
        "has 65535 x 65535 pixels; at most 40 million are taken.",
    ),
    "png-text-bomb": one(
        png_of_header(4, 4, extra=png_chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(90 << 20)))),
        DAMAGED,
    ),
    "webp-canvas": one(webp_of_header(16383, 16383), DAMAGED),
    "webp-large": one(
        picture("WEBP", mode="L", size=(5000, 5000), method=0),
        "has 5000 x 5000 pixels; at most 24 million are taken.",
    ),
}

X = images(3, 4, 5)
ARRAYS = {
    "no-images": arrays(
        f'"{NAME}" has neither an array x_train nor an array x_test.', y_train=np.zeros(3, int)
    ),
    "none": arrays(f'"{NAME}" holds no images.', x_train=images(0, 4, 5)),
    "objects": arrays(
        '"x_train.npy" holds Python objects; only numbers are taken.', x_train=np.array([{}, 1])
    ),
    "label-objects": arrays(
        '"y_train.npy" holds Python objects; only numbers are taken.', x_train=X, y_train=np.array([{}, 1, 2])
    ),
    "floats": arrays(
        '"x_train.npy" holds float32 values; images must be uint8, 0 to 255.', x_train=X.astype(np.float32)
    ),
    "fields": arrays(
        "\"x_train.npy\" holds [('a', 'u1')] values; images must be uint8, 0 to 255.",
        x_train=np.zeros(3, [("a", "u1")]),
    ),
    "fortran": arrays(
        '"x_train.npy" is stored in Fortran order; save numpy.ascontiguousarray of it.',
        x_train=np.asfortranarray(X),
    ),
    "four-colours": arrays(
        '"x_train.npy" has the shape (3, 4, 5, 4); images must be (N, H, W) or (N, H, W, 3).',
        x_train=images(3, 4, 5, 4),
    ),
    "flat": arrays(
        '"x_train.npy" has the shape (3, 20); images must be (N, H, W) or (N, H, W, 3).',
        x_train=images(3, 20),
    ),
    "no-width": arrays(
        '"x_train.npy" has images of 4 x 0 pixels; 1 to 8192 a side are taken.', x_train=images(3, 4, 0)
    ),
    "wide": arrays(
        '"x_train.npy" has images of 1 x 8193 pixels; 1 to 8192 a side are taken.', x_train=images(1, 1, 8193)
    ),
    "labels-fewer": arrays(
        '"y_train.npy" has the shape (2,), but there are 3 images in x_train.',
        x_train=X,
        y_train=np.zeros(2, int),
    ),
    "labels-of-nothing": arrays(
        '"y_test.npy" has the shape (2,), but there are 0 images in x_test.',
        x_train=X,
        y_test=np.zeros(2, int),
    ),
    "labels-square": arrays(
        '"y_train.npy" has the shape (3, 1), but there are 3 images in x_train.',
        x_train=X,
        y_train=np.zeros((3, 1), int),
    ),
    "labels-float": arrays(
        '"y_train.npy" holds float64 values; labels must be whole numbers.', x_train=X, y_train=np.zeros(3)
    ),
    "labels-negative": arrays(
        '"y_train.npy" has labels outside 0 to 999 (-1 for unknown).', x_train=X, y_train=np.array([0, 1, -2])
    ),
    "labels-large": arrays(
        '"y_train.npy" has labels outside 0 to 999 (-1 for unknown).',
        x_train=X,
        y_train=np.array([0, 1, 2**64 - 1], np.uint64),
    ),
    "huge": arrays(
        '"x_train.npy" claims the shape (32768, 1024, 1024) but holds another number of bytes.',
        x_train=npy_header(_dict("(32768, 1024, 1024)")),
    ),
    "huge-overflow": arrays(
        '"x_train.npy" claims the shape (4294967296, 4294967296, 1) but holds another number of bytes.',
        x_train=npy_header(_dict("(4294967296, 4294967296, 1)")),
    ),
    "negative": arrays(
        '"x_train.npy" claims the shape (-1, 4, 5), which no array has.',
        x_train=npy_header(_dict("(-1, 4, 5)")),
    ),
    "fewer-bytes": arrays(
        '"x_train.npy" claims the shape (3, 4, 5) but holds another number of bytes.',
        x_train=npy_header(_dict("(3, 4, 5)"), bytes(59)),
    ),
    "more-bytes": arrays(
        '"x_train.npy" claims the shape (3, 4, 5) but holds another number of bytes.',
        x_train=npy_header(_dict("(3, 4, 5)"), bytes(61)),
    ),
    "no-header": arrays(HEADERLESS, x_train=b"hello"),
    "empty-member": arrays(HEADERLESS, x_train=b""),
    "code-in-header": arrays(HEADERLESS, x_train=npy_header("__import__('os').system('true')")),
    "deep-header": arrays(HEADERLESS, x_train=npy_header("(" * 3000 + ")" * 3000)),
    "long-header": arrays(HEADERLESS, x_train=npy_header(_dict("(3, 4, 5)") + " " * 9000, bytes(60))),
    "endless-header": arrays(
        HEADERLESS, x_train=npy_header(_dict("(3, 4, 5)"), bytes(60), version=2, length=0xFFFFFFF0)
    ),
    "unknown-version": arrays(HEADERLESS, x_train=npy(X).replace(b"NUMPY\x01", b"NUMPY\x09", 1)),
    "lzma-damaged": Hostile(
        lambda: _flip(npz_of(zipfile.ZIP_LZMA, x_train=images(30, 28, 28))), f'"x_train.npy" {CUT}'
    ),
    "deflate-damaged": Hostile(lambda: _flip(npz_of(x_train=images(30, 28, 28))), f'"x_train.npy" {CUT}'),
}


def _flip(data: bytes) -> bytes:
    """Damage a large zip in its middle."""
    middle = len(data) // 2
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 40]) + data[middle + 40 :]


TABLES = {
    "no-header": table(
        "a.png,cat\n",
        f'"{TABLE}" must begin with the line filename,class,split (class and split may be missing).',
    ),
    "unknown-column": table(
        "filename,colour\na.png,red\n",
        f'"{TABLE}" must begin with the line filename,class,split (class and split may be missing).',
    ),
    "empty": table(
        "", f'"{TABLE}" must begin with the line filename,class,split (class and split may be missing).'
    ),
    "only-header": table("filename,class\n", f'"{TABLE}" names no files.'),
    "not-utf8": table(b"filename\n\xff.png\n", f'"{TABLE}" is not a CSV in UTF-8.'),
    "missing-file": table(
        "filename\na.png\nb.png\nc.png\n", f'"c.png" is named in line 4 of {TABLE} but is not in {NAME}.'
    ),
    "missing-row": table("filename\na.png\n", f'"b.png" is in {NAME} but not in {TABLE}.'),
    "twice": table(
        "filename\na.png\nb.png\na.png\n", f'"a.png" is named twice in {TABLE}, the second time in line 4.'
    ),
    "values": table("filename,class\na.png\n", f'"{TABLE}" has 1 instead of 2 values in line 2.'),
    "split": table(
        "filename,split\na.png,trial\n",
        f'"{TABLE}" has a split other than "train" and "test" in line 2.',
    ),
    "traversal": table("filename\n../a.png\n", f'"../a.png" {LEAVES}'),
    "quote": table('filename\n"a.png\n', f'"{TABLE}" has a line 2 that is no CSV.'),
    "long-value": table("filename\n" + "a" * 200_000 + "\n", f'"{TABLE}" has a line 2 that is no CSV.'),
    "long-class": table(
        f"filename,class\na.png,{'k' * 81}\n",
        f'"{TABLE}" has a class name of more than 80 characters in line 2.',
    ),
    "two-tables": Hostile(
        lambda: zip_of({"a.png": PNG, "1.csv": b"filename\na.png\n", "2.csv": b"filename\na.png\n"}),
        '"a.png" is named twice in 2.csv, the second time in line 2.',
    ),
}

HOSTILE = {
    f"{group}:{name}": case
    for group, cases in {
        "name": NAMES,
        "archive": ARCHIVES,
        "picture": PICTURES,
        "array": ARRAYS,
        "table": TABLES,
    }.items()
    for name, case in cases.items()
}
