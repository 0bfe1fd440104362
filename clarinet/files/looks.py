"""Whether images are digits or photographs: a rule over their pixels. Never imports torch.

A digit is a sign: strokes of ink on a ground, which 28 pixels show. A data set is "digits" where enough of
its images are signs, and "photographs" where they are not. So what is neither is taken for photographs, whose
recipe asks less of images. Each image is looked at in 28 by 28 pixels, as the networks for digits see it:

1. Its ground is the colour in the middle of its border (the median of each channel). Each pixel has a
   distance from it, as a share of the image's largest: 0 is ground, 1 is ink.
2. It has two tones: less than TONES_BETWEEN of its pixels lie between ground and ink. Photographs are full of
   them.
3. It has strokes: the ink covers more than STROKE_LENGTH squares as wide as the stroke is. What stands on a
   plain ground in a photograph, such as a plane or a shoe, covers fewer.
4. Where it has more than 28 pixels a side: not more than FINE_LOSS of its variance is lost in 28. Drawings of
   fine lines lose half of it, and are better seen by a network for photographs.

The bounds lie between what was measured; docs/results/looks.md has the figures of every data set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from clarinet.files.pictures import as_seen, opened
from clarinet.recipes.choices import Looks
from clarinet.recipes.errors import DataError

SAMPLE: Final = 256  # images of a data set that are looked at
SIDE: Final = 28  # pixels
LARGE_SIDE: Final = 4 * SIDE  # pixels in which what is lost is measured
BETWEEN: Final = (0.25, 0.65)  # of the way from ground to ink
TONES_BETWEEN: Final = 0.32
INK: Final = 0.4  # of the way from ground to ink
STROKE_LENGTH: Final = 4.25  # in widths
FINE_LOSS: Final = 0.2
SIGNS: Final = 0.48  # share of a data set's images that must be signs
LEAST_INK: Final = 25.5  # distance that is black on white: smaller ones, on a plain image, are no ink


class Stack(Protocol):
    """Images by row: an array or a tensor, uint8 (N, H, W) or (N, H, W, 3)."""

    def __len__(self) -> int:
        """N."""

    def __getitem__(self, row: int, /) -> object:
        """One image, of which numpy makes an array."""


def looks_of(images: Stack) -> Looks:
    """What a stack of images looks like, from a sample of at most SAMPLE of them.

    Args:
        images: uint8, (N, H, W) or (N, H, W, 3).

    Raises:
        DataError: there is no image.
    """
    return looks_among(np.asarray(images[row]) for row in evenly_spread(len(images)))


@dataclass(frozen=True, slots=True)
class Measured:
    """What decides.

    Args:
        signs: share of the images that have two tones and strokes, rules 2 and 3.
        fine_loss: median share of an image's variance that 28 pixels do not show, rule 4.
    """

    signs: float
    fine_loss: float

    @property
    def looks(self) -> Looks:
        """The verdict."""
        return "digits" if self.signs >= SIGNS and self.fine_loss <= FINE_LOSS else "photographs"


def looks_among(sample: Iterable[NDArray[np.uint8]]) -> Looks:
    """What images look like that were chosen evenly; see `measured`."""
    return measured(sample).looks


def measured(sample: Iterable[NDArray[np.uint8]]) -> Measured:
    """The figures of images that were chosen evenly; one is in memory at a time.

    Args:
        sample: uint8, each (H, W) or (H, W, 3), of any size.

    Raises:
        DataError: there is no image.
    """
    small: list[NDArray[np.uint8]] = []
    losses: list[float] = []
    for pixels in sample:
        image = Image.fromarray(np.ascontiguousarray(pixels))
        losses.append(_fine_loss(image))
        small.append(np.asarray(_resized(image, SIDE).convert("RGB")))
    if not small:
        raise DataError("there are no images to look at")
    return Measured(_share_of_signs(np.stack(small)), median(losses))


def looks_of_files(paths: Sequence[Path]) -> Looks:
    """What image files look like, from a sample of at most SAMPLE of them.

    Raises:
        DataError: there is none, or one that was chosen cannot be read.
    """
    return looks_among(_seen(paths[place]) for place in evenly_spread(len(paths)))


def looks_of_pair(*domains: Looks) -> Looks:
    """What domains need together: one of photographs makes it a pair of photographs."""
    return "photographs" if "photographs" in domains else "digits"


def _seen(path: Path) -> NDArray[np.uint8]:
    """The pixels of a file, made smaller while it is decoded: more of them would not be looked at."""
    with opened(path, path) as image:
        return np.asarray(as_seen(image, longest=LARGE_SIDE))


def evenly_spread(count: int, *, most: int = SAMPLE) -> Sequence[int]:
    """Places of the images to look at: all, or so many of them evenly spread, the same ones each time."""
    taken = min(count, most)
    return [place * count // taken for place in range(taken)]


def _share_of_signs(images: NDArray[np.uint8]) -> float:
    """In [0, 1], of uint8 (N, 28, 28, 3)."""
    ink = _ink(images)
    low, high = BETWEEN
    between = ((ink > low) & (ink < high)).mean((1, 2))  # (N,)
    covered = ink > INK
    length = covered.sum((1, 2)) / np.maximum(_widest(covered), 1) ** 2  # (N,)
    return float(((between < TONES_BETWEEN) & (length > STROKE_LENGTH)).mean())


def _resized(image: Image.Image, side: int) -> Image.Image:
    """A square, smoothed where it shrinks; of a large one in two goes, of which the first is quick."""
    if image.size == (side, side):
        return image
    return image.resize((side, side), Image.Resampling.BILINEAR, reducing_gap=3.0)


def _fine_loss(image: Image.Image) -> float:
    """The share of an image's variance that 28 pixels do not show."""
    side = min(max(image.size), LARGE_SIDE)
    if side <= SIDE:
        return 0.0
    large = _resized(image, side).convert("L")
    shown = _resized(large, SIDE).resize(large.size, Image.Resampling.BICUBIC)
    pixels = np.asarray(large, np.float64)
    variance = float(pixels.var())
    return float(np.square(pixels - np.asarray(shown)).mean()) / variance if variance else 0.0


def _ink(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(N, S, S) distance of each pixel from its image's ground, in [0, 1]; of (N, S, S, 3)."""
    pixels = images.astype(np.float64)
    border = np.concatenate([pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1]], axis=1)
    ground = np.median(border, axis=1)[:, None, None]  # (N, 1, 1, 3)
    distance = np.sqrt(np.square(pixels - ground).mean(3))
    ink: NDArray[np.float64] = distance / np.maximum(distance.max((1, 2)), LEAST_INK)[:, None, None]
    return ink


def _widest(covered: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N,) side of the largest square that is all covered; of (N, S, S)."""
    sides = covered.astype(np.int64)  # of the largest square that ends at a pixel
    for row in range(1, covered.shape[1]):
        for column in range(1, covered.shape[2]):
            around = np.minimum(sides[:, row - 1, column], sides[:, row, column - 1])
            around = np.minimum(around, sides[:, row - 1, column - 1])
            sides[:, row, column] = np.where(covered[:, row, column], around + 1, 0)
    widest: NDArray[np.int64] = sides.max((1, 2))
    return widest
