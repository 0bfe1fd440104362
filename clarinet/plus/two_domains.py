"""The classes of both domains' images from kept features: clusters, then a head and neighbours in turn.

The features of a trained backbone show what is alike from the first second on. What they do not show is which
class a cluster is of, and the complementary labels of all its source images tell that together. Images of the
target have no labels; they take part in the clusters, and learn from them and from the source what they are.
No label of the target is looked at, nor is its distribution of classes assumed: a class may be rare there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.plus.clusters import clusters_of
from clarinet.plus.exchange import exchanged
from clarinet.plus.neighbours import nearest
from clarinet.plus.ridge import ridge
from clarinet.plus.votes import Votes, agreed, named_share, with_own

CLUSTERS = 2  # for each class
STARTS = 6  # of the clusters, whose classes are averaged
BEGINNINGS = 4  # such averages, of which the one goes on that the labels contradict least
TRIED = 4  # rounds of each beginning, and of each way to find a class
CONCENTRATION = 15.0  # of a cluster's images about its centre
NEIGHBOURS = 10  # whose classes are averaged
NEIGHBOUR_SHARE = 0.5  # of what they say, beside the head, in logarithms
SCALES = (1, 2, 3, 4, 6, 8)  # of the head's scores; sharper ones run away with their own mistakes
FLOOR = 0.3  # of an equal share, below which no class's predicted share should lie
FLOOR_SHIFTS = 30
MISSING = 2  # classes that are looked for inside the others, at most
MISSING_SHARE = 0.5  # of an equal share of either domain, below which a class is looked for
LEAST_GAIN = 2.0  # nats by which a split must fit better than none
LIKENESS = 0.3  # nats that one image is worth when it lies at its class's centre, and not at right angles
LEAST_HALVED = 4  # images
SEARCHED = 12  # classes inside which one is looked for, the largest first
LEAST_CLASS = 1e-3  # probability that neighbours leave to any class


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What is known after a round.

    Args:
        source, target: (N, K) and (M, K) probabilities of the classes, by head, neighbours and own labels.
        weight, bias: (K, P) and (K,) of the head, which gives logits.
        contradiction: how much the source's labels contradict what the head, fitted without the image, says
            of it: the mean negative logarithm of their likelihood, in nats.
        label_noise: estimated share of complementary labels that name the true class.
    """

    source: Tensor
    target: Tensor
    weight: Tensor
    bias: Tensor
    contradiction: float
    label_noise: float

    @property
    def classes(self) -> Tensor:
        """(N + M, K) probabilities, the source's first."""
        return torch.cat([self.source, self.target])


def rounds(
    source: Tensor, target: Tensor, votes: Votes, draws: torch.Generator, count: int
) -> Iterator[Round]:
    """Find the classes of all images, round by round.

    A round fits a linear head (weighted ridge regression) to the classes of both domains' images, of which
    surely known ones count more. Its leave-one-out scores become probabilities on the scale that fits the
    labels best. Then each image takes the mean of what the head and its nearest images of its own domain say.
    The source adds its labels.

    Clusters of few labels may begin with each other's class. So several beginnings are tried, and classes
    change places where the labels say so: see `exchanged`. Half of the way, classes that few images are taken
    for are looked for inside the others: see `_apart`.

    Args:
        source, target: (N, P) and (M, P) places of unit length in a common space.
        votes: the labels of the source's images; at least one.
        draws: CPU generator of the clusters' starts.
        count: of rounds, >= 1.
    """
    images = _Images(source, target, votes)
    begun = [images.after(_first_classes(images, draws), TRIED) for _ in range(BEGINNINGS)]
    classes = min(begun, key=lambda one: one.contradiction).classes
    for number in range(1, count + 1):
        found = images.next(classes)
        if number == count // 2:
            found = _apart(images, found, draws)
        yield found
        classes = found.classes


class _Images:
    """The images of both domains, in a common space."""

    def __init__(self, source: Tensor, target: Tensor, votes: Votes) -> None:
        self.sizes = [len(source), len(target)]
        self.every = torch.cat([source, target])
        self.votes = votes
        self.labels = float(votes.complementary.sum() + votes.true.sum())
        self._near = [_nearest(places) for places in (source, target)]

    def after(self, classes: Tensor, count: int) -> Round:
        """What is known so many rounds later, at least one."""
        found = self.next(classes)
        for _ in range(count - 1):
            found = self.next(found.classes)
        return found

    def next(self, classes: Tensor) -> Round:
        """A round that begins with (N + M, K) classes, exchanged where the labels then fit better."""
        found, by_head = self._round(classes)
        order = exchanged(by_head, self.votes)
        if order is None:
            return found
        other, _ = self._round(classes[:, order])
        return min(found, other, key=lambda one: one.contradiction)

    def misfit(self, found: Round) -> float:
        """How badly classes fit labels and features, in nats: the less, the better.

        Labels are of the source alone. Where a class is found there, but lies with another one in the target,
        they can even prefer it so by chance. A class that is two lies far about its centre, however.
        """
        classes = found.classes
        centres = F.normalize(classes.T @ self.every, dim=1)  # (K, P)
        likeness = float((classes * (self.every @ centres.T)).sum())
        return found.contradiction * self.labels - LIKENESS * likeness

    def _round(self, classes: Tensor) -> tuple[Round, Tensor]:
        """A round, and the source's classes (N, K) by the head alone."""
        scores, head = ridge(self.every, classes)
        own = scores[: self.sizes[0]]
        noise = named_share(own, self.votes)
        scale = min(SCALES, key=lambda at: contradiction((at * own).softmax(1), self.votes, noise))
        told = torch.split((scale * scores).log_softmax(1), self.sizes)
        others = [
            _floored((1 - NEIGHBOUR_SHARE) * by_head + NEIGHBOUR_SHARE * _mean(before, near).log())
            for by_head, before, near in zip(told, torch.split(classes, self.sizes), self._near, strict=True)
        ]
        found = Round(
            source=with_own(others[0], self.votes, noise),
            target=others[1],
            weight=scale * head[:-1].T,
            bias=scale * head[-1],
            contradiction=contradiction(told[0].exp(), self.votes, noise),
            label_noise=noise,
        )
        return found, told[0].exp()


