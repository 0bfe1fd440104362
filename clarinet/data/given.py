"""Images as a caller gives them, read once it is known in which size they are wanted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from clarinet.data.folders import FolderFiles, files_of, images_of
from clarinet.data.items import ItemImages, Items, labels_of_items, picture_of_item
from clarinet.data.stacks import stack_of
from clarinet.data.streams import RESIDENT_BYTES, ImageStream
from clarinet.data.training_data import check_images, looks_of_images
from clarinet.files.below import image_files
from clarinet.files.folders import Placed
from clarinet.files.looks import evenly_spread, looks_among, looks_of_files
from clarinet.files.splits import SPLITS
from clarinet.recipes.choices import Looks
from clarinet.recipes.errors import DataError

Images = NDArray[np.generic] | Tensor | ImageStream | str | Path | Sequence[Any] | Items
"""An array, a tensor or a stream; a folder or a file, or several; or a data set whose items are images."""

Part = Literal["train", "scored", "all"]
"""Of a folder: what a domain trains on, what a model is scored on (test if there is one), or all by path."""


class Given(Protocol):
    """Images of one domain, not read yet."""

    def __len__(self) -> int:
        """N."""

    @property
    def looks(self) -> Looks:
        """What they are, by a sample; raises DataError where there are none."""

    def read(self, side: int) -> Tensor | ImageStream:
        """uint8 (N, H, W) or (N, H, W, 3): arrays as they are, all else in squares of `side` pixels."""

    @property
    def labels(self) -> list[Any] | None:
        """What the source of the images says about their classes: folders' names, items' labels."""


def given(images: Images, name: str, *, part: Part = "all") -> Given:
    """What a caller gave.

    Args:
        images: an array or tensor as `stack_of` takes it, or an ImageStream; the path of a folder or a file,
            or a list of paths; a torch Dataset, a data set of Hugging Face, or a list of images.
        name: what errors call them.
        part: of a folder with `train` and `test`.

    Raises:
        DataError: nothing of the kind, or images of another type, range or shape.
    """
    if isinstance(images, np.ndarray | Tensor):
        return GivenStack(stack_of(images, name), name)
    if isinstance(images, str | Path):
        return _at(Path(images), part)
    if hasattr(images, "read") and hasattr(images, "shape"):
        return GivenStack(cast("ImageStream", images), name)
    if not hasattr(images, "__len__") or not hasattr(images, "__getitem__"):
        raise DataError(
            f"{name} is {type(images).__name__}; expected an array, a tensor, a folder, files, or a data set "
            "with a length and items by number"
        )
    if isinstance(images, list | tuple) and images and all(isinstance(one, str | Path) for one in images):
        return GivenFiles([Path(one) for one in images])
    return GivenItems(cast("Items", images), name)


def _at(path: Path, part: Part) -> Given:
    if path.is_file():
        return GivenFiles([path])
    if not path.is_dir():
        raise DataError(f"{path} is neither a folder of images nor a file")
    if part == "all":
        return GivenFiles(image_files(path))
    return placed_part(files_of(path), part)


def placed_part(found: FolderFiles, part: Part) -> "GivenFiles":
    """The files of a folder that a part of it has."""
    chosen = _part(found.placed, part)
    return GivenFiles([found.files[one.path] for one in chosen], [one.class_name for one in chosen])


def _part(placed: list[Placed], part: Part) -> list[Placed]:
    splits = [split for split in SPLITS if any(one.split == split for one in placed)]
    wanted = splits[0] if part == "train" else splits[-1]
    return [one for one in placed if one.split == wanted]


@dataclass(frozen=True, eq=False)
class GivenStack:
    """Images in memory, or in a stream of the caller's."""

    images: Tensor | ImageStream
    name: str

    def __post_init__(self) -> None:
        check_images(self.name, self.images, least=0)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def looks(self) -> Looks:
        """What they are, by a sample."""
        return looks_of_images(self.images)

    def read(self, side: int) -> Tensor | ImageStream:  # noqa: ARG002 - what the others need
        """As they are."""
        return self.images

    @property
    def labels(self) -> list[Any] | None:
        """None: arrays say nothing of classes."""
        return None


@dataclass(frozen=True, eq=False)
class GivenFiles:
    """Image files, and the class folder of each, None for none."""

    paths: Sequence[Path]
    classes: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def looks(self) -> Looks:
        """What they are, by a sample."""
        return looks_of_files(self.paths)

    def read(self, side: int) -> Tensor | ImageStream:
        """Squares; those of many files are read as they are needed."""
        return images_of(self.paths, side)

    @property
    def labels(self) -> list[Any] | None:
        """The names of the class folders, where each file lies in one."""
        named = [name for name in self.classes if name is not None]
        return named if len(named) == len(self.paths) else None


@dataclass(frozen=True, eq=False)
class GivenItems:
    """A data set of images; those of a sample tell whether it is in colour."""

    items: Items
    name: str

    def __len__(self) -> int:
        return len(self.items)

    def _sample(self) -> Iterator[Image.Image]:
        for place in evenly_spread(len(self.items)):
            yield picture_of_item(self.items[place], self.name)

    @property
    def looks(self) -> Looks:
        """What they are, by a sample."""
        return looks_among(map(np.asarray, self._sample()))

    def read(self, side: int) -> Tensor | ImageStream:
        """Squares; those of many items are read as they are needed."""
        colour = any(picture.mode == "RGB" for picture in self._sample())
        images = ItemImages(self.items, self.name, side, colour)
        return images if prod(images.shape) > RESIDENT_BYTES else images.read(torch.arange(len(images)))

    @property
    def labels(self) -> list[Any] | None:
        """Those of the items."""
        return labels_of_items(self.items, self.name)
