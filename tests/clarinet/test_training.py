"""The loop: it learns, repeats itself, resumes bit-equal, and fails in words."""

import dataclasses
import math
import os
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from clarinet import checkpoints
from clarinet.checkpoints import read_tensors, write_tensors
from clarinet.data import TrainData
from clarinet.domains import prepare
from clarinet.errors import CheckpointError, CheckpointMismatch, CheckpointNotWritten, Diverged, Interrupted
from clarinet.feeding import taken
from clarinet.methods import config_for
from clarinet.networks import SOURCE, Classifier
from clarinet.objective import Objective
from clarinet.seeding import Shuffle
from clarinet.training import (
    PRETRAINING_RATE,
    EpochReport,
    build_networks,
    rate_share,
    train,
)
from tests.clarinet.factories import make_config, make_data


def equal_weights(one: Classifier, other: Classifier) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def stop_after(steps: int) -> Any:
    """A should_stop that lets so many steps through."""
    asked = count()
    return lambda: next(asked) >= steps


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "plus grey cc": ("clarinet-plus", {}, {}),
    "plus colour target": ("clarinet-plus", {}, {"colour_target": True}),
    "plus pc": ("clarinet-plus", {"setting": "pc"}, {"true_rows": 20}),
    "paper cc": ("clarinet", {}, {}),
    "paper pc colour": (
        "clarinet",
        {"setting": "pc"},
        {"colour_target": True, "true_rows": 20},
    ),
    "gac": ("gac", {}, {}),
    "dan": ("dan", {}, {"true_rows": 40}),
    "dann": ("dann", {}, {"true_rows": 40}),
    "cdan_e": ("cdan_e", {}, {"true_rows": 40}),
    "cross-entropy": ("clarinet-ce", {}, {}),
}


def make_case(name: str) -> tuple[Any, TrainData]:
    method, changes, data = CASES[name]
    return make_config(method, **changes), make_data(**data)


class TestLearning:
    @pytest.mark.parametrize("setting", ["cc", "pc"])
    def test_plus_tells_bars_apart(self, setting: str) -> None:
        data = make_data(200, true_rows=20 if setting == "pc" else 0)
        config = config_for(
            "clarinet-plus", "quick", setting=setting, epochs=4, steps_per_epoch=20, averaging=0.9
        )

        result = train(config, data)

        assert result.target_accuracy is not None
        assert result.target_accuracy > 0.95

    def test_the_papers_risk_tells_bars_apart_at_a_larger_rate(self) -> None:
        config = config_for(
            "clarinet", epochs=3, steps_per_epoch=20, batch_size=64, learning_rate=5e-3, trade_off=0.0
        )

        result = train(config, make_data(200))

        assert result.target_accuracy is not None
        assert result.target_accuracy > 0.9


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_the_teacher_never_drops_out_and_the_student_keeps_training(averaging: float) -> None:
    config, device = make_config(averaging=averaging), torch.device("cpu")
    domains = prepare(make_data(), config, device)
    networks = build_networks(config, domains, device)
    objective = Objective(config, domains, networks, steps=12, epoch_steps=4)
    pixels = taken(domains.source, torch.arange(8)).float() / 255

    first, second = objective.teach(pixels, SOURCE), objective.teach(pixels, SOURCE)

    assert torch.equal(first, second)
    assert networks.classifier.training


