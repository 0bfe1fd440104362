"""Prediction and scores."""

import math
from dataclasses import astuple

import numpy as np
import pytest
import torch
from torch import Tensor

from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.seeding import generator
from clarinet.networks.classifier import Classifier, ModelSpec
from clarinet.recipes.binomial import clopper_pearson, effective_count
from clarinet.recipes.errors import DataError
from clarinet.run.evaluation import (
    accuracy_from_complementary,
    agreement,
    information,
    label_noise_from_predictions,
    predict,
    score,
)


def make_model() -> Classifier:
    spec = ModelSpec(
        architecture="lenet",
        channels=1,
        image_size=28,
        input_normalisation="range",
        norm_per_domain=False,
        num_classes=4,
    )
    return Classifier(spec)


class TestPredict:
    def test_twice_is_equal_even_when_the_model_was_left_in_training_mode(self) -> None:
        model = make_model().train()
        images = torch.randint(256, (9, 28, 28), generator=generator(0, "images"), dtype=torch.uint8)

        first, second = predict(model, images), predict(model, images)

        assert torch.equal(first, second)
        assert model.training

    def test_rows_are_probabilities_for_any_size_and_number(self) -> None:
        model = make_model()

        for size in ((28, 28), (9, 9), (28, 28, 3)):
            assert predict(model, torch.zeros(0, *size, dtype=torch.uint8)).shape == (0, 4)
        probabilities = predict(model, torch.zeros(3, 16, 12, 3, dtype=torch.uint8))

        torch.testing.assert_close(probabilities.sum(1), torch.ones(3))

    @pytest.mark.parametrize(
        "images",
        [
            torch.zeros(2, 28, 28),
            torch.zeros(28, 28, dtype=torch.uint8),
            torch.zeros(32, 32, 3, dtype=torch.uint8),
            np.zeros((2, 28, 28), np.uint8),
            torch.zeros(2, 28, 28, 4, dtype=torch.uint8),
            torch.zeros(2, 0, 28, dtype=torch.uint8),
        ],
    )
    def test_what_are_no_images_is_refused(self, images: Tensor) -> None:
        with pytest.raises(DataError, match="images"):
            predict(make_model(), images)

    def test_a_rows_prediction_does_not_depend_on_its_neighbours(self) -> None:
        model = make_model()
        images = torch.randint(256, (520, 28, 28), generator=generator(0, "images"), dtype=torch.uint8)

        together = predict(model, images)

        torch.testing.assert_close(predict(model, images[517:518]), together[517:518])


