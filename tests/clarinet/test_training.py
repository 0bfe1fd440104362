"""The loop: it learns, repeats itself, resumes bit-equal, and fails in words."""

import dataclasses
import math

import pytest
import torch

from clarinet.data.domains import prepare
from clarinet.data.feeding import taken
from clarinet.data.seeding import Shuffle
from clarinet.networks.classifier import SOURCE
from clarinet.recipes.errors import Diverged
from clarinet.recipes.methods import config_for
from clarinet.run.building import PRETRAINING_RATE, build_networks, rate_share
from clarinet.run.objective import Objective
from clarinet.run.training import EpochReport, train
from tests.clarinet.factories import CASES, equal_weights, make_case, make_config, make_data

pytestmark = pytest.mark.long


class TestLearning:
    @pytest.mark.long
    @pytest.mark.parametrize("setting", ["cc", "pc"])
    def test_plus_tells_bars_apart(self, setting: str) -> None:
        data = make_data(200, true_rows=20 if setting == "pc" else 0)
        config = config_for(
            "clarinet-plus", "digits-quick", setting=setting, epochs=4, steps_per_epoch=20, average_decay=0.9
        )

        result = train(config, data)

        assert result.target_accuracy is not None
        assert result.target_accuracy > 0.95

    @pytest.mark.long
    def test_the_papers_risk_tells_bars_apart_at_a_larger_rate(self) -> None:
        config = config_for("gac", epochs=3, steps_per_epoch=20, batch_size=64, learning_rate=5e-3)

        result = train(config, make_data(200))

        assert result.target_accuracy is not None
        assert result.target_accuracy > 0.9


@pytest.mark.parametrize("average_decay", [0.0, 0.9])
def test_the_teacher_never_drops_out_and_the_student_keeps_training(average_decay: float) -> None:
    config, device = make_config(average_decay=average_decay), torch.device("cpu")
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

    @pytest.mark.long
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

    @pytest.mark.long
    def test_criteria_without_labels_are_reported(self) -> None:
        averaged = train(make_config(), make_data()).reports[-1]
        plain = train(make_config(average_decay=0.0), make_data()).reports[-1]

        assert 0 <= averaged.target_information <= math.log(3)
        assert averaged.student_agreement is not None
        assert 0 <= averaged.student_agreement <= 1
        assert plain.student_agreement is None

    def test_without_test_labels_or_held_out_ones_there_are_no_accuracies(self) -> None:
        data = make_data(target_test_images=None, target_test_labels=None)

        result = train(make_config(held_out_share=0), data)

        assert result.target_accuracy is None
        assert result.confusion is None
        assert result.reports[-1].source_estimate is None

    @pytest.mark.usefixtures("few_are_enough")
    def test_held_out_labels_count_by_their_weights(self) -> None:
        held_out, some = torch.arange(96) < 30, torch.arange(96) % 3 == 0

        def estimate(weight_of_others: float) -> float | None:
            weights = torch.where(held_out & ~some, weight_of_others, 1.0)
            data = make_data(weights=weights, held_out=held_out)
            found = train(make_config(epochs=1, steps_per_epoch=1), data).reports[-1].source_estimate
            return found.high if found else None  # the estimate of so few is clipped

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
        config = make_config("gac", learning_rate=10.0, optimizer="sgd", epochs=20)

        with pytest.raises(Diverged, match="learning_rate"):
            train(config, make_data())


class TestRandomness:
    @pytest.mark.long
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

    @pytest.mark.long
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


def test_the_step_size_rises_and_falls() -> None:
    config = make_config(warmup=0.1, final_learning_rate=0.02, pretraining_share=0.0)

    assert rate_share(config, 0.05) == pytest.approx(0.5)
    assert rate_share(config, 0.1) == pytest.approx(1.0)
    assert rate_share(config, 0.55) == pytest.approx(0.51)
    assert rate_share(config, 1.0) == pytest.approx(0.02)
    assert rate_share(make_config("clarinet"), 0.7) == 1.0


def test_the_step_size_rises_and_falls_in_the_pretraining_and_then_anew() -> None:
    whole = make_config(warmup=0.1, final_learning_rate=0.02, pretraining_share=0.0)
    config = whole.changed(pretraining_share=0.34)  # a third
    warmup, final = PRETRAINING_RATE

    assert rate_share(config, warmup / 6) == pytest.approx(0.5)
    assert rate_share(config, warmup / 3) == pytest.approx(1.0)
    assert rate_share(config, 1 / 3 - 1e-9) == pytest.approx(final)
    for progress in (0.0, 0.05, 0.1, 0.55, 1.0):
        assert rate_share(config, 1 / 3 + progress * 2 / 3) == pytest.approx(rate_share(whole, progress))
