"""Losses for labels that are not uniform, by exact expectations over every outcome in double precision."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.transitions import uniform_transition
from clarinet.losses.complementary import bounded_complementary_loss
from clarinet.losses.nonuniform import (
    corrected_scarce_objective,
    forward_complementary_loss,
    per_class_question_risk,
    scarce_risks,
)
from clarinet.plus.votes import Votes, named_share, with_own
from tests.clarinet.logits import ones, random_logits, random_shares


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