class TestReports:
    @pytest.mark.parametrize("case", CASES)
    def test_each_epoch_is_reported_with_the_same_losses(self, case: str) -> None:
        config, data = make_case(case)
        reports: list[EpochReport] = []

        result = train(config, data, on_epoch=reports.append)

        assert result.reports == reports
        assert [(r.epoch, r.epochs, r.step, r.steps) for r in reports] == [
            (1, 3, 4, 12),
            (2, 3, 8, 12),
            (3, 3, 12, 12),
        ]
        before = config.pretraining_epochs
        assert [list(r.losses) for r in reports[:before]] == [["contrast"]] * before
        assert len({tuple(r.losses) for r in reports[before:]}) == 1
        assert [r.seconds for r in reports] == sorted(r.seconds for r in reports)
        assert (result.steps, result.epochs) == (12, 3)
        assert reports[-1].target_accuracy == result.target_accuracy
        assert sum(map(sum, result.confusion or [])) == 96

    @pytest.mark.parametrize("method", ["clarinet", "clarinet-plus"])
    def test_the_targets_true_classes_change_nothing_but_the_score(self, method: str) -> None:
        config, data = make_config(method), make_data()
        before = config.pretraining_epochs  # epochs that tell no accuracy
        assert data.target_test_labels is not None
        other = dataclasses.replace(data, target_test_labels=(data.target_test_labels + 1) % 3)

        plain, shifted = train(config, data), train(config, other)

        assert equal_weights(plain.model, shifted.model)
        for one, two in zip(plain.reports, shifted.reports, strict=True):
            assert one.epoch <= before or one.target_accuracy != two.target_accuracy
            first, second = (
                dataclasses.replace(report, target_accuracy=None, seconds=0.0) for report in (one, two)
            )
            assert first == second

    def test_criteria_without_labels_are_reported(self) -> None:
        averaged = train(make_config(), make_data()).reports[-1]
        plain = train(make_config(averaging=0.0), make_data()).reports[-1]

        assert 0 <= averaged.target_information <= math.log(3)
        assert averaged.student_agreement is not None
        assert 0 <= averaged.student_agreement <= 1
        assert plain.student_agreement is None

    def test_without_test_labels_or_held_out_ones_there_are_no_accuracies(self) -> None:
        data = make_data(target_test_images=None, target_test_labels=None)

        result = train(make_config(held_out_share=0), data)

        assert result.target_accuracy is None
        assert result.confusion is None
        assert result.reports[-1].source_accuracy_estimate is None

    def test_held_out_labels_count_by_their_weights(self) -> None:
        held_out, some = torch.arange(96) < 30, torch.arange(96) % 3 == 0

        def estimate(weight_of_others: float) -> float | None:
            weights = torch.where(held_out & ~some, weight_of_others, 1.0)
            data = make_data(weights=weights, held_out=held_out)
            return train(make_config(epochs=1, steps_per_epoch=1), data).reports[-1].source_accuracy_estimate

        assert estimate(1e-7) == pytest.approx(estimate(0.0), abs=1e-5)
        assert estimate(1.0) != pytest.approx(estimate(0.0), abs=1e-2)

    def test_an_epoch_of_unset_length_is_one_pass_over_the_larger_domain(self) -> None:
        data = make_data(40, target_images=torch.zeros(90, 28, 28, dtype=torch.uint8))

        result = train(make_config("gac", epochs=1, steps_per_epoch=0), data)

        assert result.steps == 6  # 90 images in batches of 16

    def test_sets_smaller_than_a_batch_and_of_one_image_train(self) -> None:
        data = make_data(5, target_images=torch.zeros(1, 28, 28, dtype=torch.uint8))

        assert train(make_config(epochs=1), data).steps == 4

    def test_a_loss_that_is_not_finite_says_so(self) -> None:
        config = make_config("clarinet", learning_rate=10.0, optimizer="sgd", trade_off=0.0, epochs=20)

        with pytest.raises(Diverged, match="learning_rate"):
            train(config, make_data())


class TestRandomness:
    def test_the_same_seed_is_bit_equal_and_another_is_not(self) -> None:
        first, again = train(make_config(), make_data()), train(make_config(), make_data())
        other = train(make_config(seed=1), make_data())

        assert equal_weights(first.model, again.model)
        assert not equal_weights(first.model, other.model)

    def test_the_callers_generator_is_left_alone(self) -> None:
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)

        train(make_config(epochs=1), make_data())

        assert torch.equal(torch.rand(1), expected)

    def test_test_labels_change_nothing_but_the_score(self) -> None:
        data = make_data()
        assert data.target_test_labels is not None
        wrong = make_data(target_test_labels=(data.target_test_labels + 1) % 3)

        assert equal_weights(train(make_config(), data).model, train(make_config(), wrong).model)

    def test_held_out_labels_change_no_weight(self) -> None:
        held_out = torch.arange(96) < 10
        data = make_data(held_out=held_out)
        flipped = torch.where(held_out, (data.complementary + 1) % 3, data.complementary)

        changed = make_data(held_out=held_out, complementary=flipped)

        assert equal_weights(train(make_config(), data).model, train(make_config(), changed).model)

    def test_a_shuffle_visits_every_row_once_per_pass(self) -> None:
        shuffle = Shuffle(10, batch_size=4, seed=0, stream="test")
        rows = torch.cat([shuffle.batch(step) for step in range(5)])

        assert sorted(rows[:10].tolist()) == list(range(10))
        assert sorted(rows[10:].tolist()) == list(range(10))
        assert rows[:10].tolist() != rows[10:].tolist()
        assert torch.equal(Shuffle(10, batch_size=4, seed=0, stream="test").batch(3), shuffle.batch(3))


