"""Images from image files: folders of classes, and folders with a list of labels."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeVar, cast, overload

import numpy as np
import torch
from torch import Tensor

from clarinet.data.streams import RESIDENT_BYTES, ImageFiles
from clarinet.data.training_data import DomainData
from clarinet.files.below import files_below, is_image
from clarinet.files.folders import Placed, around_told, class_list, place
from clarinet.files.kinds import doubles_told, no_pictures_told, split_off_doubles
from clarinet.files.looks import looks_of_files
from clarinet.files.names import (
    NO_LABEL,
    as_listed,
    class_lines,
    classes_in_order,
    numbers_among,
    require_distinct_classes,
    strangers,
)
from clarinet.files.pictures import decoded, is_grey
from clarinet.files.refusal import MOST_NAMED, Refused, require_none
from clarinet.files.splits import SPLITS
from clarinet.recipes.choices import Looks
from clarinet.recipes.counting import many
from clarinet.recipes.errors import DataError, FilesLeftOut, OtherClasses

Found = TypeVar("Found")

LOOKED_AT = 32  # pixels a side of an image that is only tried
LABEL_DIGITS = 9  # of a label in a list; a class has fewer


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """The image files below a folder, and what the place of each says.

    Args:
        folder: where they lie.
        files: by relative path, with / between the parts.
        placed: those that count, train before test.
        listed: classes that a file lists in their order, where one does.
        remarks: what a person should know of it, in sentences without their full stop.
        left_out: files that cannot be taken.
        others: what else lies there and is not read, in such sentences.
    """

    folder: Path
    files: dict[str, Path]
    placed: list[Placed]
    listed: Sequence[str] = ()
    remarks: Sequence[str] = ()
    left_out: Sequence[Refused] = ()
    others: Sequence[str] = ()

    def paths(self, split: str | None = None) -> list[Path]:
        """Where the images of a split, or all, lie."""
        return [self.files[one.path] for one in self.placed if split in {None, one.split}]

    @property
    def looks(self) -> Looks:
        """What the images look like that a domain trains on, which come first."""
        return looks_of_files(self.paths(self.placed[0].split))

    def said(self, *, of_others: bool = True) -> list[str]:
        """All that is to be said of it, in sentences; without what is no image, unless it is wanted."""
        remarks = [*self.remarks, *(self.others if of_others else ())]
        told = [f"{self.folder}: {remark}." for remark in remarks]
        if self.left_out:
            count = many(len(self.left_out), "file")
            told.append(f"{self.folder}: {count} left out. {' '.join(map(str, self.left_out[:MOST_NAMED]))}")
        return told


@overload
def load_folder(
    folder: Path | str, *, side: None, class_names: Sequence[str] | None = None, skip_bad: bool = False
) -> tuple[dict[str, Tensor], list[str]]: ...


@overload
def load_folder(
    folder: Path | str, *, side: int, class_names: Sequence[str] | None = None, skip_bad: bool = False
) -> tuple[DomainData, list[str]]: ...


def load_folder(
    folder: Path | str,
    *,
    side: int | None,
    class_names: Sequence[str] | None = None,
    skip_bad: bool = False,
) -> tuple[dict[str, Tensor] | DomainData, list[str]]:
    """Read a folder of images: train/CLASS/*, test/CLASS/*, or CLASS/* as train alone.

    The images of a split may also lie in it without class folders: a target needs no classes. All become
    squares of one size, smoothed; they are grey if all files are. What counts as a split or a class, and the
    order, follow the rules of the application's import of a zip without a CSV. So a label file of the
    application fits the folder that was imported. Files that are no images are left out.

    Args:
        folder: where the images or the class folders are, or one folder that holds them all. A single folder
            is taken for that, with a warning, unless it is called like one of `class_names`: a class.
        side: pixels of the squares; None keeps the images' size, which must be the same.
        class_names: the classes in the order that counts them, as those of a label file; None takes those of
            a `classes.txt`, or the folders by the alphabet, numbers by their value. Of a class that is not
            among them the test images are left out, with a warning, and the others' label is -1.
        skip_bad: leave files out that cannot be read or lie in no place, with a warning.

    Returns:
        The arrays x_train, y_train, x_test, y_test that are there, in the order of the paths, and the class
        names that the labels count. As `load_npz` gives them, images are uint8 (N, H, W) or (N, H, W, 3), and
        labels (N,) int64. Where squares of all images would take more than RESIDENT_BYTES, images are
        `ImageFiles`, which training reads as it needs them.

    Raises:
        DataError: no image, or some that cannot be read, lie too deep, or beside class folders; all of them
            are named. Or a folder that cannot be read, or whose name is no Unicode, or two classes of one
            name.
    """
    found = files_of(Path(folder), skip_bad=skip_bad, class_names=class_names or ())
    arrays, classes = load_files(found, side=side)
    for sentence in found.said(of_others=False):
        warnings.warn(sentence, FilesLeftOut, stacklevel=2)
    if class_names is None:
        return arrays, classes
    require_distinct_classes("class_names", class_names)
    numbers = numbers_among(class_names, classes)
    if "y_train" in arrays:
        arrays["y_train"] = torch.tensor(numbers)[arrays["y_train"]]
    if "y_test" in arrays:
        given = arrays["y_test"].tolist()
        arrays = scored(arrays, numbers)
        counts = [given.count(number) for number in range(len(classes))]
        if told := strangers(class_names, classes, counts, whose="list"):
            warnings.warn(f"{folder}: {told}; they are left out", OtherClasses, stacklevel=2)
    return arrays, list(class_names)


def load_files(found: FolderFiles, *, side: int | None) -> tuple[DomainData, list[str]]:
    """The arrays of files that were placed, and their classes; see `load_folder`."""
    placed = found.placed
    names = {one.class_name for one in placed if one.class_name is not None}
    classes = (as_listed(names, found.listed) if names else None) or classes_in_order(names)
    images = images_of(found.paths(), side)
    arrays: dict[str, Tensor | ImageFiles] = {}
    for split in SPLITS:
        rows = [row for row, one in enumerate(placed) if one.split == split]
        if not rows:
            continue
        arrays[f"x_{split}"] = images[rows[0] : rows[-1] + 1]
        own = [placed[row].class_name for row in rows]
        known = [name for name in own if name is not None]
        if known:
            numbers = dict(zip(known, numbers_among(classes, known), strict=True))
            arrays[f"y_{split}"] = torch.tensor([NO_LABEL if name is None else numbers[name] for name in own])
    return cast("DomainData", arrays), classes


def files_of(folder: Path, *, skip_bad: bool = False, class_names: Sequence[str] = ()) -> FolderFiles:
    """The image files below a folder, and what the place of each says.

    Args:
        folder: that is looked through.
        skip_bad: decode every file, and leave those out that cannot be; and what lies in no place.
        class_names: those that are known; a single folder called like one of them is a class.

    Raises:
        DataError: no image; a folder that cannot be read; and, unless `skip_bad`, what lies in no place.
    """
    below = {path.relative_to(folder).as_posix(): path for path in files_below(folder)}
    images = {path: file for path, file in below.items() if is_image(file)}
    counting, doubles = split_off_doubles(images)
    files = {path: images[path] for path in counting}
    path = class_list(below)
    listed = [] if path is None else class_lines(below[path].read_text(encoding="utf-8", errors="replace"))
    placement = place(files, str(folder), class_names=class_names, listed=listed)
    placed = placement.placed if skip_bad else placement.require_all()
    left_out = list(placement.refused)
    if skip_bad:
        unreadable = {one.path: why for one in placed if (why := why_unreadable(files[one.path]))}
        placed = [one for one in placed if one.path not in unreadable]
        left_out += unreadable.values()
    if not placed:
        raise DataError(f"{folder} holds no images; expected train/CLASS/*.png, or CLASS/*.png")
    remarks = [*placement.remarks, *doubles_told(doubles)]
    if placement.around:
        remarks.append(around_told(placement.around))
    others = no_pictures_told([name for name in below if name not in images and name != path])
    names = {one.class_name for one in placed if one.class_name is not None}
    if path is not None and as_listed(names, listed) is None:
        remarks.append(f'"{path}" does not list the classes of the images; left out')
        listed = []
    return FolderFiles(folder, files, placed, listed, remarks, left_out, others)


def why_unreadable(file: Path) -> Refused | None:
    """Why an image file cannot be read, if that is so; all of it is decoded."""
    try:
        decoded(file, side=LOOKED_AT)
    except Refused as refusal:
        return refusal
    return None


def scored(arrays: DomainData, numbers: Sequence[int]) -> DomainData:
    """Arrays with other numbers for their test labels; what has none, or -1, is left out with its image."""
    labels = numbered(arrays["y_test"], numbers)  # (T,)
    kept = labels >= 0
    if bool(kept.any()):
        return {**arrays, "x_test": arrays["x_test"][kept], "y_test": labels[kept]}
    trained = {name: array for name, array in arrays.items() if name not in {"x_test", "y_test"}}
    return cast("DomainData", trained)


def numbered(labels: Tensor, numbers: Sequence[int]) -> Tensor:
    """(N,) labels with other numbers: each class the one at its place, and -1 for what has none or is -1."""
    # What is unknown, -1, finds the last entry.
    return torch.tensor([*numbers, NO_LABEL])[labels.clamp(min=NO_LABEL)]


def load_listed(folder: Path, labels: Path) -> tuple[Tensor, Tensor]:
    """Read the images that a text file lists, one `NAME LABEL` a line, all of one size.

    Returns:
        uint8 images, (N, H, W) or (N, H, W, 3), and (N,) int64 labels, in the order of the list.

    Raises:
        DataError: a line of another form, an image that is missing, broken or of another size.
    """
    try:
        lines = [line.split() for line in labels.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{labels} cannot be read: {error}") from error
    for number, words in enumerate(lines, start=1):
        is_pair = len(words) == 2 and words[1].isdecimal()  # noqa: PLR2004 - a name and a label
        if not is_pair or len(words[1]) > LABEL_DIGITS:
            raise DataError(f"line {number} of {labels} is {' '.join(words)!r:.80}; expected NAME LABEL")
    if not lines:
        raise DataError(f"{labels} lists no image")
    images = read_images([folder / name for name, _ in lines], side=None)
    return images, torch.tensor([int(label) for _, label in lines])


def images_of(files: Sequence[Path], side: int | None, *, colour: bool | None = None) -> Tensor | ImageFiles:
    """Files as `read_images` decodes them, or to be read later where all would take too much memory.

    Args:
        files: at least one.
        side: see `read_images`.
        colour: with a side, whether they become RGB, or else grey; None: RGB unless all are grey.
    """
    if side is None:
        return read_images(files, side=None)
    are_grey = _of_all(files, is_grey)  # of every file: what is no image is refused now
    images = ImageFiles(files, image_size=side, colour=not all(are_grey) if colour is None else colour)
    return images if prod(images.shape) > RESIDENT_BYTES else images.read(torch.arange(len(files)))


def _of_all(files: Sequence[Path], read: Callable[[Path], Found]) -> list[Found]:
    """What `read` finds in each; raises Refused or ManyRefused, of all that it refuses."""
    found: list[Found] = []
    refused: list[Refused] = []
    for file in files:
        try:
            one = read(file)
        except Refused as refusal:
            refused.append(refusal)
            found.clear()
            continue
        if not refused:
            found.append(one)
    require_none(refused)
    return found


def read_images(files: Sequence[Path], *, side: int | None) -> Tensor:
    """Decode image files into one stack.

    Args:
        files: at least one.
        side: pixels of the squares that they become; None keeps their size, which must be the same.

    Returns:
        uint8, (N, H, W) if all files are grey, else (N, H, W, 3).

    Raises:
        DataError: a file that is no image, is cut short or is of another size.
    """
    pictures = _of_all(files, lambda file: decoded(file, side=side))
    shapes = {array.shape[:2] for array in pictures}
    if len(shapes) > 1:
        odd = next(i for i, array in enumerate(pictures) if array.shape[:2] != pictures[0].shape[:2])
        raise DataError(f"{files[odd]} has another size than {files[0]}")
    if all(array.ndim == 2 for array in pictures):  # noqa: PLR2004 - grey
        return torch.from_numpy(np.stack(pictures))
    coloured = [array if array.ndim > 2 else np.stack([array] * 3, axis=2) for array in pictures]  # noqa: PLR2004
    return torch.from_numpy(np.stack(coloured))
