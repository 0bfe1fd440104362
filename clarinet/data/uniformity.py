"""Whether complementary labels can come from uniform questions: what a histogram tells and what not."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.training_data import check_labels
from clarinet.files.names import NO_LABEL
from clarinet.recipes.counting import many, there_are
from clarinet.recipes.errors import DataError

FALSE_ALARMS = 1e-3  # share of uniform label sets that are called non-uniform, at most
_LABELS_PER_CLASS = 5  # fewer true labels, and the chi-square distribution is not theirs
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class Uniformity:
    """What the histogram of complementary labels says about uniformity.

    Args:
        p_value: how often uniform labels look at least as uneven, at most; near 0 rejects uniformity.
        implied_shares: (K,) shares of the classes if the labels were uniform, 1 - (K - 1) named_k. Below 0
            says that class k is named more often than any uniform labels would.
        most_named: the class with the smallest implied share.
    """

    p_value: float
    implied_shares: list[float]
    most_named: int

    @property
    def is_rejected(self) -> bool:
        """Whether the labels should not be taken for uniform."""
        return self.p_value < FALSE_ALARMS


def check_uniformity(
    complementary: Tensor, true: Tensor, num_classes: int, *, weights: Tensor | None = None
) -> Uniformity | None:
    """Test whether complementary labels are uniform over the wrong classes.

    A histogram that is not flat proves nothing: uniform labels name class k with probability
    (1 - pi_k) / (K - 1), and the shares pi_k of the classes are unknown. Two things can be held against it:

    * no class may be named more often than 1/(K - 1), which is its frequency if no image shows it. The
      Chernoff bound of each class's excess, times K, is a valid p-value for every pi and every N.
    * true labels of a random part of the same images (yes answers to uniform questions, or the paper's pc
      setting) follow pi itself. From five true labels per class on, a likelihood-ratio test with K - 1
      degrees of freedom tells whether one pi explains both histograms.

    What it cannot see:

    * preferences that some shares of the classes would explain. Without true labels that is every class named
      less than 1/(K - 1), hence nearly all mild preferences when K is small.
    * labels that depend on the image inside a class, or mix classes up while the totals stay.
    * few wrong answers.

    At K = 2 a label without true ones tells nothing. So no rejection is no certificate. With true labels a
    rejection may also mean that they are no random part of the images: say, a class whose yeses get confirmed
    less often.

    Args:
        complementary: (N,) int64, -1 where there is none.
        true: (N,) int64, -1 where there is none.
        num_classes: K.
        weights: (N,) >= 0, how much each label counts; None counts them alike. Each kind is taken for as many
            labels as its weights sum to when the heaviest is 1: few heavy ones prove little.

    Returns:
        The result, or None without complementary labels that count.

    Raises:
        DataError: labels of another type or shape, out of range, or not as many of each.
    """
    for name, labels in (("complementary", complementary), ("true", true)):
        check_labels(name, labels, count=len(labels), lowest=NO_LABEL, num_classes=num_classes)
    trust = torch.ones(len(complementary)) if weights is None else weights.cpu()
    if not len(complementary) == len(true) == len(trust):
        raise DataError(
            f"{there_are(len(complementary), 'complementary label')}, {many(len(true), 'true label')} and "
            f"{many(len(trust), 'weight')}; expected as many of each, -1 where there is no label"
        )
    named = _counts(complementary.cpu(), trust.double(), num_classes)  # (K,)
    known = _counts(true.cpu(), trust.double(), num_classes)  # (K,)
    total = float(named.sum())
    if total == 0:
        return None
    p_value = _too_often(named)
    if float(known.sum()) >= _LABELS_PER_CLASS * num_classes:
        p_value = 2 * min(p_value, _one_explains_both(named, known))
    implied = 1 - (num_classes - 1) * named / total
    return Uniformity(min(1.0, p_value), implied.tolist(), int(implied.argmin()))


def _counts(labels: Tensor, weights: Tensor, num_classes: int) -> Tensor:
    """(K,) weighted counts, in which no label counts more than once.

    Another count would be the square of the sum of the weights by the sum of their squares. So many labels of
    equal weight would tell as much, on average over the classes. It is too large where a class has the heavy
    labels, as rare questions have by 1/q.
    """
    weights = weights * (labels != NO_LABEL)
    counts = torch.zeros(num_classes, dtype=torch.float64).index_add_(0, labels.clamp(min=0), weights)
    largest = float(weights.max()) if len(weights) else 0.0
    return counts / largest if largest > 0 else counts


def _too_often(named: Tensor) -> float:
    """K times the smallest Chernoff bound exp(-N KL(named_k, 1/(K - 1))) among classes above that share."""
    num_classes, total = len(named), float(named.sum())
    limit = 1 / (num_classes - 1)
    share = float(named.max()) / total
    if share <= limit:
        return 1.0
    divergence = share * math.log(share / limit)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - limit))
    return min(1.0, num_classes * math.exp(-total * divergence))


def _one_explains_both(named: Tensor, known: Tensor) -> float:
    """p-value of the likelihood ratio between one pi for both histograms and free shares for each."""
    shares = _likeliest_shares(named, known)  # (K,)
    expected_named = named.sum() * (1 - shares) / (len(named) - 1)
    expected_known = known.sum() * shares
    ratio = 2 * (_excess(named, expected_named) + _excess(known, expected_known))
    half_degrees = torch.tensor((len(named) - 1) / 2, dtype=torch.float64)
    half = torch.tensor(max(ratio, 0.0) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(half_degrees, half))  # upper tail of chi-square


def _excess(seen: Tensor, expected: Tensor) -> float:
    return float((torch.xlogy(seen, seen) - torch.xlogy(seen, expected)).sum())


def _likeliest_shares(named: Tensor, known: Tensor) -> Tensor:
    """(K,) the pi that maximises sum_k known_k log pi_k + named_k log(1 - pi_k) on the simplex.

    At the maximum known_k / pi_k - named_k / (1 - pi_k) is the same number for all k. The pi_k fall as it
    rises. It is found by halving an interval that must hold it.
    """
    low, high = -float(named.sum()) / (len(named) - 1), float(known.sum())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(_shares_at(middle, named, known).sum()) > 1:
            low = middle
        else:
            high = middle
    shares = _shares_at((low + high) / 2, named, known)
    return shares / shares.sum()


def _shares_at(slope: float, named: Tensor, known: Tensor) -> Tensor:
    """(K,) the roots in [0, 1] of slope pi^2 - (known + named + slope) pi + known = 0."""
    linear = known + named + slope
    root = (linear.square() - 4 * slope * known).clamp(min=0).sqrt()
    tiny = torch.finfo(torch.float64).tiny
    # Of the two forms of one root, the one that adds numbers of equal sign.
    stable = 2 * known / (linear + root).clamp(min=tiny)
    other = (linear - root) / (2 * slope) if slope != 0 else stable
    return torch.where(linear >= 0, stable, other)
