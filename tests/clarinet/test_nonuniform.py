"""Losses for labels that are not uniform, by exact expectations over every outcome in double precision."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.data.transitions import uniform_transition
from clarinet.losses.complementary import bounded_complementary_loss, per_class_complementary_risk
from clarinet.losses.nonuniform import (
    corrected_scarce_objective,
    forward_complementary_loss,
    per_class_question_risk,
    scarce_risks,
)
from clarinet.plus.votes import Votes, named_share, with_own


def random_logits(n: int, k: int) -> Tensor:
    draws = generator(5, f"nonuniform/{n}/{k}")
    return 2 * torch.randn(n, k, generator=draws, dtype=torch.float64)


def random_shares(n: int, k: int) -> Tensor:
    """(n, k) probabilities, none near 0."""
    draws = generator(6, f"shares/{n}/{k}")
    return (0.5 * torch.randn(n, k, generator=draws, dtype=torch.float64)).softmax(1)


def ones(n: int) -> Tensor:
    return torch.ones(n, dtype=torch.float64)


class TestForward:
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_with_a_uniform_matrix_it_is_the_bounded_likelihood(self, k: int, noise: float) -> None:
        logits, labels = random_logits(7, k), torch.arange(7) % k
        weights = torch.arange(1, 8).double()

        loss = forward_complementary_loss(logits, labels, weights, uniform_transition(k, label_noise=noise))

        bounded = bounded_complementary_loss(logits, labels, weights, label_noise=noise)
        torch.testing.assert_close(loss, bounded + math.log(k - 1))

    def test_agrees_with_loops(self) -> None:
        logits, labels, matrix = random_logits(5, 3), torch.tensor([0, 1, 2, 2, 0]), random_shares(3, 3)
        weights = torch.arange(1, 6).double()
        total = 0.0
        for row, label, weight in zip(logits.tolist(), labels.tolist(), weights.tolist(), strict=True):
            p = [math.exp(z) / sum(map(math.exp, row)) for z in row]
            total -= weight * math.log(sum(p[y] * float(matrix[y, label]) for y in range(3)))

        loss = forward_complementary_loss(logits, labels, weights, matrix)

        assert float(loss) == pytest.approx(total / 15)

    @pytest.mark.parametrize("k", [3, 4])
    def test_its_expectation_is_least_at_the_true_posterior(self, k: int) -> None:
        # Over all labels of one image: the gradient vanishes at the posterior, and nowhere near is it lower.
        matrix, posterior = random_shares(k, k), random_shares(1, k)
        chances = (posterior @ matrix).squeeze(0)  # (K,) of each label

        def expected(logits: Tensor) -> Tensor:
            return forward_complementary_loss(logits.expand(k, k), torch.arange(k), chances, matrix)

        best = posterior.log()
        (gradient,) = torch.autograd.grad(expected(best.requires_grad_()), best)
        best = best.detach()

        torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)
        for direction in random_logits(20, k):
            assert float(expected(best + 0.3 * direction)) > float(expected(best))


class TestBoundedLikelihood:
    """What `bounded_complementary_loss` makes of questions that are not uniform."""

    def gradient_at(self, posterior: Tensor, chances: Tensor) -> float:
        """Largest entry of the gradient at the posterior, over labels with these chances."""
        k = len(posterior)
        best = posterior.log().requires_grad_()
        loss = bounded_complementary_loss(best.expand(k, k), torch.arange(k), chances, label_noise=0)
        return float(torch.autograd.grad(loss, best)[0].abs().max())

    def test_no_answers_weighted_by_one_over_q_put_its_minimum_at_the_posterior(self) -> None:
        posterior, q = random_shares(2, 4)
        no = q * (1 - posterior)  # probability of each label

        assert self.gradient_at(posterior, no / q) < 1e-12
        assert self.gradient_at(posterior, no) > 1e-2

    def test_with_the_yes_answers_it_needs_no_weights(self) -> None:
        posterior, q = random_shares(2, 4)
        best = posterior.log().requires_grad_()
        log_p = best.log_softmax(0)
        no, yes = q * (1 - posterior), q * posterior

        loss = -(yes * log_p).sum() - (no * torch.log1p(-log_p.exp())).sum()

        assert float(torch.autograd.grad(loss, best)[0].abs().max()) < 1e-12

    @pytest.mark.parametrize("one_class", [False, True])
    def test_heavier_yes_answers_need_uniform_questions_or_images_of_one_class(self, one_class: bool) -> None:
        # As where alpha gives true labels K - 1 times the weight of an answer.
        posterior, q = random_shares(2, 4)
        if one_class:
            posterior = torch.tensor([1 - 3e-9, 1e-9, 1e-9, 1e-9], dtype=torch.float64)

        def slope(asked: Tensor) -> float:
            best = posterior.log().requires_grad_()
            log_p = best.log_softmax(0)
            no, yes = asked * (1 - posterior), 3 * asked * posterior
            loss = -(yes * log_p).sum() - (no * torch.log1p(-log_p.exp())).sum()
            return float(torch.autograd.grad(loss, best)[0].abs().max())

        assert slope(torch.full_like(q, 1 / 4)) < 1e-8
        assert (slope(q) < 1e-8) == one_class


class TestLikelihood:
    """What answers say of an image's class, by all questions that a design may ask and all answers."""

    K, NOISE = 4, 0.04  # of complementary labels

    def test_the_posterior_of_an_image_does_not_depend_on_how_its_questions_were_drawn(self) -> None:
        prior, first = random_shares(2, self.K)
        second = random_shares(self.K, self.K)  # by the class that was asked about first
        wrong = self.NOISE * (self.K - 1) / (1 - self.NOISE)  # of "no" to the image's own class
        denied = torch.where(torch.eye(self.K, dtype=torch.bool), wrong, 1.0).double()  # (class, asked)
        for one, two in itertools.permutations(range(self.K), 2):
            # P(class, asked about one, no, then about two by what was said, no)
            joint = prior * first[one] * denied[:, one] * second[one, two] * denied[:, two]

            noes = F.one_hot(torch.tensor([one, two]), self.K).sum(0, keepdim=True).double()
            found = with_own(prior[None], Votes(noes, torch.zeros_like(noes)), self.NOISE)[0]

            torch.testing.assert_close(found, joint / joint.sum())

    def test_the_share_of_wrong_labels_does_and_counts_by_one_over_q_give_that_of_uniform_questions(
        self,
    ) -> None:
        # A row for each image and class asked about: the expected number of "no", 3 % of them to the truth.
        q, truth = random_shares(self.K, self.K), F.one_hot(torch.arange(self.K)).double()
        q = (1 - 0.2) * torch.where(truth > 0, 0.9, q / 10) + 0.2 / self.K  # the truth is asked about most
        said_no = torch.where(truth > 0, 0.03, 1.0)

        by_belief = Votes(q * said_no, torch.zeros_like(q))
        counted = Votes(q * said_no, torch.zeros_like(q), said_no)
        uniform = Votes(said_no / self.K, torch.zeros_like(q))

        assert named_share(truth, counted) == pytest.approx(named_share(truth, uniform))
        assert named_share(truth, by_belief) > 5 * named_share(truth, uniform)


