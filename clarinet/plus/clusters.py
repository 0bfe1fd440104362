"""What few answers say together about whole clusters of images.

Where a source has some hundred labels, the nearest images of an image hold too few of them to agree, or to
rule out all classes but one. A class has a tenth of all labels, though, and they tell it. Take 84
complementary labels about the images of one class, with K = 10 and 2 % of them wrong: two name it and nine
each other one.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import on_device
from clarinet.plus.neighbours import MOST_VOTERS, voters_of
from clarinet.plus.votes import FIRST_NOISE, NeighbourLabels, Votes, agreed, named_share, penalty, with_own

CLUSTERS = 2  # for each class: people write some digits in more than one way
STARTS = 5  # of the clusters; the one that left-out labels contradict least is taken
MOVES = 50  # of the clusters' centres
MOST_DISTANCES = 2**21  # of images from clusters; so many take a core some minutes
CONCENTRATION = 20.0  # kappa of the classes' features about their centre; 10 and 40 give the same classes
LEAST_SHARE = 1e-3  # of a class
MATCHES = 3  # of centres and classes
LEAST_NEAR = (
    0.05  # of a group, to which the nearest images give a class: three nats, with K = 10 two labels' worth
)
BALANCINGS = 100
SWEEPS = 10  # of centres and classes in turn
FOLDS = 5
MOST_NAMED = 0.55  # of what chance makes, by the labels left out: what 5 % of wrong ones make, with K = 10
# Standard deviations below what chance makes, to which features that show nothing come too seldom. Of single
# labels: those of images that look alike agree, so that the shares found spread 1.35 times as far.
LEAST_SIGMAS = 3.5


def cluster_labels(
    features: Tensor, votes: Votes, draws: torch.Generator, *, near: Tensor | None = None
) -> NeighbourLabels:
    """Find a centre for each class, and the class of every image by its centre and its own labels.

    k-means finds more clusters than classes, and all labels of a cluster give it a class. Then
    expectation-maximisation refines the centres and shares of the classes, and the noise of the labels. The
    model is a mixture of von Mises-Fisher distributions of one concentration. A class without a cluster, and
    another with two, contradicts few labels: so the groups are given to the classes anew, one to each, by all
    labels.

    A fifth of the images at a time has its classes from the labels of the others. So its own labels tell
    which clusters are best, and whether the features show the classes. Where they do, a complementary label
    names the class found as often as labels are wrong; where they do not, as often as chance. Nothing is said
    from about half of chance on, or from less on where labels are so few that chance comes to it. True labels
    help to find the classes; the test asks the complementary ones alone. Nor is anything said where there are
    more than MOST_DISTANCES, or as many nearest labels as `neighbour_labels` ever adds up.

    Of a few labels hardly any may tell which of two classes is which of two groups. Where the nearest images
    tell most images' class, what they say of a whole group then counts as well, with K = 10 as much as two
    labels.

    Args:
        features: (N, D) floats.
        votes: the labels of the N images, with weights about 1.
        draws: CPU generator of the clusters' starts and the folds.
        near: (N, K) classes by `neighbour_labels`, if most of them are to be believed.

    Returns:
        As `neighbour_labels`: without a noise where the features do not show the classes.
    """
    num_classes = votes.true.shape[1]
    labelled = (votes.complementary + votes.true).sum(1) > 0  # (N,)
    few = voters_of(int(labelled.sum()), num_classes) < MOST_VOTERS
    small = len(features) * CLUSTERS * num_classes <= MOST_DISTANCES
    if not (few and small and bool(votes.complementary.any()) and bool(features.isfinite().all())):
        return NeighbourLabels.alone(votes)
    unit = F.normalize(features.float() - features.float().mean(0), dim=1)  # (N, D)
    folds = on_device(torch.randperm(len(unit), generator=draws) % FOLDS, unit.device)  # (N,)
    starts = (clusters_of(unit, CLUSTERS * num_classes, draws) for _ in range(STARTS))
    found = [_left_out(unit, clusters, votes, folds) for clusters in starts]
    shares = [named_share(others, votes) for others in found]
    noise = min(shares)
    others = found[shares.index(noise)]
    if noise >= _believed_share(others, votes):
        return NeighbourLabels.alone(votes)
    # All labels go on from there; anew from the clusters they might find other classes than were tested.
    others = _refined(unit, with_own(others, votes, noise), votes)
    if near is not None:  # an exchange is not tested anew: labels hardly tell the two classes apart
        classes = _matched(others, votes, near).argmax(1)  # (K,) of the groups
        order = classes.argsort()  # of the groups, if each has a class of its own
        is_other = not torch.equal(classes, torch.arange(num_classes, device=classes.device))
        if is_other and len(torch.unique(classes)) == num_classes:
            others = _refined(unit, others[:, order], votes)
    return NeighbourLabels(with_own(others, votes, noise), noise)


def _believed_share(others: Tensor, votes: Votes) -> float:
    """The share of left-out labels that name the class found, below which the features show the classes."""
    given = votes.complementary.sum(0) / votes.complementary.sum()  # (K,)
    weight = votes.complementary.sum(1)  # (N,)
    taken = weight @ F.one_hot(others.argmax(1), others.shape[1]).to(weight.dtype) / weight.sum()  # (K,)
    # With classes of unequal size chance names the large ones less often.
    chance = min(float(given @ taken), 1 / len(given))
    count = float(weight.sum() ** 2 / weight.square().sum())  # of labels of equal weight
    spread = math.sqrt(chance * (1 - chance) / count)
    return min(MOST_NAMED * chance, chance - LEAST_SIGMAS * spread)


def _left_out(unit: Tensor, clusters: Tensor, votes: Votes, folds: Tensor) -> Tensor:
    """(N, K) classes by the features, and by the labels of all images but those in the same fold (N,)."""
    others = torch.empty_like(votes.true)  # (N, K)
    for fold in range(FOLDS):
        out = folds == fold
        kept = (~out).to(unit.dtype)[:, None]
        fit = _fit(unit, clusters, votes.each(partial(torch.mul, kept)))
        others[out] = fit[out]
    return others


def _fit(unit: Tensor, clusters: Tensor, votes: Votes) -> Tensor:
    """(N, K) classes by centres that follow from clusters (N, M), one-hot, and the labels."""
    counted = votes.each(partial(torch.matmul, clusters.T))  # (M, K) each
    others = _refined(unit, clusters @ agreed(counted), votes)
    for _ in range(MATCHES):
        others = _refined(unit, others @ _matched(others, votes), votes)
    return others


def _refined(unit: Tensor, classes: Tensor, votes: Votes) -> Tensor:
    """Classes (N, K) by centres and shares, which follow from given ones and the labels, in turn."""
    for _ in range(SWEEPS):
        centres = F.normalize(classes.T @ unit, dim=1)  # (K, D)
        shares = classes.mean(0).clamp(min=LEAST_SHARE)  # (K,)
        others = (CONCENTRATION * (unit @ centres.T) + shares.log()).softmax(1)
        classes = with_own(others, votes, named_share(others, votes))
    return others


def _matched(others: Tensor, votes: Votes, near: Tensor | None = None) -> Tensor:
    """(K, K) probability of each class for each of K groups (N, K), as far apart as one to one (Sinkhorn)."""
    against = others.T @ (votes.complementary - votes.true)  # (K, K)
    log = -penalty(FIRST_NOISE, others.shape[1]) * against
    if near is not None:
        shares = others.T @ near / others.sum(0)[:, None].clamp(min=LEAST_SHARE)  # (K, K) of each group
        log = log + shares.clamp(min=LEAST_NEAR).log()
    for _ in range(BALANCINGS):
        log = log - log.logsumexp(1, keepdim=True)
        log = log - log.logsumexp(0, keepdim=True)
    return log.softmax(1)


def clusters_of(unit: Tensor, count: int, draws: torch.Generator) -> Tensor:
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
    chosen = [int(torch.randint(len(unit), (1,), generator=draws))]
    nearest = unit @ unit[chosen[0]]  # (N,) cosine
    for _ in range(count - 1):
        distance = (1 - nearest).clamp(min=1e-9).cpu()  # (N,)
        chosen.append(int(torch.multinomial(distance, 1, generator=draws)))
        nearest = torch.maximum(nearest, unit @ unit[chosen[-1]])
    return unit[chosen]
