"""The image data at hand, as the rule that tells digits from photographs meets it.

`CLARINET_DATA=data python -m tests.clarinet.looks` prints the figures of docs/results/looks.md.
"""

import io
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images

from clarinet.files.looks import evenly_spread, measured
from clarinet.recipes.choices import Looks
from clarinet.reproduction.glyphs import glyphs
from clarinet.reproduction.synthetic import synthetic_digits
from worker.demo.images import demo_domains

DATA = Path(os.environ.get("CLARINET_DATA", Path(__file__).parents[3] / "shared" / "data"))
Pixels = NDArray[np.uint8]
Stack = Sequence[Pixels]


def grey(images: Stack, side: int | None = None) -> Stack:
    """Without colours, and in another size if one is given."""
    pictures = [Image.fromarray(image).convert("L") for image in images]
    if side is not None:
        pictures = [picture.resize((side, side), Image.Resampling.BILINEAR) for picture in pictures]
    return [np.asarray(picture) for picture in pictures]


def enlarged(images: Stack, side: int) -> Stack:
    """In more pixels, smoothly."""
    return [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC)) for image in images
    ]


def inverted(images: Stack) -> Stack:
    """Dark for light."""
    return [255 - image for image in images]


def on_white(images: Stack) -> Stack:
    """Photographs cut out as an ellipse of any shape on white, as shops show their goods."""
    draws = np.random.default_rng(0)
    found = []
    for image in images:
        rows, columns = np.mgrid[-1 : 1 : image.shape[0] * 1j, -1 : 1 : image.shape[1] * 1j]
        height, width = draws.uniform(0.4, 0.9, 2)
        inside = (rows / height) ** 2 + (columns / width) ** 2 < 1
        found.append(np.where(inside[..., None], image, 255).astype(np.uint8))
    return found


@cache
def arrays(name: str, split: str) -> Stack:
    """A sample of the images of an npz of CLARINET_DATA."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        images = file[f"x_{split}"]
    return [images[row] for row in evenly_spread(len(images))]


@cache
def pacs(domain: str, only: str = "") -> Stack:
    """A sample of the images of a domain of PACS, of one class if one is named."""
    with zipfile.ZipFile(DATA / f"pacs_{domain}.zip") as file:
        names = sorted(name for name in file.namelist() if name.endswith((".jpg", ".png")))
        names = [name for name in names if only in ("", name.split("/")[-2])]
        chosen = [names[place] for place in evenly_spread(len(names))]
        return [np.asarray(Image.open(io.BytesIO(file.read(name))).convert("RGB")) for name in chosen]


@cache
def planes() -> Stack:
    """The airplanes of CIFAR-10, most of them on a plain sky."""
    with np.load(DATA / "cifar10_subset.npz", allow_pickle=False) as file:
        images = file["x_train"][file["y_train"] == 0]
    return [images[row] for row in evenly_spread(len(images))]


@cache
def samples(name: str, side: int) -> Stack:
    """Parts of one of scikit-learn's two photographs."""
    picture = load_sample_images().images[{"china": 0, "flower": 1}[name]]
    draws = np.random.default_rng(0)
    places = zip(draws.integers(0, 427 - side, 100), draws.integers(0, 640 - side, 100), strict=True)
    return [picture[row : row + side, column : column + side] for row, column in places]


def demo(domain: int) -> Stack:
    """The images of the demo's source or target."""
    return list(demo_domains()[domain]["x_train"])


def eight() -> Stack:
    """scikit-learn's handwritten digits, 8 x 8."""
    return list((load_digits().images / 16 * 255).round().astype(np.uint8))


@cache
def drawn_numbers() -> Stack:
    """SYN-DIGITS, made anew."""
    return list(next(synthetic_digits(256, glyphs(), seed=0))[0].numpy())


