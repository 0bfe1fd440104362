"""The files that streams read: rows in any order, pictures of any shape, faults in words."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from clarinet.data.folders import read_images
from clarinet.data.streams import ImageFiles, NpyImages
from clarinet.recipes.errors import DataError
from clarinet.run.training import train
from tests.clarinet.factories import make_config, make_data, noisy_levels, saved


class TestNpyImages:
    def test_rows_come_in_the_order_asked_for(self, tmp_path: Path) -> None:
        images = noisy_levels(9, 5, 7, 3)
        stream = saved(tmp_path / "x.npy", images)

        assert (stream.shape, len(stream)) == ((9, 5, 7, 3), 9)
        assert torch.equal(stream.read(torch.tensor([8, 0, 8])), images[torch.tensor([8, 0, 8])])

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros((3, 4, 4), np.float32),
            np.zeros((3, 4), np.uint8),
            np.zeros((3, 4, 4), np.uint8, order="F"),
        ],
    )
    def test_other_arrays_are_refused(self, array: "np.typing.NDArray[np.generic]", tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", array)

        with pytest.raises(DataError, match="expected uint8 images"):
            NpyImages(tmp_path / "x.npy")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00v\x00{'descr'"])
    def test_other_files_are_refused(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "x.npy").write_bytes(content)

        with pytest.raises(DataError, match="cannot be read as npy"):
            NpyImages(tmp_path / "x.npy")
        with pytest.raises(DataError, match="cannot be read as npy"):
            NpyImages(tmp_path / "none.npy")

    def test_pickled_arrays_are_not_unpickled(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.array([{}, {}], dtype=object), allow_pickle=True)

        with pytest.raises(DataError):
            NpyImages(tmp_path / "x.npy")

    def test_a_file_cut_short_while_training_says_so(self, tmp_path: Path) -> None:
        stream = saved(tmp_path / "x.npy", noisy_levels(9, 5, 7))
        with (tmp_path / "x.npy").open("r+b") as file:
            file.truncate(200)

        with pytest.raises(DataError, match="image 8 is cut off"):
            stream.read(torch.tensor([0, 8]))


class TestImageFiles:
    def test_lossless_files_of_its_size_come_back_as_they_are(self, tmp_path: Path) -> None:
        images = noisy_levels(3, 20, 20, 3)
        paths = [tmp_path / f"{i}.png" for i in range(3)]
        for path, image in zip(paths, images, strict=True):
            Image.fromarray(image.numpy()).save(path)

        stream = ImageFiles(paths, image_size=20)

        assert torch.equal(stream.read(torch.tensor([2, 0])), images[torch.tensor([2, 0])])
        assert ImageFiles(paths, image_size=20, colour=False).read(torch.tensor([1])).shape == (1, 20, 20)

    @pytest.mark.parametrize("size", [(300, 200), (10, 50)])
    @pytest.mark.parametrize("suffix", ["jpg", "png"])
    def test_any_shape_becomes_square_and_smooth(
        self, size: tuple[int, int], suffix: str, tmp_path: Path
    ) -> None:
        Image.new("RGB", size, (200, 100, 50)).save(tmp_path / f"x.{suffix}")

        images = ImageFiles([tmp_path / f"x.{suffix}"], image_size=32).read(torch.tensor([0]))

        assert images.shape == (1, 32, 32, 3)
        assert bool(((images.int() - torch.tensor([200, 100, 50])).abs() <= 2).all())

    def test_a_camera_held_upright_is_turned(self, tmp_path: Path) -> None:
        picture = Image.new("L", (40, 40))
        picture.paste(255, (0, 0, 40, 20))  # bright above
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned by a quarter, clockwise
        picture.save(tmp_path / "x.jpg", exif=exif)

        [streamed] = ImageFiles([tmp_path / "x.jpg"], image_size=40, colour=False).read(torch.tensor([0]))
        [resident] = read_images([tmp_path / "x.jpg"], side=40)

        for image in (streamed, resident):
            assert int(image[:, 30:].min()) > 200
            assert int(image[:, :10].max()) < 50

    @pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n\x00\x00", b"\xff\xd8\xff\xe0"])
    def test_a_file_that_is_no_image_is_named(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "bad.png").write_bytes(content)

        with pytest.raises(DataError, match=r"bad\.png cannot be read as an image"):
            ImageFiles([tmp_path / "bad.png"], image_size=32).read(torch.tensor([0]))

    def test_a_run_ends_with_the_name_of_the_bad_file(self, tmp_path: Path) -> None:
        for i in range(20):
            Image.new("L", (28, 28), 10 * i).save(tmp_path / f"{i}.png")
        (tmp_path / "7.png").write_bytes(b"no image")
        files = ImageFiles([tmp_path / f"{i}.png" for i in range(20)], image_size=28, colour=False)
        data = make_data(target_images=files, target_test_images=None, target_test_labels=None)

        with pytest.raises(DataError, match=r"7\.png"):
            train(make_config(target_self_training_start=0.0), data)
