"""Data sets whose items are images, with or without a label: torch's, Hugging Face's, or a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from clarinet.data.stacks import stack_of
from clarinet.files.pictures import as_seen
from clarinet.recipes.errors import DataError

IMAGE_KEYS = ("image", "img", "pixel_values")  # of items that are mappings, in this order
LABEL_KEYS = ("label", "labels", "fine_label")


class Items(Protocol):
    """Items by number, such as a torch Dataset: an image, (image, label), or a mapping with both."""

    def __len__(self) -> int:
        """N."""

    # An item is whatever its data set makes of it; `parts_of` finds out.
    def __getitem__(self, place: int, /) -> Any: ...


def parts_of(item: Any, name: str) -> tuple[Any, Any]:
    """An item's image, and its label or None.

    Raises:
        DataError: a mapping without an image under a usual key.
    """
    if isinstance(item, Mapping):
        found = [key for key in IMAGE_KEYS if key in item]
        if not found:
            raise DataError(
                f"items of {name} have {', '.join(map(str, item))}; an image is looked for as "
                f"{', '.join(IMAGE_KEYS)}: rename the column"
            )
        return item[found[0]], next((item[key] for key in LABEL_KEYS if key in item), None)
    if isinstance(item, tuple | list) and len(item) > 1:
        return item[0], item[1]
    return (item[0] if isinstance(item, tuple | list) and item else item), None


def picture_of_item(item: Any, name: str) -> Image.Image:
    """An item's image in mode L or RGB: a PIL image as people see it, or an array as `stack_of` takes one.

    Raises:
        DataError: no image.
    """
    image, _ = parts_of(item, name)
    if isinstance(image, Image.Image):
        return as_seen(image)
    if not isinstance(image, np.ndarray | Tensor):
        raise DataError(
            f"items of {name} are {type(image).__name__}; expected a PIL image, an array or a tensor"
        )
    return Image.fromarray(np.ascontiguousarray(stack_of(image[None], f"items of {name}")[0].cpu().numpy()))


def labels_of_items(items: Items, name: str) -> list[Any] | None:
    """The labels of all items, as names where the data set says which; None where there are none."""
    labels = [parts_of(items[place], name)[1] for place in range(len(items))]
    if any(label is None for label in labels):
        return None
    names = _names(items)
    plain: list[Any] = [label.item() if isinstance(label, Tensor | np.generic) else label for label in labels]
    return [names[label] for label in plain] if names else plain


def _names(items: Items) -> Sequence[str] | None:
    """The names that Hugging Face's `ClassLabel` gives to numbers."""
    features = getattr(items, "features", None)
    if not isinstance(features, Mapping):
        return None
    found = [getattr(features[key], "names", None) for key in LABEL_KEYS if key in features]
    return found[0] if found else None


@dataclass(frozen=True, slots=True, eq=False)
class ItemImages:
    """The images of items as a stream, brought to one square size where they are read.

    A data set that distorts its images by chance is another one in each pass: give it without that.

    Args:
        items: of the data set.
        name: what errors call it.
        side: pixels of the squares.
        colour: RGB, or else luminance.
    """

    items: Items
    name: str
    side: int
    colour: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, S, S) or (N, S, S, 3)."""
        return (len(self), self.side, self.side, *([3] if self.colour else []))

    def __len__(self) -> int:
        return len(self.items)

    def read(self, rows: Tensor) -> Tensor:
        """Rows (B,) int64 as uint8 (B, S, S) or (B, S, S, 3); see ImageStream.

        Raises:
            DataError: an item without an image.
        """
        images = np.empty((len(rows), *self.shape[1:]), np.uint8)
        for image, row in zip(images, rows.tolist(), strict=True):
            image[:] = self._square(picture_of_item(self.items[row], self.name))
        return torch.from_numpy(images)

    def _square(self, picture: Image.Image) -> NDArray[np.uint8]:
        if not self.colour:
            picture = picture.convert("L")
        if picture.size != (self.side, self.side):
            picture = picture.resize((self.side, self.side), Image.Resampling.BILINEAR)
        return np.asarray(picture.convert("RGB") if self.colour else picture)