Case = tuple[str, Looks, Callable[[], Stack]]
WITHOUT_DATA: list[Case] = [
    ("SYN-DIGITS (regenerated)", "digits", drawn_numbers),
    ("SYN-DIGITS, grey, 28 px", "digits", lambda: grey(drawn_numbers(), 28)),
    ("8x8 digits", "digits", eight),
    ("8x8 digits, enlarged to 28 px", "digits", lambda: enlarged(eight(), 28)),
    ("demo, source", "digits", lambda: demo(0)),
    ("demo, target", "digits", lambda: demo(1)),
    ("a temple, parts of 128 px", "photographs", lambda: samples("china", 128)),
    ("a temple, grey, 28 px", "photographs", lambda: grey(samples("china", 128), 28)),
    ("a flower, parts of 256 px", "photographs", lambda: samples("flower", 256)),
    ("a flower, grey, 28 px", "photographs", lambda: grey(samples("flower", 256), 28)),
]
WITH_DATA: list[Case] = [
    *[
        (f"MNIST, {split}", "digits", lambda split=split: arrays("mnist", split))
        for split in ("train", "test")
    ],
    ("MNIST, black on white", "digits", lambda: inverted(arrays("mnist", "test"))),
    ("MNIST, enlarged to 128 px", "digits", lambda: enlarged(arrays("mnist", "test"), 128)),
    *[
        (f"USPS {side}, {split}", "digits", lambda side=side, split=split: arrays(f"usps_{side}", split))
        for side in ("28x28", "16x16")
        for split in ("train", "test")
    ],
    ("MNIST-M, train", "digits", lambda: arrays("mnist_m", "train")),
    ("MNIST-M, test", "digits", lambda: arrays("mnist_m", "test")),
    ("MNIST-M, the rest", "digits", lambda: arrays("mnist_m_train_rest", "train")),
    ("MNIST-M, grey, 28 px", "digits", lambda: grey(arrays("mnist_m", "test"), 28)),
    ("MNIST-M, enlarged to 128 px", "digits", lambda: enlarged(arrays("mnist_m", "test"), 128)),
    ("CIFAR-10, train", "photographs", lambda: arrays("cifar10_subset", "train")),
    ("CIFAR-10, test", "photographs", lambda: arrays("cifar10_subset", "test")),
    ("CIFAR-10, grey", "photographs", lambda: grey(arrays("cifar10_subset", "test"))),
    ("CIFAR-10, grey, 28 px", "photographs", lambda: grey(arrays("cifar10_subset", "test"), 28)),
    ("CIFAR-10, grey, 16 px", "photographs", lambda: grey(arrays("cifar10_subset", "test"), 16)),
    ("CIFAR-10, planes alone", "photographs", planes),
    ("CIFAR-10, planes alone, grey, 28 px", "photographs", lambda: grey(planes(), 28)),
    *[
        (f"PACS {domain}{told}", "photographs", lambda domain=domain, shown=shown: shown(pacs(domain)))
        for domain in ("photo", "art_painting")
        for told, shown in (
            ("", list),
            (", grey", grey),
            (", grey, 28 px", lambda images: grey(images, 28)),
            (", on white", on_white),
            (", on white, grey, 28 px", lambda images: grey(on_white(images), 28)),
        )
    ],
    ("PACS photo, guitars alone", "photographs", lambda: pacs("photo", "guitar")),
    ("PACS photo, guitars alone, grey, 28 px", "photographs", lambda: grey(pacs("photo", "guitar"), 28)),
    ("PACS sketch", "photographs", lambda: pacs("sketch")),
    ("PACS sketch, 64 px", "photographs", lambda: grey(pacs("sketch"), 64)),
    ("PACS sketch, 28 px", "digits", lambda: grey(pacs("sketch"), 28)),
]


def rows(cases: Sequence[Case]) -> Iterator[tuple[str, Any, float, float]]:
    """Name, verdict, share of signs and fine loss of each."""
    for name, _, images in cases:
        stack = images()
        found = measured(stack[place] for place in evenly_spread(len(stack)))
        yield name, found.looks, found.signs, found.fine_loss


def main() -> None:
    """Print the table of docs/results/looks.md."""
    sys.stdout.write("| images | signs | lost in 28 px | are |\n| --- | --- | --- | --- |\n")
    for name, looks, signs, fine_loss in rows(WITHOUT_DATA + WITH_DATA):
        sys.stdout.write(f"| {name} | {100 * signs:.0f} % | {100 * fine_loss:.0f} % | {looks} |\n")


if __name__ == "__main__":
    main()
