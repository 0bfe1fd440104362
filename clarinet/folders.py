"""Images from image files: folders of classes, and folders with a list of labels."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from clarinet.errors import DataError

IMAGE_FILES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".gif", ".tif", ".tiff")
GREY_MODES = frozenset({"1", "L", "LA"})


def load_folder(folder: Path, *, side: int) -> tuple[dict[str, Tensor], list[str]]:
    """Read a folder of images: train/CLASS/*, test/CLASS/*, or CLASS/* as train alone.

    The images of train may also lie in it without class folders: a target needs no classes. All become
    squares of one size, smoothed; they are grey if all files are. Images and classes are in the order that
    the application gives them when the same folder is imported as a zip, so that its label files fit.

    Args:
        folder: where the images or the class folders are.
        side: pixels of the squares.

    Returns:
        x_train, y_train, x_test, y_test, those that are there, as `load_npz` gives them, by their paths; and
        the class names that the labels count, by the alphabet, numbers by their value.

    Raises:
        DataError: no image, or one that cannot be read.
    """
    parts = {part: folder / part for part in ("train", "test") if (folder / part).is_dir()}
    parts = parts or {"train": folder}
    listed = {part: _classes_of(path) for part, path in parts.items()}
    named = {name for found in listed.values() for name, _ in found if name is not None}
    classes = sorted(named, key=_natural)
    files = [file for found in listed.values() for _, file in found]
    if not files:
        raise DataError(f"{folder} holds no images; expected train/CLASS/*.png, or CLASS/*.png")
    images = read_images(files, side=side)
    arrays: dict[str, Tensor] = {}
    start = 0
    for part, found in listed.items():
        if not found:
            continue
        arrays[f"x_{part}"] = images[start : start + len(found)]
        start += len(found)
        if classes and all(name is not None for name, _ in found):
            arrays[f"y_{part}"] = torch.tensor([classes.index(name) for name, _ in found if name is not None])
    return arrays, classes


def _classes_of(folder: Path) -> list[tuple[str | None, Path]]:
    """Class and path of every image in a folder, or no class for those that lie in it directly."""
    inside = list(folder.iterdir())
    direct = [path for path in inside if _is_image(path)]
    below = [path for group in inside if group.is_dir() for path in group.rglob("*") if _is_image(path)]
    # As text: paths themselves sort by their parts, "dog/" before "dog house/".
    images = sorted(direct or below, key=lambda path: path.relative_to(folder).as_posix())
    return [(None if direct else path.relative_to(folder).parts[0], path) for path in images]


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key in which 2 comes before 10."""
    pieces = re.split(r"(\d+)", name)
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces], name


def _is_image(path: Path) -> bool:
    # What a Mac writes beside an image, "._a.png", is none.
    return path.suffix.lower() in IMAGE_FILES and not path.name.startswith("._") and path.is_file()


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
        if len(words) != 2 or not words[1].isdecimal():  # noqa: PLR2004 - a name and a label
            raise DataError(f"line {number} of {labels} is {' '.join(words)!r}; expected NAME LABEL")
    if not lines:
        raise DataError(f"{labels} lists no image")
    images = read_images([folder / name for name, _ in lines], side=None)
    return images, torch.tensor([int(label) for _, label in lines])


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
    decoded = [_decoded(file, side) for file in files]
    shapes = {array.shape[:2] for array in decoded}
    if len(shapes) > 1:
        odd = next(i for i, array in enumerate(decoded) if array.shape[:2] != decoded[0].shape[:2])
        raise DataError(f"{files[odd]} has another size than {files[0]}")
    if all(array.ndim == 2 for array in decoded):  # noqa: PLR2004 - grey
        return torch.from_numpy(np.stack(decoded))
    coloured = [array if array.ndim > 2 else np.stack([array] * 3, axis=2) for array in decoded]  # noqa: PLR2004
    return torch.from_numpy(np.stack(coloured))


def _decoded(file: Path, side: int | None) -> np.ndarray:
    try:
        with Image.open(file) as opened:
            turned = ImageOps.exif_transpose(opened)  # as the camera was held
            image = turned.convert("L" if opened.mode in GREY_MODES else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{file} cannot be read as an image: {error}") from error
    if side is not None and image.size != (side, side):
        image = image.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(image)
