"""Photographs for the demo without a download: many views of six pictures that ship inside packages.

scikit-image's are free of copyright: the astronaut (NASA) and the rocket (SpaceX) are in the public domain,
the cat (Stefan van der Walt) and the cup (Rachel Michetti) under CC0. scikit-learn's are under CC BY 2.0: the
pagoda is by danielbuechele, the flower by vultilion, both on Flickr.
"""

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from sklearn.datasets import load_sample_image

SIDE = 160  # pixels
SOURCE_VIEWS, TARGET_VIEWS = 80, 60  # of each photograph
SMALLEST, LARGEST = 0.55, 0.85  # side of a view, as a share of the shorter side of its photograph
ASIDE = 0.15  # of its side, by which a view is off what it shows
TURNED = 10.0  # degrees, to either side
REACH = 1.17  # of its side, that a view needs around it to be turned: cos + sin of that angle, and a little
PAINTED, BLOT, COLOURS = 240, 5, 16  # shorter side of a painting and its blots, in pixels; colours in it
CANVAS, PAPER = (70, 55, 35), (0.79, 0.71, 0.53)  # black becomes the one, and white the sum of both
GRAIN = 7.0  # levels
QUALITY = 90  # of JPEG


class Photograph(NamedTuple):
    """A picture, and where that is which it shows: shares of its width and height."""

    picture: Image.Image
    across: float
    down: float


def photographs() -> Mapping[str, Photograph]:
    """Each photograph by what it shows."""
    found: dict[str, tuple[np.ndarray, float, float]] = {
        "astronaut": (_of_scikit_image("astronaut"), 0.45, 0.35),
        "cat": (_of_scikit_image("chelsea"), 0.5, 0.5),
        "cup": (_of_scikit_image("coffee"), 0.45, 0.45),
        "flower": (load_sample_image("flower.jpg"), 0.45, 0.5),
        "pagoda": (load_sample_image("china.jpg"), 0.4, 0.5),
        "rocket": (_of_scikit_image("rocket"), 0.5, 0.6),
    }
    return {
        name: Photograph(Image.fromarray(pixels), across, down)
        for name, (pixels, across, down) in found.items()
    }


def _of_scikit_image(name: str) -> np.ndarray:
    """(H, W, 3) uint8; those few that lie in the package itself, of which none is downloaded."""
    from skimage import data  # noqa: PLC0415 - a second, in which the digits are there already

    pixels: np.ndarray = getattr(data, name)()
    return pixels


def demo_photographs() -> tuple[BytesIO, BytesIO]:
    """Source and target as zips of class folders; the same bytes every time.

    The source is as cameras see it, the target other views of the same pictures as if they were painted. Both
    say the class of each picture, as what people bring does; of the target it only scores.
    """
    known, random = photographs(), np.random.default_rng(20260102)
    source, target = BytesIO(), BytesIO()
    with zipfile.ZipFile(source, "w") as seen, zipfile.ZipFile(target, "w") as painted:
        for name, photograph in known.items():
            for number in range(SOURCE_VIEWS):
                _add(seen, f"{name}/{number:03}.jpg", _by_camera(_view(photograph, random), random))
            painting = _painted(photograph)
            for number in range(TARGET_VIEWS):
                _add(painted, f"{name}/{number:03}.jpg", _on_canvas(_view(painting, random), random))
    for file in (source, target):
        file.seek(0)
    return source, target


def _view(photograph: Photograph, random: np.random.Generator) -> Image.Image:
    """A square around what the photograph shows, turned a little, every second one mirrored."""
    width, height = photograph.picture.size
    side = min(width, height) * random.uniform(SMALLEST, LARGEST)
    reach = side * REACH / 2
    across, down = (
        min(max(place * length + random.uniform(-ASIDE, ASIDE) * side, reach), length - reach)
        for place, length in ((photograph.across, width), (photograph.down, height))
    )
    box = (across - reach, down - reach, across + reach, down + reach)
    around = round(SIDE * REACH)
    seen = photograph.picture.resize((around, around), Image.Resampling.BILINEAR, box=box)
    turned = seen.rotate(random.uniform(-TURNED, TURNED), Image.Resampling.BILINEAR)
    rim = (around - SIDE) // 2
    view = turned.crop((rim, rim, rim + SIDE, rim + SIDE))
    return ImageOps.mirror(view) if random.random() < 1 / 2 else view


def _by_camera(view: Image.Image, random: np.random.Generator) -> Image.Image:
    """In more or less light, with stronger or weaker colours."""
    lit = ImageEnhance.Brightness(view).enhance(random.uniform(0.8, 1.2))
    return ImageEnhance.Color(lit).enhance(random.uniform(0.8, 1.2))


def _painted(photograph: Photograph) -> Photograph:
    """In blots of a few colours."""
    scale = PAINTED / min(photograph.picture.size)
    width, height = (round(scale * length) for length in photograph.picture.size)
    blots = photograph.picture.resize((width, height)).filter(ImageFilter.ModeFilter(BLOT))
    return photograph._replace(picture=blots.quantize(COLOURS).convert("RGB"))


def _on_canvas(view: Image.Image, random: np.random.Generator) -> Image.Image:
    """Warm, pale and grainy."""
    colours = np.asarray(view) * np.array(PAPER) + np.array(CANVAS)  # (SIDE, SIDE, 3)
    grain = random.normal(0, GRAIN, (SIDE, SIDE, 1))
    return Image.fromarray(np.clip(colours + grain, 0, 255).round().astype(np.uint8))


def _add(archive: zipfile.ZipFile, path: str, view: Image.Image) -> None:
    content = BytesIO()
    view.save(content, "JPEG", quality=QUALITY)
    archive.writestr(zipfile.ZipInfo(path), content.getvalue())
