"""What lies where says the split and the class: rules over the paths of a folder or an archive. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clarinet.files.names import require_distinct_paths, same_path
from clarinet.files.refusal import Refused, require_none

SPLITS = ("train", "test")
VALIDATION = ("val", "valid", "validation")  # what others call a third split
BELOW_A_CLASS = 2  # parts of a path, once wrapping folders and the split are taken off
CLASS_LIST = "classes.txt"  # a class a line, in the order that counts them

# What systems leave beside images, next to hidden files; nobody means them.
LITTER = frozenset(
    {"__macosx", "@eadir", "#recycle", "$recycle.bin", "system volume information", "lost+found"}
)
LITTER |= {"thumbs.db", "thumbs.db:encryptable", "desktop.ini"}

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
# Of a camera's raw data: a TIFF whose first picture is a stamp of the real one.
RAW_ENDINGS = frozenset({"dng", "cr2", "nef", "arw"})
HEAD_BYTES = 12  # of a file, by which `begins_as_image` tells


_FTYP = slice(4, 8)
_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})


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
    is_heif = head[_FTYP] == b"ftyp" and head[8:12] in _BRANDS
    tiff = (b"II*\0", b"MM\0*")
    known = head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", *tiff))
    return known or is_webp or is_bmp or is_heif


@dataclass(frozen=True, slots=True)
class Placement:
    """Images with what their places say, what has no place, and what is to be said of it."""

    placed: list[Placed]  # train before test, by path in each
    refused: list[Refused]
    remarks: list[str]

    def require_all(self) -> list[Placed]:
        """What was placed; raises Refused, of all files at once, where something was not."""
        require_none(self.refused)
        return self.placed


def place(paths: Iterable[str], source: str) -> Placement:
    """Sort images into splits and classes: CLASS/image, or the same below `train` and `test`.

    The images of a split may also lie in it without class folders. Folders that hold everything, as packing
    adds them, do not count. A folder `valid` is the test split where there is none, else training images. A
    folder with the name of a split that holds images itself, beside other class folders, is a class.

    Args:
        paths: of images, relative, with / between their parts.
        source: what holds them, for a refusal.

    Returns:
        What lies too deep or beside class folders is refused, file by file.

    Raises:
        Refused: two images of one name.
    """
    parts_of = without_wrapping(paths)
    split_of, remarks = _splits(parts_of.values())
    placed, refused = [], []
    for path, parts in parts_of.items():
        folder = parts[0] if len(parts) > 1 and parts[0] in split_of else ""
        inside = parts[1:] if folder else parts
        if len(inside) > BELOW_A_CLASS:
            wanted = "class/image, train/class/image or test/class/image"
            refused.append(Refused(path, f"lies too deep in {source}; expected {wanted}"))
            continue
        class_name = inside[0] if len(inside) == BELOW_A_CLASS else None
        placed.append((folder, Placed(path, split_of.get(folder, "train"), class_name)))
    with_classes = {folder for folder, one in placed if one.class_name is not None}
    if "train" in {split_of.get(folder, "train") for folder in with_classes}:
        with_classes.add("")  # an image in no folder would be a training image
    strays = [one for folder, one in placed if one.class_name is None and folder in with_classes]
    why = "lies outside the class folders; put every image into one, or none"
    refused += [Refused(one.path, why) for one in strays]
    kept = [one for _, one in placed if one not in set(strays)]
    kept.sort(key=lambda one: (SPLITS.index(one.split), one.path))
    return Placement(kept, sorted(refused, key=str), remarks)


def _splits(paths: Collection[Sequence[str]]) -> tuple[dict[str, str], list[str]]:
    """Which first folders are splits, and what is to be said of some."""
    folders = {parts[0] for parts in paths if len(parts) > 1}
    named = {folder for folder in folders if folder.lower() in (*SPLITS, *VALIDATION)}
    if named != folders:  # beside classes: one that holds images itself is a class, too
        flat = {parts[0] for parts in paths if len(parts) == BELOW_A_CLASS}
        named -= flat
    split_of = {folder: folder.lower() for folder in named if folder.lower() in SPLITS}
    third = sorted(named - split_of.keys())
    becomes = "train" if "test" in split_of.values() else "test"
    words = {
        "train": "joins the training images, because there is a test split, too",
        "test": "is taken for the test split",
    }
    return split_of | dict.fromkeys(third, becomes), [f'"{folder}" {words[becomes]}' for folder in third]


def without_wrapping(paths: Iterable[str]) -> dict[str, list[str]]:
    """The parts of each path, less the folders that hold everything.

    Raises:
        Refused: two paths that some system takes for one.
    """
    parts = {path: path.split("/") for path in paths}
    require_distinct_paths(parts)
    while parts and all(len(one) > 1 for one in parts.values()):
        first = {one[0] for one in parts.values()}
        if len(first) > 1 or first.pop().lower() in (*SPLITS, *VALIDATION):
            break
        parts = {path: one[1:] for path, one in parts.items()}
    return parts


def class_list(paths: Iterable[str]) -> str | None:
    """Which of a folder's files lists the classes: the outermost `classes.txt`."""
    found = [path for path in paths if path.rsplit("/", 1)[-1].lower() == CLASS_LIST]
    return min(found, key=lambda path: (path.count("/"), path), default=None)


class PathFinder:
    """Finds paths by what people call them: case, accents and folders around do not count.

    A name is a path, the end of one, or one with further folders in front; where it could be several it is
    none.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._whole: dict[str, str] = {}
        self._ends: dict[str, str | None] = {}
        for path in paths:
            key = same_path(path)
            self._whole[key] = path
            parts = key.split("/")
            for start in range(len(parts)):
                end = "/".join(parts[start:])
                self._ends[end] = None if end in self._ends else path

    def find(self, name: str) -> str | None:
        """The path that is meant, or None."""
        key = same_path(name.strip().replace("\\", "/"))
        parts = [part for part in key.split("/") if part not in {"", "."}]
        whole = self._whole.get("/".join(parts)) or self._ends.get("/".join(parts))
        for start in range(1, len(parts)):
            whole = whole or self._whole.get("/".join(parts[start:]))
        return whole
