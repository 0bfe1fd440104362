"""Classes of both domains from kept features: clusters and labels, a head and neighbours in turn."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.networks.heads import CommonSpaceHead
from clarinet.networks.layers import DomainInForce
from clarinet.plus import two_domains
from clarinet.plus.exchange import exchanged
from clarinet.plus.ridge import LEAST_WEIGHT, RIDGE, ridge
from clarinet.plus.two_domains import contradiction, rounds
from clarinet.plus.votes import Votes

K, FEATURES = 5, 24


def domain(count: int, seed: int, *, look: float, spread: float = 0.35) -> tuple[Tensor, Tensor]:
    """Features (N, D) about a centre of each class, moved by the domain's look; and the classes."""
    centres = torch.rand(K, FEATURES, generator=generator(1, "centres")) * 3
    draws = generator(seed, "domain")
    classes = torch.arange(count) % K
    noise = spread * torch.randn(count, FEATURES, generator=draws)
    shift = look * torch.rand(FEATURES, generator=generator(seed, "look"))
    return (centres[classes] + noise + shift).clamp(min=0), classes


def votes_of(classes: Tensor, seed: int, *, wrong: float = 0.0) -> Votes:
    """One complementary label for each image; a share of them names the true class."""
    draws = generator(seed, "votes")
    named = (classes + torch.randint(1, K, classes.shape, generator=draws)) % K
    is_wrong = torch.rand(classes.shape, generator=draws) < wrong
    labels = F.one_hot(torch.where(is_wrong, classes, named), K).float()
    return Votes(labels, torch.zeros_like(labels))


def places(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    return CommonSpaceHead(FEATURES, K, DomainInForce()).fit_space(source, target)


def accuracy(probabilities: Tensor, classes: Tensor) -> float:
    return float((probabilities.argmax(1) == classes).float().mean())


@pytest.mark.parametrize("wrong", [0.0, 0.05])
def test_the_classes_of_both_domains_are_found_from_noes_of_one(wrong: float) -> None:
    source, classes = domain(400, 1, look=0.0)
    target, others = domain(300, 2, look=4.0)

    *_, last = rounds(*places(source, target), votes_of(classes, 3, wrong=wrong), generator(0, "starts"), 6)

    assert accuracy(last.source, classes) > 0.98
    assert accuracy(last.target, others) > 0.98
    assert wrong / 4 <= last.label_noise <= 2 * wrong + 0.01


def test_true_labels_help_where_noes_are_few() -> None:
    source, classes = domain(400, 1, look=0.0)
    target, others = domain(300, 2, look=4.0)
    noes = votes_of(classes, 3).complementary
    noes[20:] = 0
    true = torch.zeros_like(noes)
    true[::13] = F.one_hot(classes[::13], K).float()

    *_, last = rounds(*places(source, target), Votes(noes, true), generator(0, "starts"), 6)

    assert accuracy(last.target, others) > 0.9


def test_the_head_gives_what_a_round_says_of_the_target() -> None:
    source, classes = domain(200, 1, look=0.0)
    target, others = domain(200, 2, look=4.0)
    both = places(source, target)

    *_, last = rounds(*both, votes_of(classes, 3), generator(0, "starts"), 4)

    assert accuracy(both[1] @ last.weight.T + last.bias, others) > 0.98


def test_equal_draws_give_equal_rounds() -> None:
    source, classes = domain(120, 1, look=0.0)
    target, _ = domain(120, 2, look=1.0)
    both, votes = places(source, target), votes_of(classes, 3)

    first, second = (list(rounds(*both, votes, generator(7, "starts"), 4)) for _ in range(2))

    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.target, other.target)
        assert torch.equal(one.weight, other.weight)


def test_a_class_that_hides_in_another_is_found_by_the_labels() -> None:
    """All images of class 4 are taken for class 3 at first; no label but the source's noes can tell."""
    source, classes = domain(400, 1, look=0.0)
    target, others = domain(300, 2, look=2.0)
    images = two_domains._Images(*places(source, target), votes_of(classes, 3))
    hidden = F.one_hot(torch.cat([classes, others]).clamp(max=3), K).float() * 0.9 + 0.1 / K
    merged = images.after(hidden, 2)
    assert accuracy(merged.target, others) < 0.85

    found = two_domains._apart(images, merged, generator(0, "halves"))

    assert accuracy(found.target, others) > 0.98
    assert found.contradiction < merged.contradiction


def test_a_class_that_hides_in_the_target_alone_is_found_by_how_far_its_images_lie_apart() -> None:
    """Class 4 looks quite different there, and is taken for class 3; no label is about the target."""
    source, classes = domain(400, 1, look=0.0)
    target, others = domain(300, 2, look=0.0)
    target = torch.where((others == 4)[:, None], target.roll(5, 1), target)
    images = two_domains._Images(*places(source, target), votes_of(classes, 3))
    hidden = F.one_hot(torch.cat([classes, others.clamp(max=3)]), K).float() * 0.9 + 0.1 / K
    merged = images.after(hidden, 4)
    assert accuracy(merged.target, others) < 0.85

    found = two_domains._apart(images, merged, generator(0, "halves"))

    assert accuracy(found.target, others) > 0.98
    told = (merged.contradiction - found.contradiction) * images.labels
    assert abs(told) < two_domains.LEAST_GAIN  # the labels alone do not tell