def _apart(images: _Images, found: Round, draws: torch.Generator) -> Round:
    """Look for a class that hardly any image of a domain is taken for inside each of the others.

    Two classes that look alike may share their clusters. Their labels then rule neither out, and all their
    images are taken for one of them. So the images of each other class are split in two, and each half is
    taken for the missing class. Some rounds later the right split fits best, and clearly better than no
    split: small differences come from chance.
    """
    num_classes = found.source.shape[1]
    rarest = torch.minimum(found.source.mean(0), found.target.mean(0))  # (K,) of either domain
    shares = found.classes.mean(0)  # (K,)
    for missing in rarest.argsort()[:MISSING].tolist():
        if rarest[missing] > MISSING_SHARE / num_classes:
            break
        largest = [other for other in shares.argsort(descending=True).tolist() if other != missing][:SEARCHED]
        begun = (
            _moved(found.classes, half, other, missing)
            for other in largest
            for half in _halves(images, found.classes, other, draws)
        )
        plain = images.after(found.classes, TRIED)
        # One after the other: of many images a round takes much memory.
        split = (images.after(one, TRIED) for one in begun)
        best = min(split, key=images.misfit, default=plain)
        gain = images.misfit(plain) - images.misfit(best)
        found = best if gain > LEAST_GAIN else plain
    return found


def _halves(images: _Images, classes: Tensor, of: int, draws: torch.Generator) -> list[Tensor]:
    """(N + M,) bool, two halves of the images that are taken for a class; none where there are too few."""
    taken = classes.argmax(1) == of
    if int(taken.sum()) < LEAST_HALVED:
        return []
    halves = clusters_of(images.every[taken], 2, draws)  # (R, 2)
    found_halves = []
    for number in range(2):
        half = torch.zeros_like(taken)
        half[taken] = halves[:, number] > 0
        found_halves.append(half)
    return found_halves


def _moved(classes: Tensor, half: Tensor, other: int, missing: int) -> Tensor:
    """The same classes, but some images' probability of one class is that of another one."""
    moved = classes.clone()
    moved[half, missing] += classes[half, other]
    moved[half, other] = 0
    return moved


def contradiction(probabilities: Tensor, votes: Votes, noise: float) -> float:
    """The mean negative log-likelihood of labels, in nats, under (N, K) probabilities of the classes."""
    others = (1 - noise) * (1 - probabilities) / (probabilities.shape[1] - 1) + noise * probabilities
    right = probabilities.clamp(min=1e-9)
    total = votes.complementary * others.log() + votes.true * right.log()
    return -float(total.sum() / (votes.complementary.sum() + votes.true.sum()))


def _first_classes(images: _Images, draws: torch.Generator) -> Tensor:
    """Classes (N + M, K) of clusters of both domains' images by their source images' labels, and of these."""
    every, votes, of_source = images.every, images.votes, images.sizes[0]
    num_classes = votes.true.shape[1]
    count = min(CLUSTERS * num_classes, len(every))
    total = every.new_zeros(len(every), num_classes)
    for _ in range(STARTS):
        clusters = clusters_of(every, count, draws)  # (N + M, C) one-hot
        centres = F.normalize(clusters.T @ every, dim=1)
        shares = (CONCENTRATION * every @ centres.T).softmax(1)  # (N + M, C)
        by_cluster = shares[:of_source].T
        counted = votes.each(partial(torch.matmul, by_cluster))
        total += shares @ agreed(counted)
    source, target = torch.split(total / STARTS, images.sizes)
    return torch.cat([with_own(source, votes, named_share(source, votes)), target])


def _nearest(places: Tensor) -> Tensor:
    """(N, k) nearest images of the same domain, k >= 1."""
    every = torch.arange(len(places), device=places.device)
    count = min(NEIGHBOURS, len(places) - 1)
    if count == 0:
        return every[:, None]  # a single image has itself
    return torch.cat(list(nearest(places, every, count)))


def _mean(classes: Tensor, near: Tensor) -> Tensor:
    """(N, K) mean classes of the nearest images, none of them quite ruled out."""
    return classes[near].mean(1).clamp(min=LEAST_CLASS)


def _floored(log: Tensor) -> Tensor:
    """Probabilities (N, K) of logarithms, shifted so that each class has its floor of them all."""
    num_classes = log.shape[1]
    shift = log.new_zeros(num_classes)
    for _ in range(FLOOR_SHIFTS):
        shares = (log + shift).softmax(1).mean(0)
        lacking = (FLOOR / num_classes / shares.clamp(min=1e-9)).clamp(min=1.0)
        shift += lacking.log()
    return (log + shift).softmax(1)
