"""What the answers about similar images say together about an image.

One "no" rules out one class of K and may be wrong. Images that look alike are mostly of one class, though,
and all their answers together tell it. Take 400 neighbours' complementary labels, with K = 10 and 5 % of them
wrong: 20 name their class and 42 each other one.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.joining import joined
from clarinet.networks.precision import in_bfloat16
from clarinet.plus.votes import FIRST_NOISE, NeighbourLabels, Votes, agreed, named_share, with_own

MOST_VOTERS = 400  # neighbours whose labels are added up
SMOOTHED_OVER = 30  # neighbours whose classes are averaged
SWEEPS = 5  # of averaging
LARGEST_BANK = 65_536  # images among which neighbours are sought
SIMILARITIES = 2**26  # held at once
SURE = 0.9  # probability above which an image's class counts as agreed
LEAST_SURE = 0.5  # share of images with such a class, below which the features do not show the classes
LEAST_FOUND = 0.1  # of an equal share, below which a class is taken for one that the source may not have


def neighbour_labels(features: Tensor, votes: Votes, draws: torch.Generator) -> NeighbourLabels:
    """Find the class of every image on which the labels of similar images agree.

    First the labels of an image's nearest labelled images are added up. A neighbour may be of another class,
    and its label wrong; expectation-maximisation estimates how far such a label can be trusted. Then each
    image takes, in turn, the mean class of its nearest images and its own labels. The noise of the labels is
    the share of them that names the class which the neighbours give. No true label is needed.

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
        votes.each(lambda counts: counts[bank]),
        torch.arange(len(bank), device=bank.device),
    )
    if known.label_noise is None:
        return NeighbourLabels.alone(votes)
    values = torch.zeros_like(votes.true)  # (N, K)
    values[bank] = known.probabilities
    count = min(SMOOTHED_OVER, len(bank) - 1)
    means = (_summed(values, found) / count for found in nearest(features, bank, count))
    return NeighbourLabels(
        with_own(joined(means, len(features)), votes, known.label_noise), known.label_noise
    )


def _agreement(features: Tensor, votes: Votes, bank: Tensor) -> NeighbourLabels:
    """`neighbour_labels` by a search for each image in (M,) images of the bank."""
    num_classes = votes.true.shape[1]
    if len(bank) < 2:  # noqa: PLR2004 - an image is no neighbour of itself
        return NeighbourLabels.alone(votes)
    voters = voters_of(len(bank), num_classes)
    smoothed_over = max(1, min(SMOOTHED_OVER, len(bank) // (5 * num_classes)))
    summed = votes.each(torch.empty_like)
    near = bank.new_empty(len(features), smoothed_over)  # (N, k) images; all voters would take gigabytes
    at = 0
    for found in nearest(features, bank, max(voters, smoothed_over)):
        rows = slice(at, at + len(found))
        summed.complementary[rows] = _summed(votes.complementary, found[:, :voters])
        summed.true[rows] = _summed(votes.true, found[:, :voters])
        if summed.uniform is not None:
            summed.uniform[rows] = _summed(votes.as_uniform, found[:, :voters])
        near[rows] = found[:, :smoothed_over]
        at = rows.stop
    others = agreed(summed)
    noise = FIRST_NOISE
    for _ in range(SWEEPS):
        others = _summed(with_own(others, votes, noise), near) / smoothed_over  # (N, K)
        noise = named_share(others, votes)
    probabilities = with_own(others, votes, noise)
    sure = float((probabilities.amax(1) > SURE).float().mean())
    # Neighbours of many classes seem to have many wrong labels.
    return NeighbourLabels(probabilities, noise if sure >= LEAST_SURE else None)


def every_class_is_sure(found: NeighbourLabels) -> bool:
    """Whether the neighbours agree on the images of each class, not only on most images.

    A few labels may leave open which of two classes some images are of, and these stay between them. Of such
    classes nothing is learned, and a network that never predicts one of them contradicts no label.
    """
    sure, classes = found.probabilities.max(1)  # (N,), (N,)
    num_classes = found.probabilities.shape[1]
    images = torch.bincount(classes, minlength=num_classes)  # (K,)
    agreed_on = torch.bincount(classes[sure > SURE], minlength=num_classes)  # (K,)
    there = images >= LEAST_FOUND * len(classes) / num_classes
    return bool((agreed_on[there] >= LEAST_SURE * images[there]).all())


def voters_of(labelled: int, num_classes: int) -> int:
    """How many nearest images' labels are added up, by the number of images with a label."""
    return min(max(1, labelled // (2 * num_classes)), MOST_VOTERS)


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
