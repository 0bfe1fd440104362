"""What few answers say together about whole clusters of images.

Where a source has some hundred labels, the nearest images of an image hold too few of them to agree. A class
has a tenth of all labels, though, and they tell it: of 84 complementary labels about the images of one class,
with K = 10 and 2 % of them wrong, two name it and nine each other one.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.neighbours import LARGEST_BANK, MOST_VOTERS, voters_of
from clarinet.seeding import on_device
from clarinet.votes import FIRST_NOISE, NeighbourLabels, Votes, agreed, named_share, penalty, with_own

CLUSTERS = 2  # for each class: people write some digits in more than one way
STARTS = 5  # of the clusters; the one that left-out labels contradict least is taken
MOVES = 50  # of the clusters' centres
CONCENTRATION = 20.0  # kappa of the classes' features about their centre; 10 and 40 give the same classes
MATCHES = 3  # of centres and classes
BALANCINGS = 100
SWEEPS = 10  # of centres and classes in turn
FOLDS = 5
MOST_NAMED = 0.55  # of 1/K, by the labels left out: what 5 % of wrong ones and chance make, with K = 10
LEAST_SIGMAS = 3.5  # standard deviations below 1/K, which features that show nothing come to by chance


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Classes (N, K) by the features, without the own labels of each image and with them, and the noise."""

    others: Tensor
    probabilities: Tensor
    noise: float


def cluster_labels(features: Tensor, votes: Votes, draws: torch.Generator) -> NeighbourLabels:
    """Find a centre for each class, and the class of every image by its centre and its own labels.

    k-means finds more clusters than classes; all labels of a cluster give it a class, and the centres of
    the classes and the noise of the labels are refined by expectation-maximisation (a mixture of von
    Mises-Fisher distributions of one concentration). A class without a cluster, and another with two,
    contradicts few labels: so the groups are given to the classes anew, one to each, by all labels.

    Which clusters are best, and whether the features show the classes, is asked of labels that had no part
    in the fit: a complementary label names the class of its image's centre with the share of wrong labels
    where they do, and with 1/K where they do not. Nothing is said from about half of 1/K on, or from less on
    where labels are so few that chance comes to it; nor of more than LARGEST_BANK images, nor where as many
    nearest labels are added up as `neighbour_labels` ever does.

    Args:
        features: (N, D) floats.
        votes: the labels of the N images, with weights about 1.
        draws: CPU generator of the clusters' starts and the folds.

    Returns:
        As `neighbour_labels`: without a noise where the features do not show the classes.
    """
    num_classes = votes.true.shape[1]
    labelled = (votes.complementary + votes.true).sum(1) > 0  # (N,)
    few = voters_of(int(labelled.sum()), num_classes) < MOST_VOTERS
    believed = _believed_share(votes)
    if not few or believed <= 0 or len(features) > LARGEST_BANK or not bool(features.isfinite().all()):
        return NeighbourLabels.alone(votes)
    unit = F.normalize(features.float() - features.float().mean(0), dim=1)  # (N, D)
    folds = on_device(torch.randperm(len(unit), generator=draws) % FOLDS, unit.device)  # (N,)
    starts = [_clusters(unit, CLUSTERS * num_classes, draws) for _ in range(STARTS)]
    shares = [_share_of_left_out(unit, clusters, votes, folds) for clusters in starts]
    least = min(shares)
    if least >= believed:
        return NeighbourLabels.alone(votes)
    found = _fit(unit, starts[shares.index(least)], votes)
    return NeighbourLabels(found.probabilities, found.noise)


def _believed_share(votes: Votes) -> float:
    """The share of left-out labels that name the class found, below which the features show the classes."""
    weight = votes.complementary.sum(1)  # (N,)
    count = float(weight.sum() ** 2 / weight.square().sum().clamp(min=1e-9))  # of labels of equal weight
    chance = 1 / votes.complementary.shape[1]
    spread = math.sqrt(chance * (1 - chance) / max(count, 1e-9))
    return min(MOST_NAMED * chance, chance - LEAST_SIGMAS * spread)


def _share_of_left_out(unit: Tensor, clusters: Tensor, votes: Votes, folds: Tensor) -> float:
    """The share of complementary labels that name the class found for their image without their fold (N,)."""
    others = torch.empty_like(votes.true)  # (N, K)
    for fold in range(FOLDS):
        out = folds == fold
        kept = (~out).to(unit.dtype)[:, None]
        fit = _fit(unit, clusters, Votes(votes.complementary * kept, votes.true * kept))
        others[out] = fit.others[out]
    return named_share(others, votes)


def _fit(unit: Tensor, clusters: Tensor, votes: Votes) -> _Fit:
    """The classes' centres from clusters (N, M), one-hot, by the labels."""
    counted = Votes(clusters.T @ votes.complementary, clusters.T @ votes.true)  # (M, K) both
    found = _refined(unit, clusters @ agreed(counted), votes)
    for _ in range(MATCHES):
        found = _refined(unit, found.others @ _matched(found.others, votes), votes)
    return found


def _refined(unit: Tensor, classes: Tensor, votes: Votes) -> _Fit:
    """Centres by classes (N, K), and classes by centres and labels, in turn."""
    for _ in range(SWEEPS):
        centres = F.normalize(classes.T @ unit, dim=1)  # (K, D)
        others = (CONCENTRATION * (unit @ centres.T)).softmax(1)  # (N, K)
        noise = named_share(others, votes)
        classes = with_own(others, votes, noise)
    return _Fit(others, classes, noise)


def _matched(others: Tensor, votes: Votes) -> Tensor:
    """(K, K) probability of each class for each of K groups (N, K): every class has one (Sinkhorn)."""
    against = others.T @ (votes.complementary - votes.true)  # (K, K)
    log = -penalty(FIRST_NOISE, others.shape[1]) * against
    for _ in range(BALANCINGS):
        log = log - log.logsumexp(1, keepdim=True)
        log = log - log.logsumexp(0, keepdim=True)
    return log.softmax(1)


def _clusters(unit: Tensor, count: int, draws: torch.Generator) -> Tensor:
    """(N, count) one-hot clusters by spherical k-means."""
    centres = _spread_out(unit, count, draws)
    for _ in range(MOVES):
        # A product, because index_add_ adds in any order on a GPU.
        centres = F.normalize(_nearest(unit, centres).T @ unit, dim=1)
    return _nearest(unit, centres)


def _nearest(unit: Tensor, centres: Tensor) -> Tensor:
    """(N, M) one-hot: the nearest of M centres."""
    return F.one_hot((unit @ centres.T).argmax(1), len(centres)).to(unit.dtype)


def _spread_out(unit: Tensor, count: int, draws: torch.Generator) -> Tensor:
    """(count, D) images as first centres, each drawn by its distance from those before (k-means++)."""
    chosen = int(torch.randint(len(unit), (1,), generator=draws))
    centres = unit[chosen : chosen + 1]
    for _ in range(count - 1):
        distance = (1 - (unit @ centres.T).amax(1)).clamp(min=1e-9).cpu()  # (N,)
        chosen = int(torch.multinomial(distance, 1, generator=draws))
        centres = torch.cat([centres, unit[chosen : chosen + 1]])
    return centres