class TestScarce:
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_over_all_questions_it_is_the_one_versus_rest_risk(self, k: int) -> None:
        # Images of every class, asked about each class with a probability that prefers some classes.
        logits, asked = random_logits(2 * k, k), random_shares(1, k).squeeze(0)
        true, chances = torch.arange(2 * k) % k, random_shares(1, 2 * k).squeeze(0)
        shares = torch.zeros(k, dtype=torch.float64).index_add_(0, true, chances)
        outcomes = [(i, c) for i in range(2 * k) for c in range(k)]
        image, question = (torch.tensor(column) for column in zip(*outcomes, strict=True))
        labels = question.masked_fill(true[image] == question, -1)  # a yes only counts among all images

        of_class, of_others = scarce_risks(logits[image], labels, chances[image] * asked[question], shares)

        is_class = F.one_hot(true, k).double()
        phi_yes, phi_no = F.softplus(-logits), F.softplus(logits)
        torch.testing.assert_close(of_class, (chances[:, None] * is_class * phi_yes).sum(0))
        torch.testing.assert_close(of_others, (chances[:, None] * (1 - is_class) * phi_no).sum(0))

    def test_the_data_sets_shares_of_labels_stand_in_for_the_batchs(self) -> None:
        logits, labels = random_logits(6, 3), torch.tensor([0, 1, 1, 2, -1, 0])
        shares, weights = random_shares(1, 3).squeeze(0), torch.arange(1, 7).double()
        own = torch.tensor([(1 + 6) / 21, (2 + 3) / 21, 4 / 21], dtype=torch.float64)

        plain = scarce_risks(logits, labels, weights, shares)
        given = scarce_risks(logits, labels, weights, shares, own)

        for one, other in zip(plain, given, strict=True):
            torch.testing.assert_close(one, other)

    def test_by_hand(self) -> None:
        # One image with score 0 for both classes, "not 0", equal classes: phi is log 2 everywhere.
        of_class, of_others = scarce_risks(
            torch.zeros(1, 2, dtype=torch.float64), torch.tensor([0]), ones(1), torch.tensor([0.5, 0.5])
        )

        log2 = math.log(2)
        assert of_class.tolist() == pytest.approx([log2 / 2, log2])  # the label 1 is absent
        assert of_others.tolist() == pytest.approx([log2 / 2, 0])

    def test_a_negative_part_is_driven_back_to_zero(self) -> None:
        of_class = torch.tensor([-0.5, 1.0], requires_grad=True)

        objective = corrected_scarce_objective(of_class, torch.tensor([0.25, 0.25]))
        torch.autograd.backward(objective)

        assert objective.item() == 2.0
        assert of_class.grad is not None
        assert of_class.grad.tolist() == [-1.0, 1.0]


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


