"""What the answers about similar images say together about an image.

One "no" rules out one class of K and may be wrong. Images that look alike are mostly of one class, though,
and all their answers together tell it: of 400 neighbours' complementary labels, with K = 10 and 5 % of them
wrong, 20 name their class and 42 each other one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.joining import joined
from clarinet.precision import in_bfloat16

FIRST_NOISE = 0.02  # assumed share of labels that name the true class, before anything is known
LEAST_NOISE = 1e-3  # no label is beyond doubt
MOST_NOISE = 0.8  # as a share of 1/K, where a complementary label says nothing
LEAST_CLASS = 1e-6  # probability that neighbours leave to any class
TRUE_LABEL_TRUST = (
    20.0  # nats by which a true label speaks for its class: more than neighbours can say against
)
MOST_VOTERS = 400  # neighbours whose labels are added up
SMOOTHED_OVER = 30  # neighbours whose classes are averaged
ROUNDS = 20  # of classes and noise in turn, for the votes
SWEEPS = 5  # of averaging
LARGEST_BANK = 65_536  # images among which neighbours are sought
SIMILARITIES = 2**26  # held at once
SURE = 0.9  # probability above which an image's class counts as agreed
LEAST_SURE = 0.5  # share of images with such a class, below which the features do not show the classes


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourLabels:
    """Classes of all source images as their own and their neighbours' labels tell them.

    Args:
        probabilities: (N, K) float32, rows sum to 1.
        label_noise: the estimated share of complementary labels that name the true class; None where most
            images' neighbours agree on no class, so that neither this nor the probabilities are to be used.
    """

    probabilities: Tensor
    label_noise: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """The labels of N images, counted: (N, K) weight of the complementary and of the true ones by class."""

    complementary: Tensor
    true: Tensor


def neighbour_labels(features: Tensor, votes: Votes, draws: torch.Generator) -> NeighbourLabels:
    """Find the class of every image on which the labels of similar images agree.

    First the labels of an image's nearest labelled images are added up; how far such a label can be trusted
    (a neighbour may be of another class, and its label wrong) is estimated by expectation-maximisation. Then
    each image takes, in turn, the mean class of its nearest images and its own labels; the share of labels
    that name the class which the neighbours give is the noise of the labels. No true label is needed.

    Of more than LARGEST_BANK images so many with labels are the bank, in which neighbours are sought. Its own
    come first: where they agree, every image takes the mean class of its nearest ones among them; where
    they do not, the rest is not searched.

    Args:
        features: (N, D) floats, in which neighbours are sought by their cosine.
        votes: the labels of the N images.
        draws: CPU generator, which chooses where to seek when there are more than LARGEST_BANK images.
    """
    bank = _bank(votes, draws)  # (M,) images
    if len(features) <= LARGEST_BANK:
        return _agreement(features, votes, bank)
    known = _agreement(
        features[bank],
        Votes(votes.complementary[bank], votes.true[bank]),
        torch.arange(len(bank), device=bank.device),
    )
    if known.label_noise is None:
        return NeighbourLabels(_alone(votes), None)
    values = torch.zeros_like(votes.true)  # (N, K)
    values[bank] = known.probabilities
    count = min(SMOOTHED_OVER, len(bank) - 1)
    means = (_summed(values, found) / count for found in nearest(features, bank, count))
    return NeighbourLabels(
        _with_own(joined(means, len(features)), votes, known.label_noise), known.label_noise
    )


def _agreement(features: Tensor, votes: Votes, bank: Tensor) -> NeighbourLabels:
    """`neighbour_labels` by a search for each image in (M,) images of the bank."""
    num_classes = votes.true.shape[1]
    if len(bank) < 2:  # noqa: PLR2004 - an image is no neighbour of itself
        return NeighbourLabels(_alone(votes), None)
    voters = min(max(1, len(bank) // (2 * num_classes)), MOST_VOTERS)
    smoothed_over = max(1, min(SMOOTHED_OVER, len(bank) // (5 * num_classes)))
    complementary, true = torch.empty_like(votes.complementary), torch.empty_like(votes.true)  # (N, K)
    near = bank.new_empty(len(features), smoothed_over)  # (N, k) images; all voters would take gigabytes
    at = 0
    for found in nearest(features, bank, max(voters, smoothed_over)):
        rows = slice(at, at + len(found))
        complementary[rows] = _summed(votes.complementary, found[:, :voters])
        true[rows] = _summed(votes.true, found[:, :voters])
        near[rows] = found[:, :smoothed_over]
        at = rows.stop
    others = _agreed(Votes(complementary, true))
    noise = FIRST_NOISE
    for _ in range(SWEEPS):
        others = _summed(_with_own(others, votes, noise), near) / smoothed_over  # (N, K)
        noise = _noise(others, votes)
    probabilities = _with_own(others, votes, noise)
    sure = float((probabilities.amax(1) > SURE).float().mean())
    # Neighbours of many classes seem to have many wrong labels.
    return NeighbourLabels(probabilities, noise if sure >= LEAST_SURE else None)


def _alone(votes: Votes) -> Tensor:
    """(N, K) what the labels of each image say by themselves."""
    return _with_own(torch.ones_like(votes.true) / votes.true.shape[1], votes, FIRST_NOISE)


def _bank(votes: Votes, draws: torch.Generator) -> Tensor:
    """(M,) images that have a label, or LARGEST_BANK of them."""
    images = ((votes.complementary + votes.true).sum(1) > 0).nonzero().squeeze(1)
    if len(images) <= LARGEST_BANK:
        return images
    chosen = torch.randperm(len(images), generator=draws)[:LARGEST_BANK].sort().values
    return images[chosen.to(images.device)]


def nearest(features: Tensor, bank: Tensor, count: int) -> Iterator[Tensor]:
    """The nearest images by the cosine of centred features.

    Args:
        features: (N, D) floats.
        bank: (M,) images to choose from.
        count: how many, below M.

    Yields:
        (R, count) images of the bank for one chunk of the N images after the other, the nearest first; never
        an image itself.
    """
    centred = F.normalize(features - features.mean(0), dim=1)
    if in_bfloat16("bfloat16", features.device):
        centred = centred.bfloat16()
    sought = centred[bank].T  # (D, M)
    every = torch.arange(len(centred), device=bank.device)
    for rows in torch.split(every, max(1, SIMILARITIES // len(bank))):
        alike = (centred[rows] @ sought).float()  # (R, M)
        alike = alike.masked_fill(bank == rows[:, None], -torch.inf)
        yield bank[alike.topk(count, dim=1).indices]


def _summed(values: Tensor, near: Tensor) -> Tensor:
    """The sum over neighbours: (N, K) of images and (N, k) their neighbours to (N, K)."""
    num_classes = values.shape[1]
    chunk = max(1, SIMILARITIES // (near.shape[1] * num_classes))
    return torch.cat([values[part].sum(1) for part in torch.split(near, chunk)])


def _agreed(votes: Votes) -> Tensor:
    """(N, K) classes that fit the sums of votes best, and a common noise with them."""
    num_classes = votes.true.shape[1]
    total = votes.complementary.sum().clamp(min=1e-9)
    noise = FIRST_NOISE
    for _ in range(ROUNDS):
        # A true label is as strong against each other class as a complementary one against its own.
        classes = (_penalty(noise, num_classes) * (votes.true - votes.complementary)).softmax(1)
        noise = _bounded(float((classes * votes.complementary).sum() / total), num_classes)
    return classes


def _with_own(others: Tensor, votes: Votes, noise: float) -> Tensor:
    """(N, K) posterior of the classes that others give an image and the labels of its own."""
    own = TRUE_LABEL_TRUST * votes.true - _penalty(noise, others.shape[1]) * votes.complementary
    return (others.clamp(min=LEAST_CLASS).log() + own).softmax(1)


def _penalty(noise: float, num_classes: int) -> float:
    """By how much, in nats, a complementary label speaks against its class.

    It names the true class with probability rho = noise and each other one with (1 - rho) / (K - 1).
    """
    return math.log((1 - noise) / (noise * (num_classes - 1)))


def _noise(others: Tensor, votes: Votes) -> float:
    """The share of complementary labels that name the class which the others give their image."""
    named = F.one_hot(others.argmax(1), others.shape[1]) * votes.complementary  # (N, K)
    return _bounded(float(named.sum() / votes.complementary.sum().clamp(min=1e-9)), others.shape[1])


def _bounded(noise: float, num_classes: int) -> float:
    return min(max(noise, LEAST_NOISE), MOST_NOISE / num_classes)
