"""Simulated labels: kinds, uniformity, noise, repeatability."""

import numpy as np
import pytest
import torch

from clarinet.data.drawn_labels import simulate_labels
from clarinet.recipes.errors import DataError

TRUE = torch.arange(12_000) % 4
TRUTH = TRUE.numpy()


def test_cc_gives_every_image_one_wrong_class_and_uniformly_so() -> None:
    labels = simulate_labels(TRUE, 4, seed=0, setting="cc")

    assert bool((labels.true == -1).all())
    assert bool((labels.complementary != TRUTH).all())
    for truth in range(4):
        counts = np.bincount(labels.complementary[truth == TRUTH], minlength=4)
        expected = np.full(4, 1000.0)
        expected[truth] = 0
        # 5 standard deviations of a binomial with 3,000 draws and p = 1/3.
        assert bool((np.abs(counts - expected) <= 5 * 26).all())


def test_pc_gives_the_wanted_number_of_true_labels_and_complementary_ones_elsewhere() -> None:
    labels = simulate_labels(TRUE, 4, seed=0, setting="pc", true_count=500)
    known = labels.true != -1

    assert int(known.sum()) == 500
    assert np.array_equal(labels.true[known], TRUTH[known])
    assert np.array_equal(labels.complementary == -1, known)


def test_uniform_questions_are_answered_yes_once_in_k() -> None:
    labels = simulate_labels(TRUE, 4, seed=0, setting="cc", questions=True)
    yes = labels.true != -1

    assert abs(int(yes.sum()) - 3000) <= 5 * 48  # 5 standard deviations of 12,000 draws with p = 1/4
    assert np.array_equal(labels.true[yes], TRUTH[yes])
    assert bool((labels.complementary[~yes] != TRUTH[~yes]).all())


def test_questions_can_ask_about_some_classes_more_often() -> None:
    asked = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    labels = simulate_labels(TRUE, 4, seed=0, setting="cc", questions=True, asked=[1, 2, 3, 4])
    yes = labels.true != -1
    question = np.where(yes, labels.true, labels.complementary)

    assert np.array_equal(labels.true[yes], TRUTH[yes])
    assert bool((labels.complementary[~yes] != TRUTH[~yes]).all())
    # 5 standard deviations of 12,000 draws.
    assert bool((np.abs(np.bincount(question) / 12_000 - asked) <= 5 * 0.5 / 12_000**0.5).all())
    assert labels.probabilities is not None
    np.testing.assert_allclose(labels.probabilities, asked[question], rtol=1e-6)


def test_only_questions_have_probabilities() -> None:
    uniform = simulate_labels(TRUE, 4, seed=0, setting="pc", questions=True).probabilities

    assert simulate_labels(TRUE, 4, seed=0, setting="pc").probabilities is None
    assert uniform is not None
    assert bool((uniform == 0.25).all())


def test_noise_makes_that_share_of_the_complementary_labels_name_the_truth() -> None:
    labels = simulate_labels(TRUE, 4, seed=0, setting="cc", label_noise=0.1)

    assert abs(int((labels.complementary == TRUTH).sum()) - 1200) <= 5 * 33  # 5 standard deviations


def test_labels_follow_from_the_seed() -> None:
    first, again, other = (simulate_labels(TRUE, 4, seed=seed, setting="cc") for seed in (0, 0, 1))

    assert np.array_equal(first.complementary, again.complementary)
    assert not np.array_equal(first.complementary, other.complementary)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="num_classes 1"):
        simulate_labels(torch.zeros(4, dtype=torch.int64), 1, seed=0, setting="cc")
    with pytest.raises(DataError, match=r"0\.\.2"):
        simulate_labels(TRUE, 3, seed=0, setting="cc")
    with pytest.raises(DataError, match="12,000 true labels asked for"):
        simulate_labels(TRUE, 4, seed=0, setting="pc", true_count=12_000)
    for labels in (TRUE[:, None], TRUE[0], TRUE.int(), TRUE.double()):
        with pytest.raises(DataError, match="true labels have type"):
            simulate_labels(labels, 4, seed=0, setting="cc")
    for asked in ([1, 1], [1, 1, 1, 0], [1, 1, 1, float("inf")]):
        with pytest.raises(DataError, match="4 numbers above 0"):
            simulate_labels(TRUE, 4, seed=0, setting="cc", questions=True, asked=asked)
    with pytest.raises(DataError, match="label_noise 2"):
        simulate_labels(TRUE, 4, seed=0, setting="cc", label_noise=2)
