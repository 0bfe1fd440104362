"""Hostile and broken uploads, each with the sentence it must be refused with."""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable

from PIL import Image

from tests.app.datasets.files import (
    heic,
    lzma_member_with_dictionary,
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
from tests.app.datasets.hostile_arrays import ARRAYS
from tests.app.datasets.refused import CUT, NAME, Hostile

PNG = picture()
HEIC = heic(Image.new("RGB", (64, 64), "teal"))
MEND = "add it there, its class empty where nobody knows it, or take it out."
TABLE = "table.csv"
DAMAGED = "is cut short or damaged and cannot be decoded."
NO_IMAGE = "is not a PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF or HEIF image."
LARGE_BMP = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")


def one(data: bytes | Callable[[], bytes], why: str, name: str = "cat/1.png") -> Hostile:
    """A zip with a good picture and this one; what takes long to make is made when it is asked for."""
    return Hostile(
        lambda: zip_of({"cat/0.png": PNG, name: data if isinstance(data, bytes) else data()}),
        f'"{name}" {why}',
    )


def named(name: str, why: str, shown: str | None = None) -> Hostile:
    """A zip with a good picture under this name."""
    return Hostile(lambda: zip_of({"cat/0.png": PNG, name: PNG}), f'"{shown or name}" {why}')


def table(text: str | bytes, sentence: str) -> Hostile:
    """A zip with a.png and b.png, and a table beside it."""
    data = text if isinstance(text, bytes) else text.encode()
    return Hostile(lambda: zip_of({"a.png": PNG, "b.png": PNG}), sentence, data)


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"), io.BytesIO())
    return out.getvalue()


ONE_MD = (
    ": 1 file is no picture and was left out: 1 .md; expected pictures such as PNG and JPEG, or the arrays "
    "x_train and y_train as numpy.savez saves them"
)
LEAVES = "has a name that leaves its folder."
BOMB = "would unpack to more than 200 times its size, as a zip bomb does."

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
    "only-remarks": Hostile(lambda: zip_of({"README.md": b"hello"}), f'"{NAME}" holds no images{ONE_MD}.'),
    "link": Hostile(
        lambda: zip_of_special("a.png", stat.S_IFLNK | 0o777),
        '"a.png" is a link; only plain files are taken.',
    ),
    "device": Hostile(
        lambda: zip_of_special("a.png", stat.S_IFCHR | 0o666),
        '"a.png" is no plain file; only plain files are taken.',
    ),
    "encrypted": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=8, kind="H", value=1),
        '"a.png" is encrypted; pack it without a password.',
    ),
    "method": Hostile(
        lambda: patched(zip_of({"a.png": PNG}), field=10, kind="H", value=97),
        '"a.png" is packed in a way that is not supported; pack it as a plain zip (Deflate).',
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
    "nested-zip": one(
        zip_of({"a.png": PNG}), "is a zip; archives inside archives are not opened: unpack it first."
    ),
    "nested-gzip": one(
        gzip.compress(PNG), "is a gzip file; archives inside archives are not opened: unpack it first."
    ),
    "nested-tar": one(_tar(), "is a tar archive; archives inside archives are not opened: unpack it first."),
    "nested-by-its-name": one(
        zip_of({"a.png": PNG}),
        "is a zip; archives inside archives are not opened: unpack it first.",
        "data/train.zip",
    ),
    "text-alone": Hostile(
        lambda: zip_of({"README.md": b"no images here"}), f'"{NAME}" holds no images{ONE_MD}.'
    ),
}

PICTURES = {
    "empty": one(b"", "is empty."),
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
        lambda: png_of_header(4, 4, extra=png_chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(90 << 20)))),
        DAMAGED,
    ),
    "webp-canvas": one(webp_of_header(16383, 16383), DAMAGED),
    "webp-large": one(
        lambda: picture("WEBP", mode="L", size=(5000, 5000), method=0),
        "has 5000 x 5000 pixels; at most 24 million are taken.",
    ),
}

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
    "not-utf8": table(b"filename\n\xff.png\n", f'"{TABLE}" is not in UTF-8; save it as “CSV UTF-8”.'),
    "missing-file": table(
        "filename\na.png\nb.png\nc.png\n", f'"c.png" is named in line 4 of {TABLE} but is not in {NAME}.'
    ),
    "missing-row": table(
        "filename\na.png\n",
        f'"b.png" is in {NAME} but not in {TABLE}; {MEND}',
    ),
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
