"""The losses on labels, by identities, one case by hand, and slow loops in double precision."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.domains import true_label_share
from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.seeding import generator
from clarinet.losses.complementary import (
    bounded_complementary_loss,
    class_floor_loss,
    class_proportions,
    corrected_objective,
    estimated_class_ceiling,
    per_class_complementary_risk,
    true_label_loss,
    without_classes,
)


def random_case(n: int, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (n, k) in double precision, labels (n,) and positive weights (n,)."""
    draws = generator(3, f"losses/{n}/{k}")
    logits = 3 * torch.randn(n, k, generator=draws, dtype=torch.float64)
    labels = torch.randint(k, (n,), generator=draws)
    return logits, labels, torch.rand(n, generator=draws, dtype=torch.float64) + 0.5


def loss_had_the_class_been_true(row: list[float], k: int) -> float:
    """-log softmax(row)_k without any trick."""
    return -math.log(math.exp(row[k]) / sum(math.exp(z) for z in row))


class TestComplementaryRisk:
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_averaged_over_every_wrong_class_it_is_cross_entropy(self, k: int) -> None:
        logits, _, _ = random_case(1, k)
        for truth in range(k):
            labels = torch.tensor([c for c in range(k) if c != truth])

            risk = per_class_complementary_risk(logits.expand(k - 1, k), labels, torch.ones(k - 1)).sum()

            torch.testing.assert_close(risk, F.cross_entropy(logits, torch.tensor([truth])))

    def test_by_hand(self) -> None:
        # Probabilities (1/2, 1/4, 1/4), complementary label 1, K = 3:
        # L_0 = log 2, L_1 = log 4 - 2 log 4 = -log 4, L_2 = log 4.
        logits = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64).log()

        risk = per_class_complementary_risk(logits, torch.tensor([1]), torch.ones(1, dtype=torch.float64))

        expected = torch.tensor([math.log(2), -math.log(4), math.log(4)], dtype=torch.float64)
        torch.testing.assert_close(risk, expected)

    @pytest.mark.parametrize("own", [True, False])
    @pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 3), (32, 10), (5, 10)])
    def test_agrees_with_eq_e2_written_as_loops(self, n: int, k: int, own: bool) -> None:
        logits, labels, _ = random_case(n, k)
        rows, given = logits.tolist(), labels.tolist()
        whole = [(j + 1) / (k * (k + 1) / 2) for j in range(k)]  # of a data set, unlike the batch
        expected = []
        for k_ in range(k):
            first, second = 0.0, 0.0
            for j in range(k):
                group = [row for row, label in zip(rows, given, strict=True) if label == j]
                if not group:
                    continue  # a label absent from the batch is left out
                pi = len(group) / n if own else whole[j]
                mean = sum(loss_had_the_class_been_true(row, k_) for row in group) / len(group)
                second += pi * mean
                first += pi * mean if j == k_ else 0.0
            expected.append(-(k - 1) * first + second)

        proportions = None if own else torch.tensor(whole, dtype=torch.float64)
        risk = per_class_complementary_risk(logits, labels, torch.ones(n, dtype=torch.float64), proportions)

        torch.testing.assert_close(risk, torch.tensor(expected, dtype=torch.float64))

    def test_with_the_data_sets_proportions_an_untrained_network_has_no_negative_entry(self) -> None:
        labels = torch.tensor([0] * 5 + [1, 2])  # label 0 is far over its share in this batch
        logits, weights = torch.zeros(7, 3, dtype=torch.float64), torch.ones(7, dtype=torch.float64)
        equal = torch.full((3,), 1 / 3, dtype=torch.float64)

        assert bool((per_class_complementary_risk(logits, labels, weights, equal) > 0).all())
        assert bool((per_class_complementary_risk(logits, labels, weights) < 0).any())

    @pytest.mark.parametrize("own", [True, False])
    def test_its_expectation_over_all_batches_misses_the_terms_of_absent_labels(self, own: bool) -> None:
        # Every batch of n labels, one row of logits for each label, with the probability of the batch.
        n, k = 4, 3
        logits, _, _ = random_case(k, k)
        pi = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
        ones = torch.ones(n, dtype=torch.float64)
        expectation = torch.zeros((), dtype=torch.float64)
        for batch in itertools.product(range(k), repeat=n):
            labels = torch.tensor(batch)
            risk = per_class_complementary_risk(logits[labels], labels, ones, None if own else pi)
            expectation = expectation + pi[labels].prod() * risk.sum()
        loss = -logits.log_softmax(1)  # (K, K) of the row of label j, had class k been the truth
        terms = pi * (loss.sum(1) - (k - 1) * loss.diagonal())  # (K,)
        seen = torch.ones_like(pi) if own else 1 - (1 - pi) ** n  # (K,)

        torch.testing.assert_close(expectation, (seen * terms).sum())

    @pytest.mark.parametrize(("share", "negative"), [(0.49, False), (0.51, True)])
    def test_equal_losses_are_negative_only_above_a_share_of_one_in_k_less_one(
        self, share: float, negative: bool
    ) -> None:
        proportions = torch.tensor([share, (1 - share) / 2, (1 - share) / 2])

        risk = per_class_complementary_risk(torch.zeros(3, 3), torch.arange(3), torch.ones(3), proportions)

        assert bool((risk < 0).any()) is negative

    def test_of_two_classes_it_is_the_cross_entropy_of_the_other_one(self) -> None:
        logits = torch.randn(7, 2, generator=generator(3, "logits"), dtype=torch.float64)
        labels, weights = torch.tensor([0, 1, 1, 0, 1, 1, 0]), torch.arange(1, 8, dtype=torch.float64)

        risk = per_class_complementary_risk(logits, labels, weights).sum()

        torch.testing.assert_close(risk, true_label_loss(logits, 1 - labels, weights))

    def test_proportions_are_weighted_shares(self) -> None:
        proportions = class_proportions(torch.tensor([0, 0, 2]), torch.tensor([1.0, 0.5, 0.5]), 4)

        assert proportions.tolist() == [0.75, 0.0, 0.25, 0.0]

    def test_neither_order_nor_shift_nor_scale_of_weights_matters(self) -> None:
        logits, labels, weights = random_case(20, 5)
        order = torch.randperm(20, generator=generator(0, "order"))

        risk = per_class_complementary_risk(logits, labels, weights)

        torch.testing.assert_close(
            per_class_complementary_risk(logits[order] + 7, labels[order], 3 * weights[order]), risk
        )

    def test_a_weight_of_two_is_the_row_twice(self) -> None:
        logits, labels, _ = random_case(4, 3)
        weights = torch.tensor([2.0, 1.0, 1.0, 1.0], dtype=torch.float64)
        twice = torch.tensor([0, 0, 1, 2, 3])

        risk = per_class_complementary_risk(logits, labels, weights)

        torch.testing.assert_close(
            risk,
            per_class_complementary_risk(logits[twice], labels[twice], torch.ones(5, dtype=torch.float64)),
        )


