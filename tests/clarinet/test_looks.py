"""Digits or photographs: the rule on drawn images, and on every data set at hand."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from clarinet import TrainData, looks_of
from clarinet.data.folders import files_of
from clarinet.files.looks import SAMPLE, evenly_spread, looks_among, looks_of_files, looks_of_pair, measured
from clarinet.recipes.choices import Looks
from clarinet.recipes.errors import DataError
from tests.clarinet import looks
from tests.clarinet.drawn import drawings, scenes, signs
from tests.clarinet.factories import Recorded
from tests.clarinet.looks import Pixels, Stack


def goods(side: int) -> Stack:
    """One thing on a plain ground, as shops show them."""
    return looks.on_white(scenes(side))


DRAWN: dict[str, tuple[Looks, Callable[[], Stack]]] = {
    "signs": ("digits", signs),
    "signs, dark on light": ("digits", lambda: signs(ground=240, ink=20)),
    "signs of little contrast": ("digits", lambda: signs(ground=90, ink=150)),
    "signs in colour": ("digits", lambda: [np.stack([one // 2, one, 255 - one], 2) for one in signs()]),
    "signs of 16 pixels": ("digits", lambda: signs(16)),
    "signs of 200 pixels": ("digits", lambda: signs(200)),
    "scenes": ("photographs", lambda: scenes(96)),
    "scenes, grey, 28 pixels": ("photographs", lambda: scenes(28, colour=False)),
    "scenes, grey, 16 pixels": ("photographs", lambda: scenes(16, colour=False)),
    "goods on white": ("photographs", lambda: goods(128)),
    "goods on white, grey, 28 pixels": ("photographs", lambda: looks.grey(goods(128), 28)),
    "drawings": ("photographs", lambda: drawings(128)),
    "plain images": ("photographs", lambda: [np.full((28, 28), 7, np.uint8)] * 5),
    "noise": ("photographs", lambda: list(np.random.default_rng(0).integers(0, 256, (9, 28, 28), np.uint8))),
    "images of one pixel": ("photographs", lambda: [np.zeros((1, 1), np.uint8)]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_images_are_told_apart(name: str) -> None:
    expected, images = DRAWN[name]

    assert looks_among(images()) == expected


@pytest.mark.long(but=["demo, source", "a temple, grey, 28 px"])
@pytest.mark.parametrize("name", [name for name, _, _ in looks.WITHOUT_DATA])
def test_images_that_packages_bring_are_told_apart(name: str) -> None:
    ((_, expected, images),) = [case for case in looks.WITHOUT_DATA if case[0] == name]
    stack = images()

    assert looks_among(stack[place] for place in evenly_spread(len(stack))) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _, _ in looks.WITH_DATA])
def test_real_data_is_told_apart_with_room(name: str) -> None:
    """Far enough from the bound that another sample of it is told as well."""
    ((_, expected, images),) = [case for case in looks.WITH_DATA if case[0] == name]
    try:
        stack = images()
    except FileNotFoundError as error:
        pytest.skip(f"no {Path(error.filename).name} in CLARINET_DATA ({looks.DATA})")

    found = measured(stack[place] for place in evenly_spread(len(stack)))

    assert found.looks == expected
    assert not 0.38 < found.signs < 0.57
    assert not 0.14 < found.fine_loss < 0.26


class TestSample:
    def test_all_of_few_images_and_some_of_many_evenly(self) -> None:
        assert list(evenly_spread(3)) == [0, 1, 2]
        places = evenly_spread(100_000)
        assert len(places) == len(set(places)) == SAMPLE
        assert {later - place for place, later in pairwise(places)} <= {390, 391}

    def test_a_stack_and_a_tensor_are_looked_at_as_their_images_are(self) -> None:
        stack = np.stack(signs())

        assert looks_of(stack) == looks_of(torch.from_numpy(stack)) == "digits"
        assert looks_of(np.stack(scenes(40))) == "photographs"

    def test_images_that_come_sorted_are_all_met(self) -> None:
        few, many = np.stack(signs()), np.stack(looks.grey(scenes(28)))

        assert looks_of(np.concatenate([few] * 10 + [many] * 30)) == "photographs"
        assert looks_of(np.concatenate([few] * 30 + [many] * 10)) == "digits"

    def test_no_image_has_no_looks(self) -> None:
        with pytest.raises(DataError, match="no images to look at"):
            looks_of(np.zeros((0, 28, 28), np.uint8))


class TestPair:
    def test_photographs_on_one_side_make_it_a_pair_of_photographs(self) -> None:
        assert looks_of_pair("digits", "digits") == "digits"
        assert (
            looks_of_pair("digits", "photographs") == looks_of_pair("photographs", "digits") == "photographs"
        )

    def test_data_that_is_streamed_has_the_same_looks(self) -> None:
        digits, photographs = torch.from_numpy(np.stack(signs())), torch.from_numpy(np.stack(scenes(28)))

        assert _data(digits, digits).looks == "digits"
        assert _data(Recorded(digits), Recorded(digits)).looks == "digits"
        assert _data(Recorded(digits), Recorded(photographs)).looks == "photographs"


class TestFiles:
    def test_a_folder_has_the_looks_of_what_it_trains_on(self, tmp_path: Path) -> None:
        _save(tmp_path / "train" / "a", signs(60))
        _save(tmp_path / "test" / "a", scenes(60))

        assert files_of(tmp_path).looks == "digits"
        assert files_of(tmp_path / "test").looks == "photographs"

    def test_large_files_look_as_small_ones(self, tmp_path: Path) -> None:
        _save(tmp_path, scenes(400)[:4])

        assert looks_of_files(sorted(tmp_path.iterdir())) == "photographs"

    def test_a_damaged_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(b"\x89PNG and no more")

        with pytest.raises(DataError, match=r"a\.png"):
            looks_of_files([tmp_path / "a.png"])


def _data(source: torch.Tensor | Recorded, target: torch.Tensor | Recorded) -> TrainData:
    count = len(source)
    return TrainData(
        source_images=source,
        complementary=torch.arange(count) % 2,
        true=torch.full((count,), -1),
        weights=torch.ones(count),
        target_images=target,
        num_classes=2,
    )


def _save(folder: Path, images: Stack) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for index, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{index:03}.png")


def test_a_picture_is_square_or_not() -> None:
    """Wide ones are looked at as they are trained on: squeezed."""
    wide: list[Pixels] = [np.repeat(one, 2, axis=1) for one in signs(40)]

    assert looks_among(wide) == "digits"
