"""Images as callers give them: arrays, folders, files, data sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from clarinet.data.given import given
from clarinet.data.streams import ImageFiles
from clarinet.recipes.errors import DataError
from tests.clarinet.factories import Recorded, make_images, noisy_levels

IMAGES = make_images(torch.tensor([0, 1, 2, 1]))


class Pairs(Dataset[Any]):
    """Items (channels first in 0..1, label), as torchvision's transforms make them."""

    def __len__(self) -> int:
        return len(IMAGES)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return IMAGES[place, None] / 255, place % 3


def write(folder: Path, *names: str) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy_levels(20, 20, 3).numpy() // (number + 1)).save(folder / name)


def test_arrays_and_streams_come_as_they_are() -> None:
    stream = Recorded(IMAGES)

    assert torch.equal(torch.as_tensor(given(IMAGES.numpy(), "X").read(99)), IMAGES)
    assert given(stream, "X").read(99) is stream
    assert given(stream, "X").looks == given(IMAGES, "X").looks
    assert given(IMAGES, "X").labels is None


def test_a_torch_data_set_gives_images_and_labels() -> None:
    found = given(Pairs(), "X")

    assert len(found) == 4
    assert torch.equal(torch.as_tensor(found.read(28)), IMAGES)
    assert found.labels == [0, 1, 2, 0]
    assert found.looks == given(IMAGES, "X").looks


def test_a_list_may_have_pictures_of_several_sizes_and_kinds() -> None:
    pictures = [Image.fromarray(noisy_levels(30, 40, 3).numpy()), IMAGES[0].numpy(), IMAGES[1]]

    found = given(pictures, "X")

    squares = found.read(28)
    assert squares.shape == (3, 28, 28, 3)
    assert isinstance(squares, Tensor)
    assert torch.equal(squares[1], IMAGES[0][..., None].expand(-1, -1, 3))
    assert found.labels is None


def test_items_by_name_and_their_classes() -> None:
    """As Hugging Face's data sets are."""

    class Column:
        names = ("cat", "dog")

    class Named(list[Any]):
        features = {"image": None, "label": Column}  # noqa: RUF012

    items = Named({"image": Image.fromarray(image.numpy()), "label": 1} for image in IMAGES)

    assert given(items, "X").labels == ["dog"] * 4
    assert torch.equal(torch.as_tensor(given(items, "X").read(28)), IMAGES)
    with pytest.raises(DataError, match=r"items of X have photo; an image is looked for as image, img"):
        given([{"photo": 1}], "X").read(28)


def test_a_data_set_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    pictures = [Image.fromarray(image.numpy()) for image in IMAGES]
    made = datasets.Dataset.from_dict({"img": pictures, "label": [0, 1, 1, 0]}, features=features)

    found = given(made, "X")

    assert torch.equal(torch.as_tensor(found.read(28)), IMAGES)
    assert found.labels == ["a", "b", "b", "a"]


def test_a_folder_gives_the_part_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "train/1.png", "train/2.png", "test/cat/1.png", "test/dog/1.png", "test/dog/2.png")

    assert len(given(tmp_path, "X")) == 5
    assert given(tmp_path, "X").labels is None
    assert len(given(str(tmp_path), "X", part="train")) == 2
    assert given(tmp_path, "X", part="scored").labels == ["cat", "dog", "dog"]
    assert given(tmp_path / "test", "X", part="scored").labels == ["cat", "dog", "dog"]


def test_files_come_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, "b.png", "a.png")
    both = [tmp_path / "b.png", str(tmp_path / "a.png")]

    found = given(both, "X").read(20)

    assert torch.equal(torch.as_tensor(found)[0], noisy_levels(20, 20, 3))
    one = given(tmp_path / "a.png", "X").read(20)
    assert torch.equal(torch.as_tensor(one)[0], torch.as_tensor(found)[1])


def test_many_images_are_read_as_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "b.png", "a.png")
    for module in ("given", "folders"):
        monkeypatch.setattr(f"clarinet.data.{module}.RESIDENT_BYTES", 1)

    assert isinstance(given(tmp_path, "X").read(20), ImageFiles)
    stream = given(Pairs(), "X").read(28)
    assert not isinstance(stream, Tensor)
    assert torch.equal(stream.read(torch.tensor([2, 0])), IMAGES[[2, 0]])


@pytest.mark.parametrize(
    ("images", "told"),
    [
        ("nowhere", "nowhere is neither a folder of images nor a file"),
        (7, "X is int; expected an array, a tensor, a folder, files, or a data set"),
        ([7], "items of X are int; expected a PIL image"),
        ([np.zeros((28, 28), np.int64)], "items of X are int64"),
        (np.zeros((4, 0, 5), np.uint8), "empty"),
    ],
)
def test_what_is_no_image_is_refused_in_words(images: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        given(images, "X").read(28)
