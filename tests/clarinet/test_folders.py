"""Images from folders: what lies where says the class, and nothing is passed over."""

import os
from pathlib import Path

import pytest
import torch
from PIL import Image

from clarinet.data.folders import load_folder, load_listed
from clarinet.data.streams import ImageFiles
from clarinet.recipes.errors import DataError, OtherClasses
from tests.clarinet.factories import in_memory


class TestFolders:
    def test_class_folders_become_labels_and_squares(self, tmp_path: Path) -> None:
        for part, name, level in (("train", "cat", 10), ("train", "ant", 20), ("test", "cat", 30)):
            (tmp_path / part / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (40, 20), (level, 0, 0)).save(tmp_path / part / name / "a.png")

        arrays, classes = load_folder(tmp_path, side=16)

        assert classes == ["ant", "cat"]
        assert arrays["x_train"].shape == (2, 16, 16, 3)
        assert arrays["y_train"].tolist() == [0, 1]
        assert in_memory(arrays["x_train"])[:, 0, 0, 0].tolist() == [20, 10]
        assert arrays["y_test"].tolist() == [1]

    def test_given_names_count_the_classes_however_their_accents_are_written(self, tmp_path: Path) -> None:
        for place, level in (("train/owl", 10), ("test/a\u0308pfel", 20), ("test/cat", 30)):
            (tmp_path / place).mkdir(parents=True)
            Image.new("L", (16, 16), level).save(tmp_path / place / "a.png")

        arrays, classes = load_folder(str(tmp_path), side=16, class_names=("owl", "cat", "\u00e4pfel"))

        assert classes == ["owl", "cat", "\u00e4pfel"]
        assert arrays["y_train"].tolist() == [0]
        assert dict(
            zip(in_memory(arrays["x_test"])[:, 0, 0].tolist(), arrays["y_test"].tolist(), strict=True)
        ) == {
            20: 2,
            30: 1,
        }

    def test_test_images_of_other_classes_are_left_out_and_no_others(self, tmp_path: Path) -> None:
        """An image of the train split keeps its place, by which label files find it."""
        for place in ("train/ant", "train/cat", "test/ant", "test/bee", "test/cat"):
            (tmp_path / place).mkdir(parents=True)
            Image.new("L", (16, 16)).save(tmp_path / place / "a.png")

        with pytest.warns(OtherClasses, match="2 of 3 test images are of ant and bee, which are no"):
            arrays, _ = load_folder(tmp_path, side=16, class_names=["dog", "cat"])
        with pytest.warns(OtherClasses, match="3 of 3"):
            unscored, _ = load_folder(tmp_path, side=16, class_names=["dog"])

        assert arrays["y_train"].tolist() == [-1, 1]
        assert (len(arrays["x_train"]), len(arrays["x_test"])) == (2, 1)
        assert arrays["y_test"].tolist() == [1]
        assert set(unscored) == {"x_train", "y_train"}

    @pytest.mark.parametrize("grey", [True, False])
    def test_images_that_would_fill_the_memory_stay_in_their_files(
        self, grey: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for level, place in enumerate(("train/ant", "train/bee", "train/cat", "test/bee", "test/ant"), 1):
            (tmp_path / place).mkdir(parents=True)
            Image.new("L", (20, 16), 40 * level).save(tmp_path / place / "a.png")
        if not grey:
            Image.new("RGB", (16, 16), (10, 20, 30)).save(tmp_path / "test/ant/a.png")
        size = 5 * 16 * 16 * (1 if grey else 3)
        with pytest.warns(OtherClasses):
            whole, _ = load_folder(tmp_path, side=16, class_names=["cat", "ant"])

        monkeypatch.setattr("clarinet.data.folders.RESIDENT_BYTES", size)
        in_memory(load_folder(tmp_path, side=16)[0]["x_train"])
        monkeypatch.setattr("clarinet.data.folders.RESIDENT_BYTES", size - 1)
        with pytest.warns(OtherClasses):
            arrays, _ = load_folder(tmp_path, side=16, class_names=["cat", "ant"])

        for images, expected in (
            (arrays["x_train"], whole["x_train"]),
            (arrays["x_test"], whole["x_test"]),
        ):
            assert isinstance(images, ImageFiles)
            assert images.shape == expected.shape
            assert torch.equal(images.read(torch.arange(len(images))), in_memory(expected))
        assert arrays["y_train"].tolist() == whole["y_train"].tolist() == [1, -1, 0]
        assert arrays["y_test"].tolist() == whole["y_test"].tolist() == [1]

    def test_what_is_no_image_is_named_before_one_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Image.new("L", (16, 16)).save(tmp_path / "a.png")
        (tmp_path / "b.png").write_bytes(b"no image")
        Image.new("F", (16, 16)).save(tmp_path / "c.tif")
        monkeypatch.setattr("clarinet.data.folders.RESIDENT_BYTES", 0)

        with pytest.raises(DataError, match=r'b\.png" is not an image'):
            load_folder(tmp_path, side=16)
        (tmp_path / "b.png").unlink()
        with pytest.raises(DataError, match=r'c\.tif" has floating-point pixels'):
            load_folder(tmp_path, side=16)

    def test_a_name_given_twice_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "cat").mkdir()
        Image.new("L", (16, 16)).save(tmp_path / "cat/a.png")

        with pytest.raises(
            DataError, match="class_names has the classes cat, cat, of which two are the same"
        ):
            load_folder(tmp_path, side=16, class_names=["cat", "cat"])

    @pytest.mark.parametrize("wrapped", ["", "unpacked/"])
    def test_splits_may_be_capital_and_lie_in_one_folder(self, wrapped: str, tmp_path: Path) -> None:
        for place, level in (("Train/cat", 10), ("Train/ant", 20), ("TEST/cat", 30)):
            (tmp_path / f"{wrapped}{place}").mkdir(parents=True)
            Image.new("L", (16, 16), level).save(tmp_path / f"{wrapped}{place}/a.png")

        arrays, classes = load_folder(tmp_path, side=16)

        assert classes == ["ant", "cat"]
        assert in_memory(arrays["x_train"])[:, 0, 0].tolist() == [20, 10]
        assert (in_memory(arrays["x_test"])[:, 0, 0].tolist(), arrays["y_test"].tolist()) == ([30], [1])

    @pytest.mark.parametrize(
        ("stray", "words"),
        [
            ("contact_sheet.jpg", r'contact_sheet\.jpg" lies outside the class folders'),
            ("train/b.png", r'b\.png" lies outside the class folders'),
            ("train/cat/old/b.png", r'b\.png" lies too deep'),
        ],
    )
    def test_an_image_in_the_wrong_place_is_named(self, stray: str, words: str, tmp_path: Path) -> None:
        for place in ("train/cat/a.png", "train/ant/a.png", stray):
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (16, 16)).save(tmp_path / place)

        with pytest.raises(DataError, match=words):
            load_folder(tmp_path, side=16)

    def test_a_target_needs_no_classes_and_stays_grey(self, tmp_path: Path) -> None:
        Image.new("L", (28, 28), 7).save(tmp_path / "a.png")

        arrays, classes = load_folder(tmp_path, side=28)

        assert classes == []
        assert set(arrays) == {"x_train"}
        assert arrays["x_train"].shape == (1, 28, 28)

    def test_an_empty_folder_and_a_broken_image_are_sentences(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="holds no images"):
            load_folder(tmp_path, side=28)
        (tmp_path / "a.png").write_bytes(b"no image")
        with pytest.raises(DataError, match=r'a\.png" is not an image'):
            load_folder(tmp_path, side=28)

    @pytest.mark.parametrize("name", ["a.HEIC", "a.pgm", "a.avif", "a.jp2"])
    def test_no_kind_of_image_is_left_out(self, name: str, tmp_path: Path) -> None:
        for place in ("cat/0.png", "dog/0.png"):
            (tmp_path / place).parent.mkdir()
            Image.new("L", (16, 16)).save(tmp_path / place)
        (tmp_path / "cat" / name).write_bytes(b"no image")

        with pytest.raises(DataError, match=f'{name}" is not an image'):
            load_folder(tmp_path, side=16)

    def test_links_around_in_a_circle_are_gone_once(self, tmp_path: Path) -> None:
        for name in ("cat", "dog"):
            (tmp_path / name).mkdir()
            Image.new("L", (16, 16)).save(tmp_path / name / "a.png")
            (tmp_path / name / "up").symlink_to("..")
        os.mkfifo(tmp_path / "cat" / "pipe")

        arrays, classes = load_folder(tmp_path, side=16)

        assert (classes, arrays["y_train"].tolist()) == (["cat", "dog"], [0, 1])

    def test_what_cannot_be_read_is_never_left_out(self, tmp_path: Path) -> None:
        """The images after it would have the labels of others."""
        for name in ("cat", "dog"):
            (tmp_path / name).mkdir()
            Image.new("L", (16, 16)).save(tmp_path / name / "a.png")
        (tmp_path / "cat" / "b").symlink_to("nothing")

        with pytest.raises(DataError, match="b is a link to nothing"):
            load_folder(tmp_path, side=16)
        with pytest.raises(DataError, match="none cannot be read: No such file"):
            load_folder(tmp_path / "none", side=16)

    def test_a_class_whose_name_is_no_unicode_is_refused(self, tmp_path: Path) -> None:
        for name in (b"caf\xe9", b"the"):
            folder = tmp_path / os.fsdecode(name)
            folder.mkdir()
            Image.new("L", (16, 16)).save(folder / "a.png")

        with pytest.raises(DataError, match="whose name is not in UTF-8"):
            load_folder(tmp_path, side=16)

    @pytest.mark.parametrize("text", ["a.png", "a.png x", "a.png 1 2", "a.png 1" + "0" * 5_000])
    def test_a_list_of_another_form_names_the_line(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "labels.txt").write_text(f"\n{text}\n")

        with pytest.raises(DataError, match="line 1"):
            load_listed(tmp_path, tmp_path / "labels.txt")

    def test_listed_images_of_two_sizes_are_refused(self, tmp_path: Path) -> None:
        for name, side in (("a", 28), ("b", 32)):
            Image.new("L", (side, side)).save(tmp_path / f"{name}.png")
        (tmp_path / "labels.txt").write_text("a.png 0\nb.png 1\n")

        with pytest.raises(DataError, match=r"b\.png has another size than"):
            load_listed(tmp_path, tmp_path / "labels.txt")