class TestCorrection:
    def test_non_negative_risks_are_summed(self) -> None:
        assert float(corrected_objective(torch.tensor([0.5, 0.0, 1.0]))) == 1.5

    def test_with_a_negative_risk_only_the_negative_ones_are_ascended(self) -> None:
        risk = torch.tensor([0.5, -0.25, -1.0], requires_grad=True)

        objective = corrected_objective(risk)
        torch.autograd.backward(objective)

        assert objective.item() == 1.25
        assert risk.grad is not None
        assert risk.grad.tolist() == [0.0, -1.0, -1.0]

    def test_a_step_along_it_raises_the_negative_risk(self) -> None:
        logits = torch.tensor([[0.0, 4.0, 0.0]], dtype=torch.float64, requires_grad=True)
        labels, weights = torch.tensor([0]), torch.ones(1, dtype=torch.float64)
        before = per_class_complementary_risk(logits, labels, weights)
        assert before[0].item() < 0

        torch.autograd.backward(corrected_objective(before))
        assert logits.grad is not None
        after = per_class_complementary_risk(logits - 0.1 * logits.grad, labels, weights)

        assert after[0].item() > before[0].item()


class TestBoundedLikelihood:
    @pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
    @pytest.mark.parametrize(("n", "k"), [(1, 2), (9, 4)])
    def test_agrees_with_loops(self, n: int, k: int, noise: float) -> None:
        logits, labels, weights = random_case(n, k)
        total = 0.0
        for row, label, weight in zip(logits.tolist(), labels.tolist(), weights.tolist(), strict=True):
            p = math.exp(-loss_had_the_class_been_true(row, label))
            # Times K - 1, the constant that the function takes out.
            total -= weight * math.log((k - 1) * ((1 - noise) * (1 - p) / (k - 1) + noise * p))

        loss = bounded_complementary_loss(logits, labels, weights, label_noise=noise)

        assert float(loss) == pytest.approx(total / float(weights.sum()), rel=1e-10)

    def test_noise_bounds_what_one_wrong_label_costs(self) -> None:
        sure = torch.tensor([[80.0, 0.0, 0.0]])

        loss = bounded_complementary_loss(sure, torch.tensor([0]), torch.ones(1), label_noise=0.1)

        assert float(loss) == pytest.approx(-math.log(0.1 * 2), abs=1e-5)


