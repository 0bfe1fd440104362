"""Images that both domains have: counted in arrays and in files, and how many are too many."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from clarinet.data.sameness import overlap_of
from clarinet.data.streams import ImageFiles, ImageStream
from clarinet.recipes.errors import DataError
from clarinet.recipes.overlap import Overlap
from tests.clarinet.factories import saved

OF_TARGET = [9, 3, 3, 5, 12, 13]  # with ten of the source that are 3, 3, 5 and 9


def images_of(*levels: int) -> Tensor:
    """Images of 4 by 4 pixels, each of one grey."""
    return torch.tensor(levels, dtype=torch.uint8)[:, None, None].expand(-1, 4, 4)


def files_of(folder: Path, *levels: int) -> ImageFiles:
    folder.mkdir()
    paths = []
    for place, level in enumerate(levels):
        paths.append(folder / f"{place}.bmp")  # of one size, whatever they show
        Image.new("L", (4, 4), level).save(paths[-1])
    return ImageFiles(paths, image_size=4, colour=False)


@pytest.mark.parametrize(
    ("overlap", "is_too_large"),
    [
        (Overlap(0, 0), False),
        (Overlap(0, 1), False),
        (Overlap(1, 1), True),
        (Overlap(1, 2), False),
        (Overlap(2, 3), True),
        (Overlap(50, 100), False),
        (Overlap(51, 100), True),
    ],
)
def test_more_than_half_is_too_much(*, overlap: Overlap, is_too_large: bool) -> None:
    assert overlap.is_too_large == is_too_large


def test_images_in_memory_and_on_disk_are_counted_alike(tmp_path: Path) -> None:
    source, target = images_of(*range(10)), images_of(*OF_TARGET)
    streams: list[tuple[Tensor | ImageStream, Tensor | ImageStream]] = [
        (source, target),
        (saved(tmp_path / "source.npy", source), target),
        (source, saved(tmp_path / "target.npy", target)),
        (files_of(tmp_path / "source", *range(10)), files_of(tmp_path / "target", *OF_TARGET)),
        (files_of(tmp_path / "files", *range(10)), target),
    ]

    assert [overlap_of(*pair) for pair in streams] == [Overlap(4, 6)] * 5


def test_images_of_other_shapes_are_other_images() -> None:
    grey = images_of(0, 1)

    assert overlap_of(grey, grey[:, :2]) == Overlap(0, 2)
    assert overlap_of(grey[..., None].expand(-1, -1, -1, 3), grey) == Overlap(0, 2)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    source, target = files_of(tmp_path / "source", 1), files_of(tmp_path / "target", 1)
    target.paths[0].unlink()

    with pytest.raises(DataError, match=r"target/0\.bmp cannot be read"):
        overlap_of(source, target)
