"""A run that was interrupted or killed goes on to the same bits; what is no checkpoint of it is refused."""

import json
import os
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from clarinet.recipes.errors import CheckpointError, CheckpointMismatch, CheckpointNotWritten, Interrupted
from clarinet.run import tensor_files
from clarinet.run.tensor_files import read_tensors, write_tensors
from clarinet.run.training import EpochReport, train
from tests.clarinet.factories import CASES, equal_weights, make_case, make_config, make_data

pytestmark = pytest.mark.long


def stop_after(steps: int) -> Any:
    """A should_stop that lets so many steps through."""
    asked = count()
    return lambda: next(asked) >= steps


def flip_bit_of(path: Path, part: str) -> None:
    """Flip one bit of the first tensor whose name begins so, in the file's bytes."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    places = json.loads(content[8:start])
    name = min(name for name in places if name.startswith(part))
    content[start + places[name]["data_offsets"][0]] ^= 1
    path.write_bytes(content)


class TestResuming:
    @pytest.mark.long(but=["paper cc", "plus pc"])
    @pytest.mark.parametrize("case", CASES)
    def test_an_interrupted_run_ends_bit_equal(self, case: str, tmp_path: Path) -> None:
        config, data = make_case(case)
        undisturbed = train(config, data)
        path = tmp_path / "checkpoint.safetensors"

        for steps in (3, 6):  # in the middle of an epoch, twice
            with pytest.raises(Interrupted) as caught:
                train(config, data, checkpoint=path, should_stop=stop_after(steps))
            assert caught.value.checkpoint == path
        resumed = train(config, data, checkpoint=path)

        assert equal_weights(resumed.model, undisturbed.model)
        assert [r.losses for r in resumed.reports] == [r.losses for r in undisturbed.reports]
        assert [r.target_accuracy for r in resumed.reports] == [
            r.target_accuracy for r in undisturbed.reports
        ]

    @pytest.mark.long
    def test_a_killed_run_ends_bit_equal(self, tmp_path: Path) -> None:
        undisturbed = train(make_config(), make_data())
        path = tmp_path / "checkpoint.safetensors"
        code = (
            "import os, signal, torch; torch.set_num_threads(1)\n"
            "from pathlib import Path\n"
            "from clarinet.run.training import train\n"
            "from tests.clarinet.factories import make_config, make_data\n"
            "steps = iter(range(100))\n"
            "def die():\n"
            "    if next(steps) == 10: os.kill(os.getpid(), signal.SIGKILL)\n"
            "    return False\n"
            f"train(make_config(), make_data(), checkpoint=Path({str(path)!r}), should_stop=die)\n"
        )

        killed = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2])

        assert killed.returncode == -9
        assert tensor_files.read_tensors(path, kind="checkpoint")[1]["step"] == 8
        assert equal_weights(train(make_config(), make_data(), checkpoint=path).model, undisturbed.model)

    def test_a_finished_run_is_not_trained_again(self, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        first = train(make_config(), make_data(), checkpoint=path)
        reports: list[EpochReport] = []

        again = train(make_config(), make_data(), checkpoint=path, on_epoch=reports.append)

        assert reports == []
        assert equal_weights(again.model, first.model)
        assert again.seconds == first.seconds
        assert again.confusion == first.confusion
        assert first.label_noise is not None
        assert again.label_noise == first.label_noise

    def test_interrupted_without_a_checkpoint_says_that_nothing_is_kept(self) -> None:
        with pytest.raises(Interrupted, match="nothing is kept"):
            train(make_config(), make_data(), should_stop=lambda: True)

    def test_another_config_or_other_data_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        train(make_config(), make_data(), checkpoint=path)

        with pytest.raises(CheckpointMismatch, match="seed = 0, this run has 1"):
            train(make_config(seed=1), make_data(), checkpoint=path)
        with pytest.raises(CheckpointMismatch, match="other images or labels"):
            train(make_config(), make_data(seed=1), checkpoint=path)

    @pytest.mark.parametrize("switched_on", [False, True])
    def test_what_was_added_since_the_checkpoint_was_off_then(
        self, switched_on: bool, tmp_path: Path
    ) -> None:
        path = tmp_path / "checkpoint.safetensors"
        config = make_config(ink_of_colours=False)
        train(config, make_data(), checkpoint=path)
        tensors, header = read_tensors(path, kind="checkpoint")
        del header["config"]["distortion"]["ink_of_colours"]
        write_tensors(path, tensors, header, kind="checkpoint")

        if switched_on:
            with pytest.raises(CheckpointMismatch, match="ink_of_colours = False, this run has True"):
                train(make_config(), make_data(), checkpoint=path)
        else:
            assert train(config, make_data(), checkpoint=path).steps == 12

    @pytest.mark.parametrize("content", [b"", b"hello", b"\xff" * 64])
    def test_a_damaged_checkpoint_is_refused(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        path.write_bytes(content)

        with pytest.raises(CheckpointError, match="cannot be read"):
            train(make_config(), make_data(), checkpoint=path)

    def test_a_cut_checkpoint_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        train(make_config(epochs=1), make_data(), checkpoint=path)
        path.write_bytes(path.read_bytes()[:-100])

        with pytest.raises(CheckpointError, match="cannot be read"):
            train(make_config(epochs=1), make_data(), checkpoint=path)

    @pytest.mark.parametrize("part", ["optimizer/", "totals/", "classifier/", "averaged/"])
    def test_a_checkpoint_with_one_bit_that_flipped_is_refused(self, part: str, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        with pytest.raises(Interrupted):
            train(make_config(), make_data(), checkpoint=path, should_stop=stop_after(3))
        flip_bit_of(path, part)

        with pytest.raises(CheckpointError, match="is damaged"):
            train(make_config(), make_data(), checkpoint=path)

    def test_a_checkpoint_of_before_there_was_a_digest_is_resumed_from(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "checkpoint.safetensors"
        monkeypatch.setattr(tensor_files, "DIGEST", "unknown")
        with pytest.raises(Interrupted):
            train(make_config(), make_data(), checkpoint=path, should_stop=stop_after(3))
        monkeypatch.undo()

        assert "weights" not in read_tensors(path, kind="checkpoint")[1]
        assert train(make_config(), make_data(), checkpoint=path).steps == 12

    @pytest.mark.parametrize("part", ["optimizer/", "totals/", "classifier/", "averaged/"])
    def test_a_checkpoint_that_lacks_a_tensor_is_refused(self, part: str, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        with pytest.raises(Interrupted):
            train(make_config(), make_data(), checkpoint=path, should_stop=stop_after(3))
        tensors, header = tensor_files.read_tensors(path, kind="checkpoint")
        lost = next(name for name in tensors if name.startswith(part))
        tensor_files.write_tensors(
            path, {k: v for k, v in tensors.items() if k != lost}, header, kind="checkpoint"
        )

        with pytest.raises(CheckpointError, match=f"{lost} is missing"):
            train(make_config(), make_data(), checkpoint=path)

    @pytest.mark.parametrize("fault", ["folder", "replace"])
    def test_a_disk_that_refuses_is_a_sentence_and_leaves_what_was_there(
        self, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = tmp_path / "checkpoint.safetensors"
        tensor_files.write_tensors(before, {"a": torch.ones(1)}, {}, kind="checkpoint")
        path = before / "below.safetensors" if fault == "folder" else before

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        if fault == "replace":
            monkeypatch.setattr(Path, "replace", refuse)

        with pytest.raises(CheckpointNotWritten, match="cannot be written"):
            tensor_files.write_tensors(path, {"a": torch.zeros(1)}, {}, kind="checkpoint")

        assert list(tmp_path.iterdir()) == [before]
        assert tensor_files.read_tensors(before, kind="checkpoint")[0]["a"].item() == 1

    def test_the_file_and_then_its_folder_are_synced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[bool] = []
        sync = os.fsync

        def watch(descriptor: int) -> None:
            synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", watch)
        tensor_files.write_tensors(tmp_path / "a.safetensors", {"a": torch.ones(1)}, {}, kind="checkpoint")

        assert synced == [False, True]

    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
    def test_who_may_read_it_is_as_of_any_file(self, umask: int, mode: int, tmp_path: Path) -> None:
        before = os.umask(umask)
        try:
            write_tensors(tmp_path / "a.safetensors", {"a": torch.ones(1)}, {}, kind="checkpoint")
        finally:
            os.umask(before)

        assert stat.S_IMODE((tmp_path / "a.safetensors").stat().st_mode) == mode

    def test_no_temporary_file_is_left(self, tmp_path: Path) -> None:
        train(make_config(), make_data(), checkpoint=tmp_path / "deep" / "checkpoint.safetensors")

        assert [path.name for path in (tmp_path / "deep").iterdir()] == ["checkpoint.safetensors"]