def test_a_misfit_is_what_labels_contradict_less_what_images_lie_at_their_centres() -> None:
    places = F.normalize(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), dim=1)
    noes = Votes(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2, 2))
    images = two_domains._Images(places[:2], places[2:], noes)

    def misfit(*classes: int) -> float:
        chosen = F.one_hot(torch.tensor(classes), 2).float()
        return images.misfit(two_domains.Round(chosen[:2], chosen[2:], places, places[0], 0.5, 0.0))

    assert misfit(0, 1, 0) == pytest.approx(0.5 * 2 - two_domains.LIKENESS * 3)
    # The centre of the last two images lies half way between them.
    assert misfit(0, 1, 1) == pytest.approx(0.5 * 2 - two_domains.LIKENESS * (1 + 2 * math.sqrt(0.5)))


def test_a_leave_one_out_score_is_that_of_a_head_fitted_without_the_image() -> None:
    draws = generator(0, "ridge")
    rows, classes = (
        F.normalize(torch.randn(12, 4, generator=draws), dim=1),
        torch.rand(12, 3, generator=draws),
    )
    classes = classes / classes.sum(1, keepdim=True)

    scores, _ = ridge(rows, classes)

    entropy = -(classes * classes.log()).sum(1) / math.log(3)
    weights = (1 - entropy).clamp(min=LEAST_WEIGHT).double()
    weights = weights / weights.mean()
    wide = F.pad(rows.double(), (0, 1), value=1.0)
    penalty = torch.diag(torch.tensor([RIDGE] * 4 + [1e-6], dtype=torch.float64))
    for left_out in range(12):
        kept = torch.arange(12) != left_out
        own = wide[kept] * weights[kept, None]
        head = torch.linalg.solve(wide[kept].T @ own + penalty, own.T @ classes[kept].double())
        assert torch.allclose(scores[left_out].double(), wide[left_out] @ head, atol=1e-5)


class TestExchange:
    """Three groups of ten images; a complementary label never names an image's class."""

    TRUTH = torch.arange(30) % 3

    def labels(self, wrong: int = 0) -> Votes:
        named = (self.TRUTH + 1 + torch.arange(30) // 3 % 2) % 3
        named[:wrong] = self.TRUTH[:wrong]
        return Votes(F.one_hot(named, 3).float(), torch.zeros(30, 3))

    def groups(self, *order: int) -> Tensor:
        """Group `order[k]` has the images of class k."""
        return F.one_hot(torch.tensor(order)[self.TRUTH], 3).float()

    @pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (2, 0, 1)])
    def test_groups_get_the_classes_that_their_labels_do_not_name(self, order: tuple[int, ...]) -> None:
        found = exchanged(self.groups(*order), self.labels(wrong=3))

        assert found is not None
        assert found.tolist() == list(order)  # a class has the group of its images
        assert torch.equal(self.groups(*order)[:, found], self.groups(0, 1, 2))

    def test_groups_stay_where_they_are_right_or_nothing_tells_them_apart(self) -> None:
        nothing = torch.zeros(30, 3)

        assert exchanged(self.groups(0, 1, 2), self.labels(wrong=3)) is None
        assert exchanged(self.groups(1, 0, 2), Votes(nothing, nothing)) is None

    def test_nothing_is_exchanged_where_nothing_can_be_compared(self) -> None:
        assert exchanged(torch.full((30, 3), torch.nan), self.labels()) is None

    def test_true_labels_speak_for_their_class(self) -> None:
        true = Votes(torch.zeros(30, 3), F.one_hot(self.TRUTH, 3).float())

        found = exchanged(self.groups(0, 2, 1), true)

        assert found is not None
        assert found.tolist() == [0, 2, 1]


def test_labels_contradict_a_class_by_the_logarithm_of_their_chance() -> None:
    probabilities = torch.tensor([[0.7, 0.2, 0.1]])
    noes, nothing = torch.tensor([[1.0, 0.0, 0.0]]), torch.zeros(1, 3)

    assert contradiction(probabilities, Votes(noes, nothing), 0.0) == pytest.approx(-math.log(0.3 / 2))
    assert contradiction(probabilities, Votes(noes, nothing), 0.1) == pytest.approx(
        -math.log(0.9 * 0.3 / 2 + 0.1 * 0.7)
    )
    assert contradiction(probabilities, Votes(nothing, noes), 0.1) == pytest.approx(-math.log(0.7))


def test_no_class_falls_below_its_floor() -> None:
    log = torch.randn(200, K, generator=generator(0, "log")) - torch.tensor([0.0, 0.0, 0.0, 0.0, 9.0])

    floored = two_domains._floored(log)

    assert torch.allclose(floored.sum(1), torch.ones(200))
    assert float(floored.mean(0).min()) >= 0.95 * two_domains.FLOOR / K


@pytest.mark.parametrize(("count", "classes"), [(1, 2), (8, 2), (40, 7), (300, 50)])
def test_few_images_and_many_classes_break_nothing(count: int, classes: int) -> None:
    draws = generator(0, "few")
    source, target = (F.normalize(torch.randn(count, 16, generator=draws), dim=1) for _ in range(2))
    labels = F.one_hot(torch.randint(classes, (count,), generator=draws), classes).float()

    for found in rounds(source, target, Votes(labels, torch.zeros_like(labels)), draws, 3):
        assert torch.allclose(found.target.sum(1), torch.ones(count), atol=1e-5)
        assert math.isfinite(found.contradiction)
