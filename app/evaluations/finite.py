"""The interval of a share where the draw is a large part of all there is. Pure.

Where every picture is judged, nothing is drawn: the share is counted, and both ends are it.
"""

from functools import lru_cache
from math import exp, lgamma

from clarinet.recipes.binomial import MISSED, clopper_pearson

# Below one in twenty the pictures that were not drawn might as well be without end: the binomial interval is
# then 2.6 % wider than it need be, at most.
SMALL_PART = 20
_NEGLIGIBLE = 1e-17


@lru_cache(maxsize=4096)  # a page asks for itself every few seconds
def ends_of_share(yes: int, asked: int, population: int) -> tuple[float, float]:
    """The ends of the 95 % interval of the share of yes among all, of which some were drawn at random.

    It is the exact interval: it holds each number of yes that the draw does not contradict, by either tail of
    the hypergeometric distribution, at 2.5 %. So it holds the truth in 95 of 100 draws or more, and lies
    within the binomial one of Clopper and Pearson.

    Args:
        yes: 0 <= yes <= asked, of those that were drawn.
        asked: how many these are; 1 <= asked <= population.
        population: of how many.

    Raises:
        ValueError: numbers out of range.

    Source: Buonaccorsi 1987, "A note on confidence intervals for proportions in finite populations".
    """
    if not 0 <= yes <= asked or not 1 <= asked <= population:
        raise ValueError(f"{yes} of {asked} of {population}")
    if asked * SMALL_PART < population:
        return clopper_pearson(yes, asked)
    fewest = _fewest(yes, asked, population)
    most = population - _fewest(asked - yes, asked, population)
    share = yes / asked  # of nearly all pictures it may lie between two numbers of them
    return min(fewest / population, share), max(most / population, share)


def _fewest(yes: int, asked: int, population: int) -> int:
    """The least number of yes among all, of which so many in the draw are not too many."""
    too_few, enough = yes - 1, population - (asked - yes)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _at_least(yes, asked, middle, population) > MISSED / 2:
            enough = middle
        else:
            too_few = middle
    return enough


def _at_least(yes: int, asked: int, hits: int, population: int) -> float:
    """How often a draw from a population with so many hits has so many or more."""
    lowest, highest = max(0, asked + hits - population), min(asked, hits)
    if yes <= lowest:
        return 1.0
    if yes > highest:
        return 0.0
    others = population - hits
    if yes * population > asked * hits:  # above the mean each term is smaller than the one before
        term = total = _chance(yes, asked, hits, population)
        for x in range(yes, highest):
            term *= (hits - x) * (asked - x) / ((x + 1) * (others - asked + x + 1))
            total += term
            if term < total * _NEGLIGIBLE:
                break
        return total
    term = total = _chance(yes - 1, asked, hits, population)
    for x in range(yes - 1, lowest, -1):
        term *= x * (others - asked + x) / ((hits - x + 1) * (asked - x + 1))
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return 1 - total


def _chance(yes: int, asked: int, hits: int, population: int) -> float:
    return exp(
        _log_choose(hits, yes) + _log_choose(population - hits, asked - yes) - _log_choose(population, asked)
    )


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
