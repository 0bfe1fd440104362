"""What a file is by its name and its first bytes: an image, a camera's raw data, litter, or another thing."""

from collections import Counter
from collections.abc import Collection, Iterable

from clarinet.recipes.counting import many

# What systems leave beside images, next to hidden files; nobody means them. "icon\r" is
# a folder's icon on macOS.
LITTER = frozenset(
    {"__macosx", "@eadir", "#recycle", "$recycle.bin", "system volume information", "lost+found"}
)
LITTER |= {"thumbs.db", "thumbs.db:encryptable", "desktop.ini", "ehthumbs.db", "icon\r", "icon\\r"}

# With those that may not be readable here: they are refused by name, not left out.
_IMAGES = """
apng avif avifs blp bmp bw cur dcx dds dib emf eps gbr gif heic heics heif heifs hif icb icns ico j2c j2k jfif
jif jp2 jpc jpe jpeg jpf jpg jpx jxl mpo msp pbm pcx pfm pgm png pnm ppm psd pxr qoi ras rgb rgba sgi svg tga
tif tiff vda vst webp wmf xbm xpm
"""
# Of a camera's raw data: a TIFF whose first picture is a stamp of the real one.
_RAW = "arw cr2 cr3 crw dng nef nrw orf pef raf rw2 sr2 srw"
RAW_ENDINGS = frozenset(_RAW.split())
IMAGE_ENDINGS = frozenset(_IMAGES.split()) | RAW_ENDINGS
# Pictures by their content that stand for another file: a camera's stamp of a film.
STAMP_ENDINGS = frozenset({"thm"})
HEAD_BYTES = 12  # of a file, by which `begins_as_image` tells

_FTYP = slice(4, 8)
_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})
_TOLD = 6  # endings in a sentence


def is_litter(path: str) -> bool:
    """Whether a path is hidden, or what a system leaves behind: nobody means it."""
    return any(part.startswith(".") or part.lower() in LITTER for part in path.split("/"))


def ending_of(path: str) -> str:
    """What follows the last point of a file's name, in lower case; "" where there is none."""
    stem, dot, ending = path.rsplit("/", 1)[-1].rpartition(".")
    return ending.lower() if stem and dot else ""


def is_named_as_image(path: str) -> bool:
    """Whether a file's ending claims that it is an image."""
    return ending_of(path) in IMAGE_ENDINGS


def begins_as_image(head: bytes) -> bool:
    """Whether a file begins as an image does; for those whose ending says nothing."""
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    is_bmp = head[:2] == b"BM" and head[6:10] == bytes(4)
    is_heif = head[_FTYP] == b"ftyp" and head[8:12] in _BRANDS
    known = head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"DDS "))
    return known or is_webp or is_bmp or is_heif


def split_off_doubles(paths: Collection[str]) -> tuple[list[str], list[str]]:
    """Images that count, and what a camera wrote once more: raw data beside a picture of the same name."""
    seen = {_stem(path) for path in paths if ending_of(path) not in RAW_ENDINGS | STAMP_ENDINGS}
    doubles = {
        path
        for path in paths
        if ending_of(path) in STAMP_ENDINGS or (ending_of(path) in RAW_ENDINGS and _stem(path) in seen)
    }
    return [path for path in paths if path not in doubles], sorted(doubles)


def _stem(path: str) -> str:
    return path.rpartition(".")[0].casefold()


def doubles_told(doubles: Collection[str]) -> list[str]:
    """That such files were left out, without a full stop; empty where there are none."""
    if not doubles:
        return []
    return [
        f"{many(len(doubles), 'file')} of a camera {_were(len(doubles))} left out ({_by_ending(doubles)}): "
        "raw data beside a picture of the same name, or the stamp of a film"
    ]


def no_pictures_told(others: Collection[str]) -> list[str]:
    """That files are no pictures, by their kinds, without a full stop; empty where there are none."""
    if not others:
        return []
    is_ = "is no picture" if len(others) == 1 else "are no pictures"
    return [f"{many(len(others), 'file')} {is_} and {_were(len(others))} left out: {_by_ending(others)}"]


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _by_ending(paths: Iterable[str]) -> str:
    """How many there are of each ending: "8 .mp4, 4 .pdf"; of many the commonest."""
    counts = Counter(ending_of(path) for path in paths)
    in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{count:,} {f'.{ending:.20}' if ending else 'without an ending'}" for ending, count in in_order]
    more = sum(count for _, count in in_order[_TOLD:])
    return ", ".join([*told[:_TOLD], *([f"{more:,} others"] if more else [])])
