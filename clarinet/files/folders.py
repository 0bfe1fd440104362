"""What lies where says the split and the class: rules over the paths of a folder or an archive. Pure."""

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clarinet.files.names import NO_LABEL, alike_paths, in_a_row, numbers_among, same_path
from clarinet.files.pairs import CLASS_LIST, without_marks
from clarinet.files.refusal import Refused, require_none
from clarinet.files.splits import SPLITS, split_word, splits_of

BELOW_A_CLASS = 2  # parts of a path, once wrapping folders and the split are taken off
CAMERA = "dcim"  # what cameras and phones call the folder of all their pictures
_OF_CAMERA = re.compile(r"\d{3}[A-Z0-9_]{5}", re.IGNORECASE)  # and those in it: 100CANON, 101APPLE


class Placed(NamedTuple):
    """An image file and what its place says about it."""

    path: str
    split: str
    class_name: str | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Images with what their places say, what has no place, and what is to be said of it.

    Args:
        placed: train before test, by path in each.
        refused: what has no place, with why.
        remarks: sentences without their full stop.
        around: a folder that holds all images itself and was taken for no class, which it might be; "" where
            there is none.
        contradictions: images that are placed although something else says another class of them, with what.
        marks: paths of pictures that say where things lie in others, and were left out.
    """

    placed: list[Placed]
    refused: list[Refused]
    remarks: list[str]
    around: str = ""
    contradictions: list[Refused] = field(default_factory=list)
    marks: Collection[str] = ()

    def require_all(self) -> list[Placed]:
        """What was placed; raises Refused, of all files at once, where something was not."""
        require_none(self.refused)
        return self.placed


def place(
    paths: Iterable[str], source: str, *, class_names: Sequence[str] = (), listed: Sequence[str] = ()
) -> Placement:
    """Sort images into splits and classes: CLASS/image, or the same below `train` and `test`.

    The images of a split may also lie in it without class folders. Folders that hold everything, as packing
    adds them, do not count, and nor do a camera's. Masks beside images are left out: see `pairs`.
    A folder `valid` is the test split where there is none, else training images. A folder with the name of a
    split that holds images itself, beside other class folders, is a class. So is a single folder that is
    called like one of `class_names`.

    Args:
        paths: of images, relative, with / between their parts.
        source: what holds them, for a refusal.
        class_names: those that are known before.
        listed: classes that a list beside the images names; folders that are called so hold no masks.

    Returns:
        What lies too deep or beside class folders is refused, file by file, and so is a file that some system
        takes for another.
    """
    paired = without_marks(paths, (*class_names, *listed))
    unwrapped = _without_wrapping(paired.parts, class_names)
    split_of, remarks = splits_of(unwrapped.parts.values())
    if unwrapped.is_class or _are_classes(unwrapped.parts.values(), class_names):
        split_of, remarks = {}, []
    parts_of = _without_doubled(unwrapped.parts, split_of)
    placed, refused = [], list(unwrapped.refused)
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
    strays = {one for folder, one in placed if one.class_name is None and folder in with_classes}
    why = "lies outside the class folders; put every image into one, or none"
    refused += [Refused(one.path, why) for one in strays]
    kept = [one for _, one in placed if one not in strays]
    kept.sort(key=lambda one: (SPLITS.index(one.split), one.path))
    remarks += _loose_told(one.class_name for folder, one in placed if split_of and not folder)
    if unwrapped.has_camera:
        remarks.append("The folders of a camera (DCIM) were taken for no classes")
    remarks += paired.remarks
    return Placement(kept, sorted(refused, key=str), remarks, unwrapped.around, marks=paired.left)


def _loose_told(names: Iterable[str | None]) -> list[str]:
    """That folders beside splits were taken for classes; they might have meant other things."""
    loose = sorted({f'"{name}"' for name in names if name is not None})
    if not loose:
        return []
    verb = (
        "lies beside the splits and is a class"
        if len(loose) == 1
        else "lie beside the splits and are classes"
    )
    return [f"{in_a_row(loose)} {verb} of the training images"]


def _are_classes(paths: Collection[Sequence[str]], class_names: Sequence[str]) -> bool:
    """Whether all images lie in folders that are called like known classes, even those of splits."""
    folders = {parts[0] for parts in paths if len(parts) == BELOW_A_CLASS}
    are_flat = all(len(parts) == BELOW_A_CLASS for parts in paths)
    return are_flat and NO_LABEL not in numbers_among(class_names, folders)


@dataclass(slots=True)
class _Unwrapped:
    """The parts of each path, less the folders that hold everything; and what those were."""

    parts: dict[str, list[str]]
    refused: list[Refused]
    around: str = ""  # the innermost of them, where the images lie in it
    is_class: bool = False  # that this one is a class of those known before, and is left
    has_camera: bool = False


def _without_wrapping(parts_of: Mapping[str, list[str]], class_names: Sequence[str]) -> _Unwrapped:
    """Take off the folders that hold everything, and a camera's."""
    alike = alike_paths(parts_of)
    parts = {path: one for path, one in parts_of.items() if path not in alike}
    found = _Unwrapped(parts, list(alike.values()))
    for path, one in parts.items():
        parts[path] = without_camera(one)
        found.has_camera |= len(parts[path]) < len(one)
    while parts and all(len(one) > 1 for one in parts.values()):
        first = {one[0] for one in parts.values()}
        if len(first) > 1:
            break
        (name,) = first
        if all(len(one) == BELOW_A_CLASS for one in parts.values()):
            if numbers_among(class_names, [name]) != [NO_LABEL]:
                found.is_class = True
                break
            found.around = "" if split_word(name) else name
        if split_word(name):
            break
        parts = {path: one[1:] for path, one in parts.items()}
    found.parts = parts
    return found


