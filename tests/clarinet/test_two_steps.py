"""GAC, its pseudo-labels and ordinary adaptation to them: one run, resumable anywhere, or by hand."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clarinet import (
    CheckpointMismatch,
    ConfigError,
    DataError,
    EpochReport,
    Interrupted,
    TrainConfig,
    TrainData,
    TrainResult,
    config_for,
    pseudo_labels,
    train,
    with_pseudo_labels,
)
from clarinet.data.domains import prepare
from clarinet.data.fingerprint import fingerprint
from clarinet.networks.classifier import SOURCE
from clarinet.recipes.methods import two_steps
from clarinet.run.evaluation import accuracy_from_complementary, predict
from tests.clarinet.factories import equal_weights, make_config, make_data

pytestmark = pytest.mark.long

METHODS = ["gac+dan", "gac+dann", "gac+cdan_e"]
RATE = {"learning_rate": 1e-3}


def make_run(method: str = "gac+dan", **changes: Any) -> TrainConfig:
    """Two epochs of each step, four steps in each; the second adapts in its second epoch."""
    return make_config(method, epochs=4, **RATE, **changes)


def stop_after(steps: int) -> Callable[[], bool]:
    """A should_stop that lets so many steps through."""
    asked = count()
    return lambda: next(asked) >= steps


class TestConfigs:
    def test_the_epochs_are_shared_out_and_the_first_step_is_gacs_own(self) -> None:
        first, second = two_steps(config_for("gac+dan", epochs=10, learning_rate=0.25, seed=3))
        gac = config_for("gac")

        assert (first.length.epochs, second.length.epochs) == (5, 5)
        assert first.optimisation == gac.optimisation
        assert second.optimisation.learning_rate == 0.25
        assert (first.adaptation.adaptation_kind, second.adaptation.adaptation_kind) == (
            "none",
            "discrepancy",
        )
        assert first.losses.complementary_loss == "unbiased"
        assert second.losses.complementary_loss == "none"
        assert (first.setting, second.setting) == ("cc", "pc")
        assert (first.seed, second.seed) == (3, 3)

    @pytest.mark.parametrize(("epochs", "share"), [(2, 0.01), (2, 0.95), (3, 0.9)])
    def test_each_step_has_an_epoch(self, epochs: int, share: float) -> None:
        first, second = two_steps(config_for("gac+dan", epochs=epochs, first_step_share=share))

        lengths = first.length.epochs, second.length.epochs
        assert sum(lengths) == epochs
        assert min(lengths) >= 1

    @pytest.mark.parametrize("preset", ["paper", "short"])
    @pytest.mark.parametrize("method", METHODS)
    def test_the_first_step_is_gac_of_the_same_preset(self, method: str, preset: str) -> None:
        first, _ = two_steps(config_for(method, preset))

        assert first == config_for("gac", preset)

    @pytest.mark.parametrize("preset", ["paper", "short"])
    @pytest.mark.parametrize("method", METHODS)
    def test_the_second_step_is_the_ordinary_method(self, method: str, preset: str) -> None:
        _, second = two_steps(config_for(method, preset))
        alone = config_for(method.removeprefix("gac+"), preset)

        assert second.to_dict() | {"method": alone.method} == alone.to_dict()

    def test_what_cannot_be_done_in_two_steps_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="at least 2"):
            config_for("gac+dan", epochs=1)
        with pytest.raises(ConfigError, match=r"first_step_share is 0\.5, but dan has 0"):
            config_for("dan", first_step_share=0.5)


class TestTraining:
    @pytest.mark.usefixtures("few_are_enough")
    @pytest.mark.long(but=["gac+dann"])
    @pytest.mark.parametrize("method", METHODS)
    def test_the_steps_by_hand_end_bit_equal(self, method: str) -> None:
        config, data = make_run(method), make_data()
        first, second = two_steps(config)

        gac = train(first, data)
        labels = pseudo_labels(gac, data.source_images)
        adapted = train(second, with_pseudo_labels(data, labels, setting="cc"))
        whole = train(config, data)

        assert equal_weights(whole.model, adapted.model)
        assert [r.losses for r in whole.reports] == [r.losses for r in gac.reports + adapted.reports]
        estimates = [r.source_estimate for r in whole.reports]
        assert estimates == [r.source_estimate for r in gac.reports + adapted.reports]
        assert all(found is not None and found.estimate is not None for found in estimates)

    def test_epochs_and_steps_count_through_both(self) -> None:
        reports: list[EpochReport] = []

        result = train(make_run("gac+cdan_e"), make_data(), on_epoch=reports.append)

        assert result.reports == reports
        assert [(r.epoch, r.epochs, r.step, r.steps) for r in reports] == [
            (epoch, 4, 4 * epoch, 16) for epoch in (1, 2, 3, 4)
        ]
        assert [set(r.losses) for r in reports] == [{"complementary"}] * 2 + [{"true", "adversarial"}] * 2
        assert (result.epochs, result.steps) == (4, 16)
        assert result.config == make_run("gac+cdan_e")
        assert [r.seconds for r in reports] == sorted(r.seconds for r in reports)

    def test_an_epoch_of_unset_length_is_one_pass_in_either_step(self) -> None:
        # 96 labels less the 5 held out train GAC, all 96 images are relabelled: 6 batches of 16 in both.
        result = train(make_run(steps_per_epoch=0), make_data(target_images=make_data(20).target_images))

        assert [r.step for r in result.reports] == [6, 12, 18, 24]
        assert {r.steps for r in result.reports} == {24}

    @pytest.mark.usefixtures("few_are_enough")
    def test_the_held_out_labels_estimate_in_both_steps_and_train_in_none(self) -> None:
        held_out = torch.arange(96) < 30
        data = make_data(held_out=held_out)

        result = train(make_run(), data)

        assert isinstance(data.source_images, Tensor)
        predicted = predict(result, data.source_images[held_out], domain=SOURCE).argmax(1)
        expected = accuracy_from_complementary(predicted, data.complementary[held_out], 3)
        assert expected is not None
        found = result.reports[-1].source_estimate
        assert found is not None
        assert found.estimate == pytest.approx(expected.value)
        assert found.held_out == 30
        moved = torch.where(held_out, (data.complementary + 1) % 3, data.complementary)
        other = train(make_run(), make_data(held_out=held_out, complementary=moved))
        assert equal_weights(result.model, other.model)

    def test_the_scale_of_weights_is_nothing_in_pc_either(self) -> None:
        data = make_data(true_rows=40)

        first = train(make_run(setting="pc"), data)
        other = train(make_run(setting="pc"), replace(data, weights=4 * data.weights))

        assert equal_weights(first.model, other.model)

    @pytest.mark.long
    def test_given_true_labels_train_in_pc_and_not_in_cc(self) -> None:
        data = make_data(true_rows=40)
        wrong = make_data(true_rows=40, true=torch.where(data.true >= 0, (data.true + 1) % 3, -1))

        def weights(setting: str, given: TrainData) -> TrainResult:
            return train(make_run(setting=setting), given)

        assert equal_weights(weights("cc", data).model, weights("cc", wrong).model)
        assert not equal_weights(weights("pc", data).model, weights("pc", wrong).model)


class TestResuming:
    @pytest.mark.long
    @pytest.mark.parametrize("method", ["gac+dan", "gac+cdan_e"])
    def test_a_run_stopped_after_every_single_step_ends_bit_equal(self, method: str, tmp_path: Path) -> None:
        config, data = make_run(method), make_data()
        undisturbed = train(config, data)
        path = tmp_path / "checkpoint.safetensors"
        stopped: list[int] = []

        while True:
            try:
                result = train(config, data, checkpoint=path, should_stop=stop_after(1))
            except Interrupted as interrupted:
                stopped.append(interrupted.step)
            else:
                break

        # A call that takes the last step of GAC is asked again before the first one of the second step.
        assert stopped == list(range(1, 16))
        assert equal_weights(result.model, undisturbed.model)
        assert [r.losses for r in result.reports] == [r.losses for r in undisturbed.reports]
        assert [r.step for r in result.reports] == [4, 8, 12, 16]

    @pytest.mark.long(but=["2"])
    @pytest.mark.parametrize("epoch", [1, 2, 3])
    def test_a_run_that_dies_before_a_checkpoint_ends_bit_equal(self, epoch: int, tmp_path: Path) -> None:
        config, data = make_run(), make_data()
        path = tmp_path / "checkpoint.safetensors"

        def die(report: EpochReport) -> None:
            if report.epoch == epoch:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(config, data, checkpoint=path, on_epoch=die)
        resumed = train(config, data, checkpoint=path)

        assert equal_weights(resumed.model, train(config, data).model)

    def test_a_finished_run_is_not_trained_again(self, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        first = train(make_run(), make_data(), checkpoint=path)
        reports: list[EpochReport] = []

        again = train(make_run(), make_data(), checkpoint=path, on_epoch=reports.append)

        assert reports == []
        assert equal_weights(again.model, first.model)

    @pytest.mark.parametrize("steps", [5, 13])
    def test_another_config_is_refused_in_either_step(self, steps: int, tmp_path: Path) -> None:
        path = tmp_path / "checkpoint.safetensors"
        with pytest.raises(Interrupted):
            train(make_run(), make_data(), checkpoint=path, should_stop=stop_after(steps))

        with pytest.raises(CheckpointMismatch, match="seed"):
            train(make_run(seed=1), make_data(), checkpoint=path)
        with pytest.raises(CheckpointMismatch, match="other images or labels"):
            train(make_run(), make_data(seed=1), checkpoint=path)


class TestPseudoLabels:
    def test_they_are_made_without_dropout(self) -> None:
        result = train(make_run("gac"), make_data())
        images = make_data().source_images
        result.model.train()

        first, second = pseudo_labels(result, images), pseudo_labels(result.model, images)

        assert torch.equal(first, second)
        assert result.model.training
        assert torch.equal(first, predict(result, images, domain=SOURCE).argmax(1))

    def make_labelled(self) -> TrainData:
        """Four images: two complementary labels, one of weight 0 as true, a true one of weight 3, none."""
        return make_data(
            4,
            complementary=torch.tensor([0, 1, -1, -1]),
            true=torch.tensor([-1, -1, 2, 1]),
            weights=torch.tensor([0.5, 2.0, 0.0, 3.0]),
            example=torch.tensor([0, 0, 1, 2]),
            held_out=torch.tensor([False, True, False, False]),
        )

    def test_true_labels_that_count_stay_in_pc(self) -> None:
        labels = torch.tensor([2, 0, 0, 0])

        data = with_pseudo_labels(self.make_labelled(), labels, setting="pc")

        assert data.example is not None
        assert data.held_out is not None
        rows: list[Tensor] = [data.example, data.true, data.complementary, data.weights, data.held_out]
        assert list(zip(*(row.tolist() for row in rows), strict=True)) == [
            (0, 2, -1, 1.0, False),
            (1, 0, -1, 1.0, False),  # its true label is not trusted
            (2, 1, -1, pytest.approx(3 / ((0.5 + 2 + 3) / 3)), False),  # a pseudo-label weighs the mean
            (3, 0, -1, 1.0, False),
            (0, -1, 0, 0.5, False),
            (0, -1, 1, 2.0, True),
        ]

    def test_an_image_held_out_by_hand_keeps_its_pseudo_label_and_one_with_a_true_label_estimates_nothing(
        self,
    ) -> None:
        both = make_data(
            3,
            complementary=torch.tensor([0, -1, 1, -1]),
            true=torch.tensor([-1, 2, -1, 0]),
            weights=torch.ones(4),
            example=torch.tensor([0, 0, 1, 1]),
        )
        labels = torch.tensor([1, 1, 1])

        by_hand = with_pseudo_labels(
            replace(both, held_out=torch.tensor([True, False, False, False])), labels, setting="pc"
        )
        drawn = with_pseudo_labels(both, labels, setting="pc")

        assert by_hand.true[:3].tolist() == [1, 0, 1]
        assert by_hand.complementary[3:].tolist() == [0]
        assert drawn.true.tolist() == [2, 0, 1]
        assert drawn.pseudo_labelled
        assert fingerprint(drawn) != fingerprint(replace(drawn, pseudo_labelled=False))

    def test_true_labels_may_weigh_as_much_as_float32_goes(self) -> None:
        data = make_data(true_rows=40, weights=torch.full((96,), 3e38))

        relabelled = with_pseudo_labels(data, torch.zeros(96, dtype=torch.int64), setting="pc")

        assert relabelled.weights[:96].tolist() == [1.0] * 96

    def test_labels_keep_the_probabilities_of_their_questions(self) -> None:
        asked = torch.tensor([0.1, 0.2, 0.3, 0.4])
        labels = torch.tensor([2, 0, 0, 0])

        given = with_pseudo_labels(replace(self.make_labelled(), probabilities=asked), labels, setting="cc")
        uniform = with_pseudo_labels(self.make_labelled(), labels, setting="cc")

        assert given.probabilities is not None
        assert uniform.probabilities is not None
        assert given.probabilities.tolist() == pytest.approx([1, 1, 1, 1, 0.1, 0.2])
        assert uniform.probabilities.tolist() == pytest.approx([1, 1, 1, 1, 1 / 3, 1 / 3])

    def test_in_cc_every_image_has_its_pseudo_label(self) -> None:
        labels = torch.tensor([2, 0, 0, 0])

        data = with_pseudo_labels(self.make_labelled(), labels, setting="cc")

        assert data.true[:4].tolist() == labels.tolist()
        assert data.weights[:4].tolist() == [1.0] * 4

    def test_the_ordinary_method_trains_on_every_image_and_on_no_complementary_label(self) -> None:
        data = with_pseudo_labels(self.make_labelled(), torch.tensor([2, 0, 0, 0]), setting="pc")

        domains = prepare(data, config_for("dan"), torch.device("cpu"))

        assert domains.true_rows.tolist() == [0, 1, 2, 3]
        assert len(domains.complementary_rows) == 0
        assert domains.weights[domains.true_rows].mean().item() == pytest.approx(1)

    @pytest.mark.parametrize(
        "labels", [torch.zeros(3, dtype=torch.int64), torch.zeros(4), torch.full((4,), 3), torch.zeros(4, 1)]
    )
    def test_labels_that_do_not_fit_are_refused(self, labels: Tensor) -> None:
        with pytest.raises(DataError):
            with_pseudo_labels(self.make_labelled(), labels, setting="cc")