def test_scores_count_rows_as_truth_and_columns_as_prediction() -> None:
    scores = score(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 0, 1, 0]), 3)

    assert scores.accuracy == 0.75
    assert scores.confusion == [[2, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert scores.per_class == [pytest.approx(2 / 3), 1.0, None]


class TestAccuracyFromComplementaryLabels:
    @pytest.mark.parametrize("accuracy", [0.0, 0.6, 1.0])
    def test_it_finds_the_accuracy_within_its_error(self, accuracy: float) -> None:
        count, num_classes = 20_000, 10
        true = torch.arange(count) % num_classes
        right = torch.arange(count) < accuracy * count
        wrong = (true + 1 + torch.randint(9, (count,), generator=generator(0, "wrong"))) % num_classes
        labels = simulate_labels(true, num_classes, seed=0, setting="cc")

        found = accuracy_from_complementary(
            torch.where(right, true, wrong), torch.from_numpy(labels.complementary), num_classes
        )

        assert found is not None
        assert found.low <= accuracy <= found.high
        assert found.high - found.low < 0.1

    @pytest.mark.parametrize("noise", [0.02, 0.05])
    @pytest.mark.parametrize("accuracy", [0.3, 0.97])
    def test_wrong_labels_are_allowed_for(self, noise: float, accuracy: float) -> None:
        """Every label that an image can have, weighted by its probability: the estimate is exact."""
        num_classes, count = 10, 1000
        true = torch.arange(count) % num_classes
        predicted = torch.where(torch.arange(count) < accuracy * count, true, (true + 3) % num_classes)
        image, named = torch.cartesian_prod(torch.arange(count), torch.arange(num_classes)).T
        share = torch.where(named == true[image], noise, (1 - noise) / (num_classes - 1)).double()

        plain, repaired = (
            accuracy_from_complementary(predicted[image], named, num_classes, weights=share, label_noise=rho)
            for rho in (0.0, noise)
        )

        assert plain is not None
        assert repaired is not None
        assert repaired.value == pytest.approx(accuracy)
        assert repaired.low < accuracy
        assert accuracy < repaired.high or repaired.high == 1
        assert abs(plain.value - accuracy) > 0.03

    def test_labels_as_often_wrong_as_drawn_blindly_say_nothing(self) -> None:
        labels = torch.arange(20) % 10

        assert accuracy_from_complementary(labels, labels.flip(0), 10, label_noise=0.1) is None

    def test_weights_of_one_over_q_make_up_for_questions_that_prefer_classes(self) -> None:
        # Every question about ten images, three of them predicted wrongly, with its probability as its share.
        num_classes, q = 4, torch.tensor([0.7, 0.1, 0.1, 0.1], dtype=torch.float64)
        true = torch.arange(10) % num_classes
        predicted = torch.where(torch.arange(10) < 3, (true + 1) % num_classes, true)
        image, asked = torch.cartesian_prod(torch.arange(10), torch.arange(num_classes)).T
        no = asked != true[image]
        image, asked = image[no], asked[no]

        plain, repaired = (
            accuracy_from_complementary(predicted[image], asked, num_classes, weights=weights)
            for weights in (q[asked], q[asked] / q[asked])
        )

        assert repaired is not None
        assert repaired.value == pytest.approx(0.7)
        assert plain is not None
        assert abs(plain.value - 0.7) > 0.05

    def test_no_hit_is_not_certainty(self) -> None:
        found = accuracy_from_complementary(torch.zeros(8), torch.ones(8), 10)

        # Of 8 labels none is hit by a share of hits that happens in 2.5 % of all cases, (1 - share)^8.
        assert found is not None
        assert (found.value, found.high) == (1.0, 1.0)
        assert found.low == max(0.0, 1 - 9 * (1 - 0.025 ** (1 / 8)))
        fewer = accuracy_from_complementary(torch.zeros(80), torch.ones(80), 10)
        assert fewer is not None
        assert fewer.low == pytest.approx(1 - 9 * (1 - 0.025 ** (1 / 80)))

    def test_nothing_leaves_0_to_100_percent(self) -> None:
        for labels in (torch.zeros(96), torch.arange(96) % 2, torch.ones(96)):
            found = accuracy_from_complementary(torch.zeros(96), labels, 10)

            assert found is not None
            assert 0 <= found.low <= found.value <= found.high <= 1

    def test_labels_count_by_their_weights(self) -> None:
        weights = torch.tensor([3.0, 1.0, 1.0, 1.0])

        found = accuracy_from_complementary(
            torch.tensor([0, 1, 1, 1]), torch.tensor([2, 2, 2, 1]), 3, weights=weights
        )

        assert found is not None
        share, count = 1 / 6, 36 / 12  # sum of w * hit over sum of w; (sum of w)^2 over sum of w^2
        smoothed = (share * count + 1) / (count + 2)
        assert effective_count(share, math.sqrt(smoothed * (1 - smoothed) / count)) == pytest.approx(count)
        low, high = clopper_pearson(share * count, count)
        assert found.value == pytest.approx(1 - 2 * share)
        assert found.low == max(0.0, 1 - 2 * high)
        assert found.high == pytest.approx(1 - 2 * low)

    def test_labels_of_one_image_err_together(self) -> None:
        # Ten images, each with five labels that say the same; two of them are hit by all of theirs.
        predicted, labels = torch.zeros(50), (torch.arange(50) >= 10).long()
        images = torch.arange(50) // 5

        alone = accuracy_from_complementary(predicted, labels, 2)
        together = accuracy_from_complementary(predicted, labels, 2, images=images)

        assert alone is not None
        assert together is not None
        assert together.value == alone.value == pytest.approx(0.8)
        count = effective_count(0.2, math.sqrt(0.2 * 0.8 / 10))
        assert count == pytest.approx(10, rel=0.25)  # as of ten labels
        low, high = clopper_pearson(0.2 * count, count)
        assert (together.low, together.high) == pytest.approx((1 - high, 1 - low))
        assert alone.high - alone.low < (together.high - together.low) / 1.8

    def test_hits_of_heavy_labels_count_as_the_few_that_they_are(self) -> None:
        weights = torch.tensor([10.0] * 2 + [1.0] * 100)
        labels = (torch.arange(102) >= 2).long()

        found = accuracy_from_complementary(torch.zeros(102), labels, 2, weights=weights)

        assert found is not None
        share = 20 / 120
        squares = 2 * (10 * (1 - share)) ** 2 + 100 * share**2
        count = effective_count(share, math.sqrt(squares) / 120)
        assert count < 20  # of 102 labels
        assert found.low == pytest.approx(1 - clopper_pearson(share * count, count)[1])

    def test_equal_weights_of_any_size_are_no_weights(self) -> None:
        labels, predicted = torch.arange(20) % 5, torch.arange(20) % 4

        plain = accuracy_from_complementary(predicted, labels, 5)

        same = accuracy_from_complementary(predicted, labels, 5, weights=torch.full((20,), 0.25))

        assert plain is not None
        assert same is not None
        assert astuple(same) == pytest.approx(astuple(plain))

    def test_without_labels_that_count_there_is_no_estimate(self) -> None:
        assert accuracy_from_complementary(torch.zeros(0), torch.zeros(0), 10) is None
        assert accuracy_from_complementary(torch.zeros(2), torch.ones(2), 10, weights=torch.zeros(2)) is None


class TestLabelNoise:
    @pytest.mark.parametrize(("noise", "accuracy"), [(0.0, 1.0), (0.02, 1.0), (0.05, 0.9), (0.3, 0.6)])
    def test_it_inverts_the_expected_share_of_hits_exactly(self, noise: float, accuracy: float) -> None:
        # Every (prediction, label) of an image of class 0, with its probability as the label's weight.
        num_classes = 5
        chance_p = [accuracy] + [(1 - accuracy) / 4] * 4
        chance_l = [noise] + [(1 - noise) / 4] * 4
        cells = [(p, c, chance_p[p] * chance_l[c]) for p in range(5) for c in range(5)]
        predicted, labels, chances = (torch.tensor(column) for column in zip(*cells, strict=True))

        found = label_noise_from_predictions(
            predicted, labels, num_classes, accuracy=accuracy, weights=chances.double()
        )

        assert found is not None
        assert found.value == pytest.approx(noise, abs=1e-7)
        assert found.low <= found.value < found.high

    def test_it_finds_the_rate_of_simulated_labels_within_its_error(self) -> None:
        true = torch.arange(20_000) % 10
        labels = torch.from_numpy(
            simulate_labels(true, 10, seed=0, setting="cc", label_noise=0.02).complementary
        )

        found = label_noise_from_predictions(true, labels, 10)

        assert found is not None
        assert found.low <= 0.02 <= found.high
        assert found.high - found.low < 0.005

    def test_no_hit_is_not_certainty_and_fewer_than_chance_is_no_negative_rate(self) -> None:
        found = label_noise_from_predictions(torch.zeros(50), torch.ones(50), 3, accuracy=0.5)

        assert found is not None
        assert (found.value, found.low) == (0, 0)
        assert found.high == 0  # fewer hits than guessing gives
        some = label_noise_from_predictions(torch.zeros(50), torch.ones(50), 3)
        assert some is not None
        assert some.high == pytest.approx(1 - 0.025 ** (1 / 50))

    def test_what_cannot_tell_is_refused_or_none(self) -> None:
        with pytest.raises(DataError, match="better than guessing"):
            label_noise_from_predictions(torch.zeros(5), torch.ones(5), 4, accuracy=0.25)
        assert label_noise_from_predictions(torch.zeros(0), torch.zeros(0), 4) is None


class TestCriteriaWithoutLabels:
    def test_information_by_hand(self) -> None:
        sure = torch.eye(4)

        assert information(sure) == pytest.approx(math.log(4))
        assert information(torch.full((5, 4), 0.25)) == pytest.approx(0)
        assert information(sure[:1].expand(7, 4)) == pytest.approx(0)  # sure, but of one class for all
        half = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
        mean = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
        assert information(half) == pytest.approx(mean - math.log(2) / 2)

    def test_agreement_counts_equal_classes_and_does_not_see_a_merged_one(self) -> None:
        first = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
        other = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])

        assert agreement(first, other) == pytest.approx(2 / 3)
        assert agreement(first[:2], first[:2]) == 1.0  # though class 2 is never named

    def test_what_is_no_prediction_is_refused(self) -> None:
        for other in (torch.eye(3)[:1], torch.eye(3).repeat(2, 1), torch.eye(4)[:3]):
            with pytest.raises(DataError, match="expected two of the same images"):
                agreement(torch.eye(3), other)
        with pytest.raises(DataError):
            agreement(torch.empty(0, 3), torch.empty(0, 3))
        for scores in (torch.empty(0, 3), torch.tensor([[2.0, -1.0, 3.0]])):
            with pytest.raises(DataError, match="probabilities that sum to 1"):
                information(scores)
