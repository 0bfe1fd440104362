"""What the train command shows and keeps: a bar, a log, a checkpoint."""

import io
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch

from clarinet.commands import progress
from clarinet.commands.cli import main
from clarinet.commands.progress import shown
from clarinet.recipes.doing import Doing
from clarinet.recipes.methods import config_for
from clarinet.run.results import EpochReport
from clarinet.run.tensor_files import read_tensors
from tests.clarinet.factories import in_memory, make_data


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The command over three epochs of two steps."""
    data = make_data(64, true_rows=64)
    assert data.target_test_labels is not None
    images = in_memory(data.target_images).numpy()
    np.savez(tmp_path / "a.npz", x_train=in_memory(data.source_images).numpy(), y_train=data.true.numpy())
    np.savez(tmp_path / "b.npz", x_train=images, x_test=images, y_test=data.target_test_labels.numpy())
    files = ["--source", str(tmp_path / "a.npz"), "--target", str(tmp_path / "b.npz"), "--device", "cpu"]
    return ["train", *files, "--epochs", "3", "--set", "steps_per_epoch=2", "--set", "batch_size=16"]


class TestBar:
    def test_a_terminal_gets_a_bar(self, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)

        assert main(words) == 0

        shown = terminal.getvalue()
        assert "3/3" in shown
        assert "seed 0" in shown
        assert "epoch 1/3" not in shown  # which is the line of other outputs

    def test_json_gets_none_on_a_terminal_either(
        self, words: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)

        assert main([*words, "--json"]) == 0

        assert len(terminal.getvalue().splitlines()) == 1


@pytest.mark.long
class TestDoing:
    @pytest.fixture
    def kept(self, tmp_path: Path) -> list[str]:
        """The command on kept features of 6 + 6 + 6 images, in two rounds."""
        classes = np.arange(6) % 2
        images = (
            (classes[:, None, None, None] * 200).astype(np.uint8).repeat(32, 1).repeat(32, 2).repeat(3, 3)
        )
        np.savez(tmp_path / "a.npz", x_train=images, y_train=classes)
        np.savez(tmp_path / "b.npz", x_train=images + 9, x_test=images + 9, y_test=classes)
        torch.save(timm.create_model("test_resnet").state_dict(), tmp_path / "net.pth")
        changes = ("architecture=timm/test_resnet", "image_size=32", "epochs=2")
        files = ["--source", str(tmp_path / "a.npz"), "--target", str(tmp_path / "b.npz"), "--device", "cpu"]
        words = ["train", *files, "--preset", "photographs-quick", "--weights", str(tmp_path / "net.pth")]
        return words + [word for change in changes for word in ("--set", change)]

    def test_lines_say_how_many_features_are_there_before_the_first_epoch(
        self, kept: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(kept) == 0

        lines = capsys.readouterr().out.splitlines()
        epoch = next(place for place, line in enumerate(lines) if line.startswith("epoch 1/2"))
        assert lines[0] == "Computing the features of the images: 0 of 18."
        assert lines[epoch - 1] == "Computing the features of the images: 18 of 18."

    def test_the_bar_says_it_where_the_accuracies_will_stand(
        self, kept: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)

        assert main(kept) == 0

        last = terminal.getvalue().split("\r")[-1]
        assert "2/2" in last
        assert "source (estimated)" in last
        assert "Computing" not in last

    def test_json_says_nothing_of_it(self, kept: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*kept, "--json"]) == 0

        assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_bar_shows_what_a_run_is_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    with shown(config_for("clarinet-plus"), quiet=False, log_dir=None) as shows:
        shows.on_doing(Doing("features", 1024, 3718))

    assert "Computing the features of the images: 1,024 of 3,718." in terminal.getvalue()


class TestTensorboard:
    def test_every_figure_is_a_scalar_over_the_steps(self, words: list[str], tmp_path: Path) -> None:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        assert main([*words, "--seeds", "0", "1", "--json", "--tensorboard", str(tmp_path / "log")]) == 0

        log = EventAccumulator(str(tmp_path / "log" / "seed-1"))
        log.Reload()
        assert [event.step for event in log.Scalars("loss/complementary")] == [2, 4, 6]
        assert {"target_accuracy", "smallest_predicted_share"} <= set(log.Tags()["scalars"])

    def test_without_the_package_a_sentence_comes_before_the_training(
        self, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)

        assert main([*words, "--tensorboard", "log"]) == 1

        told = capsys.readouterr()
        assert "clarinet[tensorboard]" in told.err
        assert told.out == ""


class TestCheckpoint:
    def test_ctrl_c_keeps_the_run_and_the_same_command_goes_on(
        self,
        words: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        path = tmp_path / "checkpoint.safetensors"
        kept = [*words, "--checkpoint", str(path)]

        def press(report: EpochReport) -> None:
            if report.epoch == 1:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(progress, "_line", press)
            assert main(kept) == 130
        assert f"resume from {path}" in capsys.readouterr().err
        assert read_tensors(path, kind="checkpoint")[1]["step"] == 2

        assert main(kept) == 0
        assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[:2]] == ["2/3", "3/3"]

    def test_each_seed_has_its_own(self, words: list[str], tmp_path: Path) -> None:
        assert main([*words, "--seeds", "3", "4", "--checkpoint", str(tmp_path / "kept.st"), "--json"]) == 0

        assert {item.name for item in tmp_path.glob("kept*")} == {"kept-seed-3.st", "kept-seed-4.st"}

    def test_another_configuration_is_refused(
        self, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept = [*words, "--checkpoint", str(tmp_path / "kept.st"), "--json"]
        assert main(kept) == 0

        assert main([*kept, "--set", "learning_rate=0.5"]) == 1
        assert "learning_rate" in capsys.readouterr().err


def test_a_model_that_cannot_be_exported_does_not_stop_the_other_seeds(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("clarinet.export.onnx.find_spec", lambda _: None)

    assert main([*words, "--seeds", "0", "1", "--out", str(tmp_path / "m"), "--json"]) == 0

    assert "needs the package onnx" in capsys.readouterr().err
    for seed in (0, 1):
        found = {item.name for item in (tmp_path / "m" / f"seed-{seed}").iterdir()}
        assert found == {"model.safetensors", "MODEL_CARD.md"}