Losses = dict[str, Callable[[Tensor], Tensor]]


def all_losses(labels: Tensor, weights: Tensor, k: int) -> Losses:
    matrix = uniform_transition(k)
    matrix[0, 1], matrix[0, 2] = matrix[0, 1] / 2, matrix[0, 2] + matrix[0, 1] / 2
    shares = random_shares(1, k).squeeze(0).to(weights.dtype)
    q = torch.full_like(weights, 1e-3)

    def question(z: Tensor) -> Tensor:
        return per_class_question_risk(z, labels, labels == 0, weights, q, yes_share=0.5).sum()

    return {
        "forward": lambda z: forward_complementary_loss(z, labels, weights, matrix),
        "scarce": lambda z: corrected_scarce_objective(*scarce_risks(z, labels, weights, shares)),
        "questions": question,
    }


@pytest.mark.parametrize("name", ["forward", "scarce", "questions"])
class TestEach:
    def test_gradient(self, name: str) -> None:
        logits = random_logits(5, 3).requires_grad_()
        loss = all_losses(torch.tensor([0, 1, 2, 2, 1]), torch.arange(1, 6).double(), 3)[name]

        assert torch.autograd.gradcheck(loss, logits)

    @pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
    @pytest.mark.parametrize("label", [0, 1, 2])
    def test_saturated_logits_give_finite_values_and_gradients(
        self, name: str, label: int, size: float
    ) -> None:
        logits = torch.tensor([[size, 0.0, -size]], requires_grad=True)

        value = all_losses(torch.tensor([label]), torch.ones(1), 3)[name](logits)
        torch.autograd.backward(value)

        assert bool(torch.isfinite(value))
        assert logits.grad is not None
        assert bool(torch.isfinite(logits.grad).all())

    def test_a_weight_of_two_is_the_row_twice_and_scale_is_nothing(self, name: str) -> None:
        logits, labels = random_logits(3, 3), torch.tensor([0, 1, 2])
        weights, twice = torch.tensor([4.0, 2.0, 2.0], dtype=torch.float64), torch.tensor([0, 0, 1, 2])

        weighted = all_losses(labels, weights, 3)[name](logits)
        repeated = all_losses(labels[twice], ones(4), 3)[name](logits[twice])

        torch.testing.assert_close(weighted, repeated)