def test_true_label_loss_agrees_with_loops() -> None:
    logits, labels, weights = random_case(9, 4)
    losses = [
        loss_had_the_class_been_true(row, label)
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    expected = sum(w * loss for w, loss in zip(weights.tolist(), losses, strict=True)) / float(weights.sum())

    assert float(true_label_loss(logits, labels, weights)) == pytest.approx(expected, rel=1e-10)


def test_alpha_weighs_a_true_label_as_k_minus_one_complementary_ones() -> None:
    assert true_label_share(100, 900, 10) == pytest.approx(0.5)
    assert true_label_share(5, 0, 10) == 1.0


def test_gradients_are_right() -> None:
    logits, labels, weights = random_case(4, 3)
    logits.requires_grad_()

    assert torch.autograd.gradcheck(lambda z: per_class_complementary_risk(z, labels, weights), logits)
    assert torch.autograd.gradcheck(lambda z: true_label_loss(z, labels, weights), logits)
    for noise in (0.0, 0.1):
        assert torch.autograd.gradcheck(
            lambda z, rho=noise: bounded_complementary_loss(z, labels, weights, label_noise=rho), logits
        )


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
@pytest.mark.parametrize("label", [0, 1])
def test_saturated_logits_give_finite_losses_and_gradients(size: float, label: int) -> None:
    labels, weights = torch.tensor([label]), torch.ones(1)
    losses: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda z: corrected_objective(per_class_complementary_risk(z, labels, weights)),
        lambda z: bounded_complementary_loss(z, labels, weights, label_noise=0.0),
        lambda z: bounded_complementary_loss(z, labels, weights, label_noise=0.02),
    )
    for loss in losses:
        logits = torch.tensor([[size, 0.0, -size]], requires_grad=True)

        value = loss(logits)
        torch.autograd.backward(value)

        assert logits.grad is not None
        assert bool(torch.isfinite(value))
        assert bool(torch.isfinite(logits.grad).all())


def test_a_surely_wrong_row_still_has_a_gradient() -> None:
    # sigmoid-then-log has none at 20: the row could never be learnt again.
    logits = torch.tensor([[20.0, 0.0, 0.0]], requires_grad=True)

    torch.autograd.backward(
        bounded_complementary_loss(logits, torch.tensor([0]), torch.ones(1), label_noise=0.0)
    )

    assert logits.grad is not None
    assert float(logits.grad[0, 0]) == pytest.approx(1.0, abs=1e-3)