def without_camera(parts: Sequence[str]) -> list[str]:
    """The parts of a path less DCIM and the folder in it."""
    for place_, (part, below) in enumerate(itertools.pairwise(parts)):
        if part.lower() == CAMERA and _OF_CAMERA.fullmatch(below):
            return [*parts[:place_], *parts[place_ + 2 :]]
    return list(parts)


def _without_doubled(parts_of: dict[str, list[str]], split_of: Collection[str]) -> dict[str, list[str]]:
    """Take off what packing adds in a split: a folder of the split's own name that holds all of it."""
    below: dict[str, set[str]] = {}
    for parts in parts_of.values():
        if len(parts) > 1:
            below.setdefault(parts[0], set()).add(parts[1] if len(parts) > BELOW_A_CLASS else "")
    doubled = {name for name in split_of if {one.lower() for one in below.get(name, ())} == {name.lower()}}
    return {
        path: [parts[0], *parts[2:]] if parts[0] in doubled else parts for path, parts in parts_of.items()
    }


def around_told(name: str) -> str:
    """That a folder which holds all images was taken for no class, without a full stop."""
    return (
        f'"{name}" holds all images and is taken for the folder around them, not for a class; if it is one, '
        f"put it into a folder train: train/{name}"
    )


def require_told_apart(name: str, class_names: Sequence[str]) -> None:
    """Raises Refused: a folder alone in what joins images of known classes can be read in two ways."""
    raise Refused(
        name,
        "holds all images and is none of the classes that are there, which can be read in two ways: as a new "
        "class, or as the folder around images without a class. If it is a class, put it into a folder train "
        f"(train/{name}); if it is none, put the images into no folder; or name their classes in a table "
        f"(filename,class). The classes that are there: {in_a_row(class_names)}",
    )


def class_list(paths: Iterable[str]) -> str | None:
    """Which of a folder's files lists the classes: the outermost `classes.txt`."""
    found = [path for path in paths if path.rsplit("/", 1)[-1].lower() == CLASS_LIST]
    return min(found, key=lambda path: (path.count("/"), path), default=None)


class PathFinder:
    """Finds paths by what people call them: case, accents and folders around do not count.

    A name is a path, the end of one, or one with further folders in front; where it could be several it is
    none.
    """

    def __init__(self, paths: Iterable[str], *, by_id: bool = False) -> None:
        """
        Args:
            paths: what may be found.
            by_id: also by names without their ending, as the numbers of tables of Kaggle are.
        """
        self._whole: dict[str, str | None] = {}
        self._ends: dict[str, str | None] = {}
        for path in paths:
            key = same_path(path)
            self._add(key, path)
            folder, slash, file = key.rpartition("/")
            if by_id and "." in file.strip("."):
                self._add(f"{folder}{slash}{file.rpartition('.')[0]}", path)

    def _add(self, key: str, path: str) -> None:
        self._whole[key] = path if self._whole.get(key, path) == path else None
        parts = key.split("/")
        for start in range(len(parts)):
            end = "/".join(parts[start:])
            self._ends[end] = None if end in self._ends else path

    def find(self, name: str) -> str | None:
        """The path that is meant, or None."""
        key = same_path(name.strip().replace("\\", "/"))
        parts = [part for part in key.split("/") if part not in {"", "."}]
        whole = self._whole.get("/".join(parts)) or self._ends.get("/".join(parts))
        if self.could_be_several(name):
            return whole  # and no other that is called like the end of these
        for start in range(1, len(parts)):
            whole = whole or self._whole.get("/".join(parts[start:]))
        return whole

    def could_be_several(self, name: str) -> bool:
        """Whether files in several folders are called so."""
        key = same_path(name.strip().replace("\\", "/"))
        end = "/".join(part for part in key.split("/") if part not in {"", "."})
        return end in self._ends and self._ends[end] is None
