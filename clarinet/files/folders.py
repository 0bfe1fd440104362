"""What lies where says the split and the class: rules over the paths of a folder or an archive. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from clarinet.files.names import require_distinct_paths
from clarinet.files.refusal import Refused

SPLITS = ("train", "test")
BELOW_A_CLASS = 2  # parts of a path, once wrapping folders and the split are taken off

# What systems leave beside images, next to hidden files; nobody means them.
LITTER = frozenset({"__macosx", "@eadir", "thumbs.db", "desktop.ini"})

# With those that may not be readable here: they are refused by name, not left out.
IMAGE_ENDINGS = {
    "png",
    "jpg",
    "jpeg",
    "jfif",
    "webp",
    "bmp",
    "dib",
    "gif",
    "tif",
    "tiff",
    "tga",
    "ico",
    "pbm",
}
IMAGE_ENDINGS |= {
    "pgm",
    "ppm",
    "pnm",
    "jp2",
    "j2k",
    "avif",
    "heic",
    "heif",
    "jxl",
    "dng",
    "cr2",
    "nef",
    "arw",
}
IMAGE_ENDINGS |= {"psd", "svg", "eps"}
HEAD_BYTES = 12  # of a file, by which `begins_as_image` tells


class Placed(NamedTuple):
    """An image file and what its place says about it."""

    path: str
    split: str
    class_name: str | None


def is_litter(path: str) -> bool:
    """Whether a path is hidden, or what a system leaves behind: nobody means it."""
    return any(part.startswith(".") or part.lower() in LITTER for part in path.split("/"))


def is_named_as_image(path: str) -> bool:
    """Whether a file's ending claims that it is an image."""
    stem, dot, ending = path.rsplit("/", 1)[-1].rpartition(".")
    return bool(stem and dot) and ending.lower() in IMAGE_ENDINGS


def begins_as_image(head: bytes) -> bool:
    """Whether a file begins as an image does; for those whose ending says nothing."""
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    is_bmp = head[:2] == b"BM" and head[6:10] == bytes(4)
    return head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")) or is_webp or is_bmp


def place(paths: Iterable[str], source: str) -> list[Placed]:
    """Sort images into splits and classes: CLASS/image, or the same below `train` and `test`.

    The images of a split may also lie in it without class folders. Folders that hold everything, as packing
    adds them, do not count.

    Args:
        paths: of images, relative, with / between their parts.
        source: what holds them, for a refusal.

    Returns:
        Train before test, by path in each.

    Raises:
        Refused: an image that lies too deep or beside class folders, or two of one name.
    """
    placed = [_place(path, parts, source) for path, parts in without_wrapping(paths).items()]
    for split in SPLITS:
        inside = [one for one in placed if one.split == split]
        stray = [one.path for one in inside if one.class_name is None]
        if 0 < len(stray) < len(inside):
            raise Refused(stray[0], "lies outside the class folders; put every image into one, or none")
    return sorted(placed, key=lambda one: (SPLITS.index(one.split), one.path))


def without_wrapping(paths: Iterable[str]) -> dict[str, list[str]]:
    """The parts of each path, less the folders that hold everything.

    Raises:
        Refused: two paths that some system takes for one.
    """
    parts = {path: path.split("/") for path in paths}
    require_distinct_paths(parts)
    while parts and all(len(one) > 1 for one in parts.values()):
        first = {one[0] for one in parts.values()}
        if len(first) > 1 or first.pop().lower() in SPLITS:
            break
        parts = {path: one[1:] for path, one in parts.items()}
    return parts


def _place(path: str, parts: list[str], source: str) -> Placed:
    split = "train"
    if len(parts) > 1 and parts[0].lower() in SPLITS:
        split, parts = parts[0].lower(), parts[1:]
    if len(parts) > BELOW_A_CLASS:
        wanted = "class/image, train/class/image or test/class/image"
        raise Refused(path, f"lies too deep in {source}; expected {wanted}")
    return Placed(path, split, parts[0] if len(parts) == BELOW_A_CLASS else None)
