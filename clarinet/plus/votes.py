"""What labels, counted by class, say about images: their own ones, and those of similar images."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.domains import Domains

FIRST_NOISE = 0.02  # assumed share of labels that name the true class, before anything is known
LEAST_NOISE = 1e-3  # no label is beyond doubt
MOST_NOISE = 0.8  # as a share of 1/K, where a complementary label says nothing
LEAST_CLASS = 1e-6  # probability that neighbours leave to any class
TRUE_LABEL_TRUST = (
    20.0  # nats by which a true label speaks for its class: more than neighbours can say against
)
ROUNDS = 20  # of classes and noise in turn, for the votes


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """The labels of N images, counted: (N, K) weight of the complementary and of the true ones by class.

    What an answer says of an image does not depend on how likely its question was: "no" to k has the same
    probability under each class, whatever q_k was, as long as q follows from the image and earlier answers.
    So the counts take no probabilities. The *share* of complementary labels that name the true class does
    depend on them: questions by belief name it more often than uniform ones. `uniform` counts each label by
    1/q, as often as uniform questions would have given it if every "no" were kept; None where they were
    uniform. Labels as campaigns derive them keep no "no" of an image with a yes: then it counts too few.
    """

    complementary: Tensor
    true: Tensor
    uniform: Tensor | None = None

    @property
    def as_uniform(self) -> Tensor:
        """(N, K) weight of the complementary labels as uniform questions would have given them."""
        return self.complementary if self.uniform is None else self.uniform

    def each(self, change: Callable[[Tensor], Tensor]) -> "Votes":
        """The same change of all counts."""
        uniform = None if self.uniform is None else change(self.uniform)
        return Votes(change(self.complementary), change(self.true), uniform)


def label_votes(domains: Domains) -> Votes:
    """The labels of the source's images that train, on the device of the labels."""
    weights, q = domains.weights, domains.probabilities
    complementary = domains.complementary_rows, domains.complementary
    return Votes(
        _counted(domains, *complementary, weights),
        _counted(domains, domains.true_rows, domains.true, weights),
        None if q is None or bool(q.min() == q.max()) else _counted(domains, *complementary, weights / q),
    )


def _counted(domains: Domains, rows: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
    """(N, K) weight of the labels of some rows, by image and class."""
    rows = rows.to(classes.device)
    votes = torch.zeros(len(domains.source), domains.spec.num_classes, device=classes.device)
    return votes.index_put_((domains.example[rows], classes[rows]), weights[rows], accumulate=True)


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourLabels:
    """Classes of all source images as their own and their neighbours' labels tell them.

    Args:
        probabilities: (N, K) float32, rows sum to 1.
        label_noise: the estimated share of complementary labels that name the true class. None where neither
            nearest images nor clusters tell most images' class; then nothing of this is to be used.
    """

    probabilities: Tensor
    label_noise: float | None

    @classmethod
    def alone(cls, votes: Votes) -> "NeighbourLabels":
        """What the labels of each image say by themselves: not to be used."""
        return cls(with_own(torch.ones_like(votes.true) / votes.true.shape[1], votes, FIRST_NOISE), None)


def agreed(votes: Votes) -> Tensor:
    """(N, K) classes that fit the sums of votes best, and a common noise with them."""
    num_classes = votes.true.shape[1]
    noise = FIRST_NOISE
    for _ in range(ROUNDS):
        # A true label is as strong against each other class as a complementary one against its own.
        classes = (penalty(noise, num_classes) * (votes.true - votes.complementary)).softmax(1)
        noise = _share_of(classes * votes.as_uniform, votes)
    return classes


def with_own(others: Tensor, votes: Votes, noise: float) -> Tensor:
    """Join the classes that others give an image with the labels of its own.

    Args:
        others: (N, K) >= 0, up to a factor of each row.
        votes: the labels of the N images.
        noise: rho, the share of complementary labels that name the true class.

    Returns:
        (N, K) posterior, rows sum to 1.
    """
    own = TRUE_LABEL_TRUST * votes.true - penalty(noise, others.shape[1]) * votes.complementary
    return (others.clamp(min=LEAST_CLASS).log() + own).softmax(1)


def penalty(noise: float, num_classes: int) -> float:
    """By how much, in nats, a complementary label speaks against its class.

    It names the true class with probability rho = noise and each other one with (1 - rho) / (K - 1). From
    rho = 1/K on it would speak for it, so rho is taken for less.
    """
    noise = _bounded(noise, num_classes)
    return math.log((1 - noise) / (noise * (num_classes - 1)))


def named_share(others: Tensor, votes: Votes) -> float:
    """The share of complementary labels that name the likeliest class which others, (N, K), give their image.

    Of labels as uniform questions would have given them. At least LEAST_NOISE and at most MOST_NOISE / K.
    """
    named = F.one_hot(others.argmax(1), others.shape[1]) * votes.as_uniform  # (N, K)
    return _share_of(named, votes)


def _share_of(labels: Tensor, votes: Votes) -> float:
    """The share of all complementary labels that some (N, K) of them are, within bounds."""
    total = votes.as_uniform.sum()
    return _bounded(float(labels.sum() / total) if total > 0 else 0.0, labels.shape[1])


def _bounded(noise: float, num_classes: int) -> float:
    return min(max(noise, LEAST_NOISE), MOST_NOISE / num_classes)
