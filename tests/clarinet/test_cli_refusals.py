"""What `python -m clarinet train` refuses before it trains, in a sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from clarinet.commands.cli import main
from clarinet.export.onnx import export_model
from clarinet.recipes.errors import CheckpointNotWritten
from tests.clarinet.factories import make_images
from tests.clarinet.test_cli import SHORT


class TestPairs:
    """Refused before anything is trained."""

    def test_one_file_on_both_sides(self, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        files[4] = files[2]

        assert main([*files, *SHORT]) == 1
        assert "the target must be other images than the source" in capsys.readouterr().err

    def test_more_than_half_of_the_images_under_another_name_and_in_another_order(
        self, files: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with np.load(files[2]) as source:
            theirs = source["x_train"][::-1]
        np.savez(files[4], x_train=np.concatenate([theirs[:9], 255 - theirs[:8]]))

        assert main([*files, *SHORT]) == 1
        assert "b.npz has images of" in (err := capsys.readouterr().err)
        assert "9 of its 17 for training, and at most half may be" in err

    def test_names_that_have_none_in_common(
        self, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also where only training images have classes, which are not scored."""
        for folder in ("source/cat", "source/dog", "target/train/oak", "target/train/elm"):
            (tmp_path / folder).mkdir(parents=True)
            for index, image in enumerate(make_images(torch.arange(6) % 3, seed=len(folder))):
                Image.fromarray(image.numpy()).save(tmp_path / folder / f"{index}.png")
        files[2], files[4] = str(tmp_path / "source"), str(tmp_path / "target")

        assert main([*files, *SHORT]) == 1
        told = "the classes are cat, dog, and "
        assert told in (err := capsys.readouterr().err)
        assert "has elm, oak: none in common" in err


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.zeros(0, np.int64), "shape (0,)"),
        (np.array(3), "shape ()"),
        (np.zeros((64, 1), np.int64), "shape (64, 1)"),
        (np.full(64, 2**40), "at most 1000"),
        (np.full(64, -1), "the label -1"),
        (np.zeros(63, np.int64) + np.arange(63) % 3, "but there are 64 images in x_train"),
    ],
)
def test_labels_that_are_none_are_a_sentence(
    labels: NDArray[np.int64],
    words: str,
    files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "a.npz", x_train=np.zeros((64, 28, 28), np.uint8), y_train=labels)

    assert main([*files, *SHORT, "--preset", "digits"]) == 1
    assert words in capsys.readouterr().err


class TestPlaces:
    @pytest.mark.parametrize("seeds", [["0"], ["0", "1"]])
    @pytest.mark.parametrize("option", ["--out", "--checkpoint"])
    def test_a_file_in_a_folders_place_is_refused_before_the_data_is_read(
        self,
        option: str,
        seeds: list[str],
        files: list[str],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        (tmp_path / "file").write_text("of somebody")
        place = tmp_path / "file" / "x"

        assert main([*files, "--source", "nowhere.npz", option, str(place), "--seeds", *seeds]) == 1
        error = capsys.readouterr().err
        assert f"{place}" in error
        assert "cannot be written" in error
        assert "nowhere.npz" not in error

    @pytest.mark.parametrize(
        "words",
        [
            "c --checkpoint c",
            "c-seed-1 --checkpoint c --seeds 0 1",
            "m/model.onnx --out m",
            "m/seed-1/model.safetensors --out m --seeds 0 1",
        ],
    )
    def test_a_folder_in_a_files_place_is_too(
        self,
        words: str,
        files: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folder, *more = words.split()
        Path(folder).mkdir(parents=True)

        assert main([*files, "--source", "nowhere.npz", *more]) == 1
        assert f"{folder} cannot be written: it is a folder" in capsys.readouterr().err
        assert not list(tmp_path.rglob(".*"))

    @pytest.mark.long
    def test_a_model_that_cannot_be_written_lets_the_other_seeds_go_on(
        self,
        files: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def refuse_first(folder: Path, *arguments: Any, **more: Any) -> None:
            if folder.name == "seed-0":
                raise CheckpointNotWritten("the disk is full")
            export_model(folder, *arguments, **more)

        monkeypatch.setattr("clarinet.export.onnx.export_model", refuse_first)

        status = main([*files, *SHORT, "--seeds", "0", "1", "--out", str(tmp_path / "m"), "--json"])

        captured = capsys.readouterr()
        assert status == 1
        assert "clarinet: seed 0: the disk is full" in captured.err
        assert len(json.loads(captured.out.splitlines()[-1])["trials"]) == 2
        assert (tmp_path / "m" / "seed-1" / "model.safetensors").exists()


class TestClasses:
    @pytest.fixture
    def sparse(self, files: list[str], tmp_path: Path) -> list[str]:
        """A source without images of the target's class 2."""
        with np.load(tmp_path / "a.npz") as arrays:
            known = arrays["y_train"] < 2
            np.savez(tmp_path / "a.npz", x_train=arrays["x_train"][known], y_train=arrays["y_train"][known])
        return [*files, *SHORT]

    def test_a_target_with_more_classes_names_the_option(
        self, sparse: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(sparse) == 1
        assert "--classes 3" in capsys.readouterr().err

    def test_the_option_gives_the_classes(
        self, sparse: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*sparse, "--classes", "4", "--json"]) == 0
        summary = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert len(summary["trials"][0]["per_class_accuracy"]) == 4

    @pytest.mark.parametrize(
        ("classes", "words"), [("1", "--classes 2"), ("0", "--classes 2"), ("1001", "at most 1000")]
    )
    def test_a_number_that_cannot_be_is_refused(
        self, classes: str, words: str, sparse: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([*sparse, "--classes", classes]) == 1
        assert words in capsys.readouterr().err
