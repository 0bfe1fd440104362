"""The interval of a share that was counted, after Clopper and Pearson; without torch and scipy."""

import math
from dataclasses import dataclass
from functools import lru_cache

MISSED = 0.05  # how often an interval may miss the truth: half of it on either side
MOST_TRIALS = 1_000_000
_EPSILON = 1e-14
_CLOSE = 1e-10  # Newton's next step would be its square
_STEPS = 1000
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Interval:
    """What was estimated, and the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float


@lru_cache(maxsize=4096)  # lists tell the same intervals again and again
def clopper_pearson(hits: float, count: float) -> tuple[float, float]:
    """The ends of the 95 % interval of a share of which so many hits were seen.

    It is the exact interval: whatever the true share is, at least 95 of 100 such intervals hold it. Wilson's
    is shorter, but for shares near 0 it holds them in 84 of 100 cases only, and the share of held-out labels
    that a good classifier violates lies there. The ends are quantiles of beta distributions, which are
    defined for numbers that are not whole as well, such as effective ones.

    Args:
        hits: 0 <= hits <= count.
        count: above 0.

    Returns:
        Both in [0, 1], around hits / count.

    Raises:
        ValueError: numbers out of range.

    Source: Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the
    binomial"; coverages in Brown, Cai and DasGupta 2001, "Interval estimation for a binomial proportion".
    """
    if not 0 <= hits <= count or count == 0:
        raise ValueError(f"{hits} hits of {count}")
    low = beta_quantile(MISSED / 2, hits, count - hits + 1) if hits > 0 else 0.0
    high = beta_quantile(1 - MISSED / 2, hits + 1, count - hits) if hits < count else 1.0
    return low, high


def trials_needed(half_width: float, share: float = 0.5) -> int:
    """How many trials give an interval whose ends are at most so far from the share that is seen.

    Args:
        half_width: in (0, 0.5), as 0.02 for two points.
        share: the one that is expected; 0.5 takes the most trials.

    Raises:
        ValueError: numbers out of range, or more than MOST_TRIALS.
    """
    if not 0 < half_width < 1 / 2 or not 0 <= share <= 1:
        raise ValueError(f"within {half_width} of {share}")

    def is_enough(count: int) -> bool:
        low, high = clopper_pearson(share * count, count)
        return max(share - low, high - share) <= half_width

    if not is_enough(MOST_TRIALS):
        raise ValueError(f"within {half_width} of {share}: more than {MOST_TRIALS} trials")
    few, enough = 0, MOST_TRIALS
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


def share_interval(share: float, error: float) -> Interval:
    """A share with the interval of as many trials of equal weight as have its standard error.

    See `clopper_pearson` and `effective_count`, whose errors it raises.
    """
    count = effective_count(share, error)
    return Interval(share, *clopper_pearson(share * count, count))


def effective_count(share: float, error: float) -> float:
    """How many trials of equal weight have a share with this standard error.

    The error is that of a share of n trials to which one hit and one miss were added, since an error of 0 at
    no hits would be a lie:

        error^2 = p (1 - p) / n,    p = (share n + 1) / (n + 2).

    Args:
        share: in [0, 1].
        error: above 0.

    Raises:
        ValueError: numbers out of range.
    """
    if not 0 <= share <= 1 or not 0 < error < math.inf:
        raise ValueError(f"a share of {share} with a standard error of {error}")

    def variance(count: float) -> float:
        return (share * count + 1) * ((1 - share) * count + 1) / ((count + 2) ** 2 * count)

    few, many = 0.0, 1.0
    while variance(many) > error**2:
        few, many = many, 2 * many
    while (middle := (few + many) / 2) not in {few, many}:
        few, many = (middle, many) if variance(middle) > error**2 else (few, middle)
    return many


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Where the cumulative beta distribution reaches a probability in (0, 1), for a, b > 0; to about 1e-9.

    Newton's steps, and halves of what is left where one leads out of it.
    """
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(_STEPS):
        over = incomplete_beta(a, b, x) - probability
        low, high = (low, x) if over > 0 else (x, high)
        # At a point that is no number any more beside 0 or 1 the density says nothing.
        slope = math.exp(_log_density(a, b, x)) if 0 < x < 1 else 0.0
        following = x - over / slope if slope > 0 else low
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _CLOSE * (x + _CLOSE):
            return following
        x = following
    return x


def incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularised incomplete beta function, for a, b > 0 and x in [0, 1]; to about 1e-9.

    Its continued fraction by the modified method of Lentz, on the side on which it converges fast.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    fraction = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for factor in (even, odd):
            d = 1 / (1 + factor * d or _TINY)
            c = 1 + factor / c or _TINY
            change = c * d
            fraction *= change
        if abs(change - 1) < _EPSILON:
            break
    return math.exp(_log_density(a, b, x)) * x * (1 - x) * fraction / a


def _log_density(a: float, b: float, x: float) -> float:
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return scale + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)
