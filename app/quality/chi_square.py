"""Pearson's chi-square test, without scipy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_EPSILON = 1e-15
_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic, its degrees of freedom, and how often chance alone gives as large a one."""

    statistic: float
    degrees: int
    p_value: float


def upper_gamma(a: float, x: float) -> float:
    """Q(a, x), the regularised upper incomplete gamma function, for a > 0 and x >= 0; to about 1e-12.

    Series for small x, continued fraction (modified Lentz) for large x.
    """
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, _STEPS):
            term *= x / (a + n)
            total += term
            if term < total * _EPSILON:
                break
        return max(0.0, 1 - scale * total)
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    fraction = d
    for n in range(1, _STEPS):
        factor = n * (a - n)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        change = c * d
        fraction *= change
        if abs(change - 1) < _EPSILON:
            break
    return scale * fraction


def goodness_of_fit(observed: Sequence[int], expected: Sequence[float]) -> ChiSquare:
    """Whether counts follow expected ones; cells that expect nothing are left out.

    Raises:
        ValueError: the two differ in length.
    """
    cells = [(o, e) for o, e in zip(observed, expected, strict=True) if e > 0]
    statistic = sum((o - e) ** 2 / e for o, e in cells)
    degrees = max(len(cells) - 1, 0)
    return ChiSquare(statistic, degrees, upper_gamma(degrees / 2, statistic / 2) if degrees else 1.0)


def uniform(observed: Sequence[int]) -> ChiSquare:
    """Whether counts are uniform over their cells."""
    mean = sum(observed) / len(observed) if observed else 0.0
    return goodness_of_fit(observed, [mean] * len(observed))


def same_rate(hits: Sequence[int], totals: Sequence[int]) -> ChiSquare:
    """Whether each group has the same rate of hits: chi-square of a table of groups by hit and miss."""
    share = sum(hits) / sum(totals) if sum(totals) else 0.0
    misses = [total - hit for hit, total in zip(hits, totals, strict=True)]
    cells = goodness_of_fit(
        [*hits, *misses],
        [total * share for total in totals] + [total * (1 - share) for total in totals],
    )
    degrees = max(sum(total > 0 for total in totals) - 1, 0) if 0 < share < 1 else 0
    p_value = upper_gamma(degrees / 2, cells.statistic / 2) if degrees else 1.0
    return ChiSquare(cells.statistic, degrees, p_value)
