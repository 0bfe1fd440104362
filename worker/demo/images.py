"""Images for the demo without a download: scikit-learn's handwritten digits, as two domains."""

from collections.abc import Mapping
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Pixels = NDArray[np.uint8]
SOURCE_COUNT = 900  # the rest is the target: other people wrote other digits
TEST_COUNT = 300
SIDE = 28  # pixels
MARGIN = 3.0  # pixels
TURNED = np.deg2rad(12)  # the target leans to one side, everybody's a little differently


def _drawn(images: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, 8, 8) ink in [0, 1] -> (N, SIDE, SIDE): enlarged linearly, turned by angles (N,) in radians."""
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))  # (N, 12, 12)
    along = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE - 2 * MARGIN) * 8  # in pixels of the original
    y, x = along[:, None], along[None, :]
    cos, sin = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    rows = np.clip(cos * y - sin * x + 5.5, 0, 10.999)  # (N, SIDE, SIDE) places in the padded image
    columns = np.clip(sin * y + cos * x + 5.5, 0, 10.999)
    top, left = rows.astype(int), columns.astype(int)
    down, right = rows - top, columns - left
    n = np.arange(len(images))[:, None, None]
    above = padded[n, top, left] * (1 - right) + padded[n, top, left + 1] * right
    below = padded[n, top + 1, left] * (1 - right) + padded[n, top + 1, left + 1] * right
    drawn: NDArray[np.float64] = above * (1 - down) + below * down
    return drawn


def _on_paper(ink: NDArray[np.float64]) -> Pixels:
    """Dark ink on white paper."""
    return (255 - 235 * ink).round().astype(np.uint8)


def _on_stone(ink: NDArray[np.float64], random: np.random.Generator) -> Pixels:
    """Faded ink on grainy stone under light from one side."""
    count = len(ink)
    across = np.linspace(-1, 1, SIDE)
    angle = random.uniform(0, 2 * np.pi, count)
    slope = np.cos(angle)[:, None, None] * across[:, None] + np.sin(angle)[:, None, None] * across
    ground = random.uniform(160, 190, (count, 1, 1)) + random.uniform(5, 15, (count, 1, 1)) * slope
    grain = random.normal(0, 10, ink.shape)
    faded = random.uniform(100, 140, (count, 1, 1)) * ink
    return np.clip(ground + grain - faded, 0, 255).round().astype(np.uint8)


def demo_domains() -> tuple[dict[str, Pixels], dict[str, Pixels]]:
    """Source and target as arrays of an npz; the same ones every time.

    The target's training images come with classes too, as data that people bring may; training ignores them.
    """
    pixels, classes = load_digits(return_X_y=True)
    ink = pixels.reshape(-1, 8, 8) / 16
    labels = classes.astype(np.uint8)
    random = np.random.default_rng(20260101)
    order = random.permutation(len(ink))
    source, target = order[:SOURCE_COUNT], order[SOURCE_COUNT:]
    leaning = random.normal(TURNED, TURNED / 4, len(target))
    paper = _on_paper(_drawn(ink[source], np.zeros(len(source))))
    stone = _on_stone(_drawn(ink[target], leaning), random)
    train, test = slice(None, -TEST_COUNT), slice(-TEST_COUNT, None)
    return (
        {"x_train": paper, "y_train": labels[source]},
        {
            "x_train": stone[train],
            "y_train": labels[target][train],
            "x_test": stone[test],
            "y_test": labels[target][test],
        },
    )


def as_npz(arrays: Mapping[str, Pixels]) -> BytesIO:
    """The bytes of an npz file with these arrays."""
    file = BytesIO()
    np.savez_compressed(file, **dict(arrays))  # type: ignore[arg-type]  # its stub takes no mapping
    file.seek(0)
    return file