class TestClassFloor:
    def test_it_costs_what_the_missing_classes_lack(self) -> None:
        # Mean prediction (3/4, 1/4, 0+): class 2 is missing, class 1 has its floor of 1/4.
        logits = torch.tensor([[1.0, 1e-9, 1e-9], [0.5, 0.5, 1e-9]], dtype=torch.float64).log()
        floor = torch.full((3,), 0.25, dtype=torch.float64)

        loss = class_floor_loss(logits, floor)

        assert loss.item() == pytest.approx(0.25 * math.log(0.25 / 1e-9), rel=1e-6)

    def test_it_is_nothing_when_every_class_has_its_floor(self) -> None:
        logits = torch.zeros(5, 4, requires_grad=True)

        loss = class_floor_loss(logits, torch.full((4,), 0.2))
        torch.autograd.backward(loss)

        assert loss.item() == 0
        assert logits.grad is not None
        assert not bool(logits.grad.any())

    def test_a_saturated_batch_is_finite_and_pulls_towards_the_missing_class(self) -> None:
        logits = torch.tensor([[80.0, 0.0], [60.0, 0.0]], requires_grad=True)

        torch.autograd.backward(class_floor_loss(logits, torch.full((2,), 0.25)))

        assert logits.grad is not None
        assert bool(torch.isfinite(logits.grad).all())
        assert logits.grad[1, 1].item() < 0

    def test_gradient(self) -> None:
        logits, _, _ = random_case(4, 3)
        floor = torch.tensor([0.3, 0.3, 0.1], dtype=torch.float64)

        assert torch.autograd.gradcheck(lambda z: class_floor_loss(z, floor), logits.requires_grad_())

    def test_complementary_labels_bound_each_share_from_above(self) -> None:
        true = torch.tensor([0] * 9_000 + [1] * 990 + [2] * 10)
        labels = torch.from_numpy(simulate_labels(true, 3, seed=0, setting="cc").complementary)

        ceiling = estimated_class_ceiling(labels, torch.ones(len(labels)), 3)

        for share, bound in zip((0.9, 0.099, 0.001), ceiling.tolist(), strict=True):
            assert share <= bound <= share + 0.06
        assert estimated_class_ceiling(labels[:0], torch.ones(0), 3).tolist() == [1, 1, 1]

    def test_shares_are_bounded_by_weights_where_questions_preferred_classes(self) -> None:
        # Class 0 has no image; its questions, one of 51, are all answered no and have all of the weight back.
        labels = torch.tensor([0] * 1_000 + [1] * 12_500 + [2] * 12_500)
        weights = torch.where(labels == 0, 25.0, 1.0)

        alike, weighed = (
            estimated_class_ceiling(labels, given, 3).tolist() for given in (torch.ones(26_000), weights)
        )

        named = 25_000 / 50_000  # of class 0, whose labels each weigh 1/2,000
        spread = (1_000 * (1 - named) ** 2 / 2_000**2 + 25_000 * named**2 / 50_000**2) ** 0.5
        assert alike[0] > 0.9
        assert weighed[0] == pytest.approx(1 - 2 * (named - 2 * spread), abs=1e-6)
        assert weighed[1] == pytest.approx(0.5, abs=0.02)


class TestRulingOut:
    def test_the_other_classes_share_the_probability(self) -> None:
        logits = torch.tensor([[0.5, 0.25, 0.25]]).log().expand(3, 3)

        probabilities = without_classes(logits, torch.tensor([[0, -1], [-1, -1], [2, 0]]))

        expected = torch.tensor([[0.0, 0.5, 0.5], [0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
        torch.testing.assert_close(probabilities, expected)

    def test_answers_that_leave_no_class_rule_none_out(self) -> None:
        logits = torch.tensor([[0.5, 0.5]]).log()

        assert without_classes(logits, torch.tensor([[0, 1]])).tolist() == [[0.5, 0.5]]
