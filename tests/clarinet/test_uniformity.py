"""The test of uniformity: quiet on uniform labels whatever the classes, loud on what it claims to see."""

import math

import pytest
import torch
from torch import Tensor

from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.seeding import generator
from clarinet.data.uniformity import _likeliest_shares, check_uniformity

NONE = torch.full((0,), -1)


def classes(shares: list[float], count: int, seed: int) -> Tensor:
    return torch.multinomial(
        torch.tensor(shares), count, replacement=True, generator=generator(seed, "classes")
    )


def asked(true: Tensor, preference: list[float], seed: int) -> tuple[Tensor, Tensor]:
    """Complementary and true labels from one question per image, about classes with a preference."""
    draws = generator(seed, "questions")
    question = torch.multinomial(torch.tensor(preference), len(true), replacement=True, generator=draws)
    yes = question == true
    return question.masked_fill(yes, -1), question.masked_fill(~yes, -1)


UNEVEN = [0.55, 0.25, 0.15, 0.05, 0.0]


class TestQuiet:
    @pytest.mark.long
    @pytest.mark.parametrize("questions", [False, True])
    @pytest.mark.parametrize("shares", [[0.2] * 5, UNEVEN])
    def test_uniform_labels_of_any_classes_are_seldom_suspected(
        self, shares: list[float], questions: bool
    ) -> None:
        p_values = []
        for seed in range(200):
            true = classes(shares, 600, seed)
            labels = simulate_labels(true, 5, seed=seed, setting="pc", true_count=150, questions=questions)
            found = check_uniformity(torch.from_numpy(labels.complementary), torch.from_numpy(labels.true), 5)
            assert found is not None
            p_values.append(found.p_value)

        # A valid p-value is below 0.1 in at most one case of ten: 20 and three standard deviations.
        assert sum(p < 0.1 for p in p_values) <= 20 + 3 * 4.3
        assert not any(p < 1e-3 for p in p_values)

    def test_a_histogram_that_classes_can_explain_is_not_held_against_the_labels(self) -> None:
        labels = simulate_labels(classes(UNEVEN, 5_000, 0), 5, seed=0, setting="cc")
        counts = torch.bincount(torch.from_numpy(labels.complementary), minlength=5)

        found = check_uniformity(torch.from_numpy(labels.complementary), torch.from_numpy(labels.true), 5)

        assert float(counts.max() / counts.min()) > 2  # far from flat
        assert found is not None
        assert not found.is_rejected

    def test_two_classes_tell_nothing(self) -> None:
        found = check_uniformity(torch.zeros(100, dtype=torch.int64), torch.full((100,), -1), 2)

        assert found is not None
        assert found.p_value == 1.0


class TestLoud:
    def test_a_class_named_too_often_for_any_shares_is_named(self) -> None:
        true = classes([0.2] * 5, 600, 0)
        complementary, _ = asked(true, [0.1, 0.1, 0.5, 0.2, 0.1], 0)

        found = check_uniformity(complementary, torch.full_like(true, -1), 5)

        assert found is not None
        assert found.is_rejected
        assert found.most_named == 2
        assert found.implied_shares[2] < 0
        assert sum(found.implied_shares) == pytest.approx(1)

    def test_true_labels_uncover_a_preference_that_some_shares_would_explain(self) -> None:
        true = classes([0.2] * 5, 3_000, 0)
        complementary, yes = asked(true, [0.24, 0.24, 0.22, 0.2, 0.1], 0)

        alone = check_uniformity(complementary, torch.full_like(true, -1), 5)
        compared = check_uniformity(complementary, yes, 5)

        assert alone is not None
        assert not alone.is_rejected
        assert compared is not None
        assert compared.is_rejected


def test_weights_can_make_up_for_uneven_questions() -> None:
    preference = [0.1, 0.1, 0.5, 0.2, 0.1]
    true = classes([0.2] * 5, 2_000, 0)
    complementary, yes = asked(true, preference, 0)
    weights = 1 / torch.tensor(preference)[torch.where(yes >= 0, yes, complementary)]

    found = check_uniformity(complementary, yes, 5, weights=weights)

    assert found is not None
    assert not found.is_rejected


def test_a_rare_question_with_all_of_its_weight_is_no_evidence() -> None:
    # One question of a hundred asks about class 0, which no image shows, and chance has asked 23 of 1,000.
    labels = torch.cat([torch.zeros(23), torch.arange(977) % 4 + 1]).long()
    weights = torch.where(labels == 0, 25.0, 0.77)

    found = check_uniformity(labels, torch.full_like(labels, -1), 5, weights=weights)

    assert found is not None
    assert found.most_named == 0
    assert found.p_value > 0.01


def test_the_scale_of_weights_is_nothing_and_no_labels_no_result() -> None:
    true = classes([0.2] * 5, 300, 0)
    complementary, yes = asked(true, [0.1, 0.1, 0.4, 0.2, 0.2], 0)

    plain = check_uniformity(complementary, yes, 5)
    scaled = check_uniformity(complementary, yes, 5, weights=torch.full((300,), 7.0))

    assert plain is not None
    assert scaled is not None
    assert scaled.p_value == pytest.approx(plain.p_value)
    assert check_uniformity(NONE, NONE, 5) is None


def test_the_excess_is_bounded_by_chernoff() -> None:
    # 9 of 12 labels name class 0 where 1/2 is the most: exact tail sum over Bin(12, 1/2).
    labels = torch.tensor([0] * 9 + [1, 1, 2])
    tail = sum(math.comb(12, n) for n in range(9, 13)) / 2**12

    found = check_uniformity(labels, torch.full((12,), -1), 3)

    assert found is not None
    assert 3 * tail <= found.p_value <= 3 * 4 * tail


class TestLikeliestShares:
    def test_without_labels_that_exclude_they_are_the_counts(self) -> None:
        known = torch.tensor([5.0, 3.0, 2.0], dtype=torch.float64)

        torch.testing.assert_close(_likeliest_shares(torch.zeros_like(known), known), known / 10)

    @pytest.mark.parametrize("known", [[5.0, 30.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [500.0, 1.0, 1.0, 1.0]])
    def test_no_other_shares_are_likelier(self, known: list[float]) -> None:
        named = torch.tensor([40.0, 10.0, 30.0, 25.0], dtype=torch.float64)
        seen = torch.tensor(known, dtype=torch.float64)

        def likelihood(shares: Tensor) -> float:
            return float((torch.xlogy(seen, shares) + torch.xlogy(named, 1 - shares)).sum())

        best = _likeliest_shares(named, seen)

        assert float(best.sum()) == pytest.approx(1)
        assert bool((best >= 0).all())
        draws = generator(0, "others")
        for _ in range(300):
            other = (2 * torch.randn(4, generator=draws, dtype=torch.float64)).softmax(0)
            near = 0.98 * best + 0.02 * other
            assert max(likelihood(other), likelihood(near)) <= likelihood(best) + 1e-9
