"""Answers to questions that were drawn with known probabilities: the risk by 1/q."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.losses.complementary import per_class_complementary_risk
from clarinet.losses.nonuniform import (
    per_class_question_risk,
)
from tests.clarinet.logits import ones, random_logits, random_shares


def answer_risk(loss: Tensor, k: int, is_yes: bool, q: float, b: float) -> float:
    """One answer's contribution, as the docstring says it."""
    num_classes = len(loss)
    if is_yes:
        return b * float(loss[k]) / q
    return (1 - b) * (float(loss.sum()) / (num_classes - 1) - float(loss[k])) / q


class TestQuestions:
    @pytest.mark.parametrize("b", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_over_the_draw_of_each_question_it_is_cross_entropy(self, k: int, b: float) -> None:
        # Each image has its own probabilities; the sum over all outcomes, each with its probability.
        logits, q = random_logits(k, k), random_shares(k, k)
        for truth in range(k):
            weights, asked = q[truth], torch.arange(k)

            # The weights sum to 1, so the weighted mean is the expectation.
            risk = per_class_question_risk(
                logits[truth].expand(k, k), asked, asked == truth, weights, q[truth], yes_share=b
            )

            expected = torch.zeros(k, dtype=torch.float64)
            expected[truth] = F.cross_entropy(logits[truth], torch.tensor(truth))
            torch.testing.assert_close(risk, expected)

    @pytest.mark.parametrize("b", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize(("k", "known"), [(3, 1), (5, 1), (5, 3), (10, 2)])
    def test_a_further_question_by_any_belief_has_cross_entropy_as_its_expectation(
        self, k: int, known: int, b: float
    ) -> None:
        # By every set of classes that earlier answers ruled out, and every class that is left.
        logits, beliefs = random_logits(1, k)[0], 8 * random_logits(k, k)  # nearly sure ones, too
        for gone in itertools.combinations(range(k), known):
            left = torch.tensor([c for c in range(k) if c not in gone])
            for truth in left.tolist():
                q = 0.95 * beliefs[truth, left].softmax(0) + 0.05 / len(left)  # a floor under each

                risk = per_class_question_risk(
                    logits.expand(len(left), k),
                    left,
                    left == truth,
                    q,
                    q,
                    yes_share=b,
                    excluded=torch.tensor([[*gone, -1]]).expand(len(left), known + 1),
                )

                expected = torch.zeros(k, dtype=torch.float64)
                expected[truth] = F.cross_entropy(logits, torch.tensor(truth))
                torch.testing.assert_close(risk, expected)

    def test_a_uniform_round_and_one_by_belief_together_have_cross_entropy_as_their_expectation(self) -> None:
        # Over all first questions and, where the answer is no, all second ones, drawn by what was said.
        k, b = 4, 0.3
        logits, second = random_logits(1, k), random_shares(k, k)
        for truth in range(k):
            total, questions = torch.zeros((), dtype=torch.float64), 0.0
            for one in range(k):
                asked = torch.tensor([one])
                first = per_class_question_risk(
                    logits, asked, asked == truth, ones(1), ones(1) / k, yes_share=b
                )
                total, questions = total + first.sum() / k, questions + 1 / k
                if one == truth:
                    continue
                q = second[one].index_fill(0, asked, 0)
                q = 0.9 * q / q.sum() + 0.1 / (k - 1)
                for two in (c for c in range(k) if c != one):
                    then = torch.tensor([two])
                    further = per_class_question_risk(
                        logits, then, then == truth, ones(1), q[two, None], yes_share=b, excluded=asked[None]
                    )
                    total, questions = total + further.sum() * q[two] / k, questions + float(q[two]) / k

            # The number of questions is the same for each class, so that their mean is unbiased as well.
            assert questions == pytest.approx(1 + (k - 1) / k)
            assert float(total) / questions == pytest.approx(
                float(F.cross_entropy(logits[0], torch.tensor(truth)))
            )

    def test_nothing_excluded_is_a_first_question(self) -> None:
        logits, labels, q = random_logits(5, 4), torch.arange(5) % 4, random_shares(1, 5).squeeze(0)
        is_yes = torch.tensor([True, False, False, True, False])

        plain = per_class_question_risk(logits, labels, is_yes, ones(5), q, yes_share=0.4)
        told = per_class_question_risk(
            logits, labels, is_yes, ones(5), q, yes_share=0.4, excluded=torch.full((5, 2), -1)
        )

        torch.testing.assert_close(told, plain, rtol=0, atol=0)

    def test_over_all_joint_draws_of_a_batch_it_is_the_weighted_mean_of_cross_entropy(self) -> None:
        n, k, b = 3, 3, 0.25
        logits, q, true = random_logits(n, k), random_shares(n, k), torch.tensor([0, 2, 2])
        weights = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
        expectation = torch.zeros((), dtype=torch.float64)
        for draw in itertools.product(range(k), repeat=n):
            asked = torch.tensor(draw)
            chosen = q[torch.arange(n), asked]
            risk = per_class_question_risk(logits, asked, asked == true, weights, chosen, yes_share=b)
            expectation = expectation + chosen.prod() * risk.sum()

        losses = F.cross_entropy(logits, true, reduction="none")
        torch.testing.assert_close(expectation, (weights * losses).sum() / weights.sum())

    def test_agrees_with_loops(self) -> None:
        logits, q = random_logits(6, 4), random_shares(1, 6).squeeze(0)
        asked, is_yes = torch.tensor([0, 1, 2, 3, 3, 1]), torch.tensor([True, False] * 3)
        weights = torch.arange(1, 7).double()
        loss = -logits.log_softmax(1)
        total = sum(
            float(weights[i]) * answer_risk(loss[i], int(asked[i]), bool(is_yes[i]), float(q[i]), 0.4)
            for i in range(6)
        )

        risk = per_class_question_risk(logits, asked, is_yes, weights, q, yes_share=0.4)

        assert float(risk.sum()) == pytest.approx(total / 21)

    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_uniform_questions_answered_no_give_the_papers_risk(self, k: int) -> None:
        logits, labels, weights = random_logits(9, k), torch.arange(9) % k, torch.arange(1, 10).double()

        risk = per_class_question_risk(
            logits, labels, torch.zeros(9, dtype=torch.bool), weights, ones(9) / k, yes_share=0.0
        )

        plain = per_class_complementary_risk(logits, labels, weights)
        torch.testing.assert_close(risk, plain * k / (k - 1))

    @pytest.mark.parametrize("k", [3, 10])
    def test_the_best_mix_varies_least_and_gives_a_yes_at_least_its_natural_share(self, k: int) -> None:
        for row, q in zip(random_logits(8, k), random_shares(8, k), strict=True):
            loss = -row.log_softmax(0)
            for truth in range(k):

                def variance(b: float, loss: Tensor = loss, q: Tensor = q, y: int = truth) -> float:
                    outcomes = [answer_risk(loss, c, c == y, float(q[c]), b) for c in range(k)]
                    squares = [float(q[c]) * x * x for c, x in enumerate(outcomes)]
                    return sum(squares) - float(loss[y]) ** 2

                a_yes, a_no = (variance(b) + float(loss[truth] ** 2) for b in (1.0, 0.0))
                best = a_no / (a_yes + a_no)

                assert best >= float(q[truth]) - 1e-12
                assert variance(best) <= min(variance(b / 20) for b in range(21)) + 1e-9
                assert variance(best) < min(variance(0.0), variance(1.0))

    def test_equal_wrong_losses_and_uniform_questions_are_mixed_best_at_one_in_k(self) -> None:
        k, loss = 5, torch.tensor([0.3, 2.0, 2.0, 2.0, 2.0], dtype=torch.float64)
        squares = [sum(answer_risk(loss, c, c == 0, 1 / k, b) ** 2 / k for c in range(k)) for b in (1.0, 0.0)]

        assert squares[1] / sum(squares) == pytest.approx(1 / k)