class TestResuming:
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

    def test_a_killed_run_ends_bit_equal(self, tmp_path: Path) -> None:
        undisturbed = train(make_config(), make_data())
        path = tmp_path / "checkpoint.safetensors"
        code = (
            "import os, signal, torch; torch.set_num_threads(1)\n"
            "from pathlib import Path\n"
            "from clarinet.training import train\n"
            "from tests.clarinet.factories import make_config, make_data\n"
            "steps = iter(range(100))\n"
            "def die():\n"
            "    if next(steps) == 10: os.kill(os.getpid(), signal.SIGKILL)\n"
            "    return False\n"
            f"train(make_config(), make_data(), checkpoint=Path({str(path)!r}), should_stop=die)\n"
        )

        killed = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2])

        assert killed.returncode == -9
        assert checkpoints.read_tensors(path, kind="checkpoint")[1]["step"] == 8
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
        del header["config"]["ink_of_colours"]
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
    def test_a_checkpoint_that_lacks_a_tensor_is_refused(self, part: str, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        with pytest.raises(Interrupted):
            train(make_config(), make_data(), checkpoint=path, should_stop=stop_after(3))
        tensors, header = checkpoints.read_tensors(path, kind="checkpoint")
        lost = next(name for name in tensors if name.startswith(part))
        checkpoints.write_tensors(
            path, {k: v for k, v in tensors.items() if k != lost}, header, kind="checkpoint"
        )

        with pytest.raises(CheckpointError, match=f"{lost} is missing"):
            train(make_config(), make_data(), checkpoint=path)

    @pytest.mark.parametrize("fault", ["folder", "replace"])
    def test_a_disk_that_refuses_is_a_sentence_and_leaves_what_was_there(
        self, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = tmp_path / "checkpoint.safetensors"
        checkpoints.write_tensors(before, {"a": torch.ones(1)}, {}, kind="checkpoint")
        path = before / "below.safetensors" if fault == "folder" else before

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        if fault == "replace":
            monkeypatch.setattr(Path, "replace", refuse)

        with pytest.raises(CheckpointNotWritten, match="cannot be written"):
            checkpoints.write_tensors(path, {"a": torch.zeros(1)}, {}, kind="checkpoint")

        assert list(tmp_path.iterdir()) == [before]
        assert checkpoints.read_tensors(before, kind="checkpoint")[0]["a"].item() == 1

    def test_the_file_and_then_its_folder_are_synced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[bool] = []
        sync = os.fsync

        def watch(descriptor: int) -> None:
            synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", watch)
        checkpoints.write_tensors(tmp_path / "a.safetensors", {"a": torch.ones(1)}, {}, kind="checkpoint")

        assert synced == [False, True]

    def test_no_temporary_file_is_left(self, tmp_path: Path) -> None:
        train(make_config(), make_data(), checkpoint=tmp_path / "deep" / "checkpoint.safetensors")

        assert [path.name for path in (tmp_path / "deep").iterdir()] == ["checkpoint.safetensors"]


def test_the_step_size_rises_and_falls() -> None:
    config = make_config(warmup=0.1, final_learning_rate=0.02, pretraining=0.0)

    assert rate_share(config, 0.05) == pytest.approx(0.5)
    assert rate_share(config, 0.1) == pytest.approx(1.0)
    assert rate_share(config, 0.55) == pytest.approx(0.51)
    assert rate_share(config, 1.0) == pytest.approx(0.02)
    assert rate_share(make_config("clarinet"), 0.7) == 1.0


def test_the_step_size_rises_and_falls_in_the_pretraining_and_then_anew() -> None:
    whole = make_config(warmup=0.1, final_learning_rate=0.02, pretraining=0.0)
    config = dataclasses.replace(whole, pretraining=0.34)  # a third
    warmup, final = PRETRAINING_RATE

    assert rate_share(config, warmup / 6) == pytest.approx(0.5)
    assert rate_share(config, warmup / 3) == pytest.approx(1.0)
    assert rate_share(config, 1 / 3 - 1e-9) == pytest.approx(final)
    for progress in (0.0, 0.05, 0.1, 0.55, 1.0):
        assert rate_share(config, 1 / 3 + progress * 2 / 3) == pytest.approx(rate_share(whole, progress))
