"""Two models on pictures that had different chances to be drawn. Pure.

Coverages: docs/results/evaluation.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from app.evaluations.estimating import Difference, compare
from clarinet.recipes.binomial import MISSED

_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(1 - MISSED / 2)


@dataclass(frozen=True, slots=True)
class Alike:
    """Pictures that two evaluations share and that had the same chance to be in both.

    Args:
        weight: how many pictures of the target each stands for.
        only_first, only_second: of them on which one model was right and the other wrong.
        asked: how many they are.
    """

    weight: float
    only_first: int
    only_second: int
    asked: int


def weight_of(
    first: Sequence[tuple[int, int, int]], second: Sequence[tuple[int, int, int]], pair: tuple[int, int]
) -> float:
    """How many pictures of the target each shared picture stands for, by what the two models take it for.

    Both evaluations take pictures of a class in one random order, up to the class's end. What is in both lies
    before the nearer of the two ends, so it had the chance of that class's pictures: sampled / population.

    Args:
        first, second: population, sampled and end of each class, as `sampling.Stratum`; of a simple draw the
            same for all.
        pair: the classes that the first and the second model take it for.
    """
    population, sampled, _ = min(first[pair[0]], second[pair[1]], key=lambda stratum: stratum[2])
    return population / sampled


def compare_weighted(parts: Sequence[Alike]) -> Difference:
    """Two models whose predictions people judged on the same pictures, each counted by its weight.

    With d = 1 where only the first was right, -1 where only the second was, else 0, and weights w, the
    difference is D = sum w d / sum w. The interval is Wald's with a picture of the largest weight added on
    either side; its variance is sum w^2 (d - D)^2 / (sum w)^2. The p-value is that of the same statistic
    where D is 0. Of one weight both are those of `compare`.

    Raises:
        ValueError: no picture, or numbers out of range.
    """
    for part in parts:
        fewest = min(part.only_first, part.only_second)
        if fewest < 0 or part.only_first + part.only_second > part.asked or not 0 < part.weight < math.inf:
            raise ValueError(f"{part}")
    if not sum(part.asked for part in parts):
        raise ValueError("no picture")
    if len({part.weight for part in parts}) == 1:
        sums = (sum(getattr(part, name) for part in parts) for name in ("only_first", "only_second", "asked"))
        return compare(*sums)
    found = math.fsum(part.weight * (part.only_first - part.only_second) for part in parts)
    total = math.fsum(part.weight * part.asked for part in parts)
    largest = max(part.weight for part in parts)
    whole = total + 2 * largest
    middle = found / whole
    differing = 2 * largest**2 + math.fsum(
        part.weight**2 * (part.only_first + part.only_second) for part in parts
    )
    leaning = math.fsum(part.weight**2 * (part.only_first - part.only_second) for part in parts)
    squares = 2 * largest**2 + math.fsum(part.weight**2 * part.asked for part in parts)
    reach = _Z * math.sqrt(max(differing - 2 * middle * leaning + middle**2 * squares, 0.0)) / whole
    return Difference(
        estimate=found / total,
        low=max(middle - reach, -1.0),
        high=min(middle + reach, 1.0),
        p_value=2 * _NORMAL.cdf(-abs(found) / math.sqrt(differing)),
    )
