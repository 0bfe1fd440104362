"""What people's answers about a model's predictions say of its accuracy. Pure.

Coverages: docs/results/evaluation.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from app.evaluations.finite import ends_of_share
from clarinet.recipes.binomial import MISSED, beta_quantile, clopper_pearson, incomplete_beta, trials_needed

FEWEST_IN_STRATUM = 10  # with fewer, what a stratum says of its own spread is chance
LEAST_SPREAD = 0.05  # of what equal strata would have; less is not believed
_Z = NormalDist().inv_cdf(1 - MISSED / 2)
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class Interval:
    """An accuracy with the ends of its 95 % confidence interval; fractions."""

    estimate: float
    low: float
    high: float

    @property
    def is_counted(self) -> bool:
        """Whether every picture was judged, so that nothing was estimated."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the target from which pictures were drawn at random.

    Args:
        weight: share of the target, or number of its pictures: only the ratios count.
        yes: how many predictions people called right.
        asked: of how many.
    """

    weight: float
    yes: int
    asked: int


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more accurate the first model is than the second, on the same pictures; fractions.

    Args:
        estimate: accuracy of the first less that of the second.
        low, high: ends of the 95 % confidence interval.
        p_value: how often so large a difference would come by chance between equals.
    """

    estimate: float
    low: float
    high: float
    p_value: float


def accuracy_interval(yes: int, asked: int, population: int | None = None) -> Interval:
    """The accuracy where people called so many predictions right, of pictures drawn at random.

    `population`: of how many they were drawn; None: of so many that it makes no difference. Where the draw is
    a large part of them the interval is shorter, and with all of them there is none: both ends are the share.

    The interval is the exact one: whatever the accuracy is, it holds it in 95 of 100 evaluations or more.
    Wilson's and the mid-P interval are 3 % shorter, but hold some accuracies near 99 % in 92 of 100 only,
    Jeffreys' in 88.

    Raises:
        ValueError: numbers out of range.
    """
    ends = clopper_pearson(yes, asked) if population is None else ends_of_share(yes, asked, population)
    return Interval(yes / asked, *ends)


def questions_needed(half_width: float, expected: float | None = None) -> int:
    """How many questions give an interval whose ends are at most so far from the accuracy.

    Args:
        half_width: in (0, 0.5), as 0.02 for two points.
        expected: the accuracy; None: the one that takes the most questions, 0.5.

    Raises:
        ValueError: numbers out of range, or more than a million questions.
    """
    return trials_needed(half_width, 0.5 if expected is None else expected)


def corrected_interval(
    plain: Interval,
    *,
    gold_yes_right: int,
    gold_yes_asked: int,
    gold_no_right: int,
    gold_no_asked: int,
) -> Interval | None:
    """The accuracy where people err, as often as on questions whose answer is known.

    With s the share of right predictions that people call right, and t the share of wrong ones that they call
    wrong, the share of yes is q = a s + (1 - a) (1 - t), hence (Rogan and Gladen 1978)

        a = (q + t - 1) / (s + t - 1).

    All three shares were counted. An end of the interval is the a at which q - a s - (1 - a) (1 - t) is as
    far from 0 as the three reach together: the distances from each share to the end of its exact interval,
    weighted by 1, a and 1 - a, squared and added (Zou and Donner 2008). Without errors and with ever more
    known questions it becomes the plain interval. Where more yes were said than such people say to right
    predictions alone, it reaches as far as that one, too. All this holds for weighted shares as well, where
    people err alike in all parts of the target.

    It holds for known questions that are as hard as the others: people who see a wrong prediction are asked
    about a class that the model mistook for the true one.

    Args:
        plain: what people call right: of `accuracy_interval` or `stratified_interval`.
        gold_yes_right, gold_yes_asked: known questions whose answer is yes.
        gold_no_right, gold_no_asked: those whose answer is no.

    Returns:
        None where a kind of known questions was not asked, or people answer them no better than by chance:
        then nothing can be corrected.

    Raises:
        ValueError: numbers out of range.
    """
    if not gold_yes_asked or not gold_no_asked:
        return None
    hit = accuracy_interval(gold_yes_right, gold_yes_asked)
    rejected = accuracy_interval(gold_no_right, gold_no_asked)
    told_apart = hit.estimate + rejected.estimate - 1
    if told_apart <= 0:
        return None
    found = min(max((plain.estimate + rejected.estimate - 1) / told_apart, 0.0), 1.0)

    def beyond(accuracy: float, sign: int) -> float:
        """Above 0 where the accuracy is too low (sign 1) or too high (-1) for what was counted."""
        excess = plain.estimate - accuracy * hit.estimate - (1 - accuracy) * (1 - rejected.estimate)
        ends = (plain.low, hit.high, rejected.low) if sign > 0 else (plain.high, hit.low, rejected.high)
        reach = math.hypot(
            plain.estimate - ends[0],
            accuracy * (hit.estimate - ends[1]),
            (1 - accuracy) * (rejected.estimate - ends[2]),
        )
        return sign * excess - reach

    low = _edge(lambda accuracy: beyond(accuracy, 1) <= 0, outside=0.0, inside=found)
    high = _edge(lambda accuracy: beyond(accuracy, -1) <= 0, outside=1.0, inside=found)
    if found in {0, 1}:
        low, high = min(low, plain.low), max(high, plain.high)
    return Interval(found, low, high)


def stratified_interval(strata: Sequence[Stratum]) -> Interval:
    """The accuracy on a target of which each part was drawn from by itself.

    Each yes counts weight / asked of its stratum. The upper end is a quantile of the beta distribution that
    has the mean and the variance of the counted yes with one more of the largest weight, after Fay and Feuer
    1997 for rates; the lower end is the same for the no answers. With one stratum both are the ends of
    `accuracy_interval`. Where every stratum has FEWEST_IN_STRATUM questions, the variance within strata
    narrows it.

    Raises:
        ValueError: no stratum, one without a question or with a weight that is not above 0, or numbers out of
            range.
    """
    total = sum(stratum.weight for stratum in strata)
    for stratum in strata:
        if not 0 <= stratum.yes <= stratum.asked or not stratum.asked or not 0 < stratum.weight < math.inf:
            raise ValueError(f"{stratum}")
    if not strata:
        raise ValueError("no stratum")
    shares = [stratum.weight / total for stratum in strata]
    asked = [stratum.asked for stratum in strata]
    yes = [stratum.yes for stratum in strata]
    no = [stratum.asked - stratum.yes for stratum in strata]
    estimate = math.fsum(share * x / n for share, x, n in zip(shares, yes, asked, strict=True))
    return Interval(estimate, 1 - _upper_end(shares, no, asked), _upper_end(shares, yes, asked))


def compare(only_first: int, only_second: int, asked: int) -> Difference:
    """Two models whose predictions people judged on the same pictures.

    The p-value is McNemar's exact one; the interval is Wald's with a picture added on either side (Bonett and
    Price 2012), which agrees with it closely.

    Args:
        only_first, only_second: pictures on which one was right and the other wrong.
        asked: all pictures.

    Raises:
        ValueError: numbers out of range.
    """
    differing = only_first + only_second
    if min(only_first, only_second) < 0 or asked < 1 or differing > asked:
        raise ValueError(f"{only_first} and {only_second} of {asked}")
    fewer = min(only_first, only_second)
    p_value = min(1.0, 2 * incomplete_beta(differing - fewer, fewer + 1, 0.5)) if differing else 1.0
    first, second = (only_first + 1) / (asked + 2), (only_second + 1) / (asked + 2)
    reach = _Z * math.sqrt((first + second - (first - second) ** 2) / (asked + 2))
    return Difference(
        estimate=(only_first - only_second) / asked,
        low=max(first - second - reach, -1.0),
        high=min(first - second + reach, 1.0),
        p_value=p_value,
    )


def _edge(holds: Callable[[float], bool], *, outside: float, inside: float) -> float:
    """Where a claim ceases to hold between a point where it holds and the border."""
    if holds(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if holds(middle) else (middle, inside)
    return inside


def _upper_end(shares: Sequence[float], hits: Sequence[int], asked: Sequence[int]) -> float:
    """Of the weighted share of hits: see `stratified_interval`."""
    rows = list(zip(shares, hits, asked, strict=True))
    worth = max(share / n for share, _, n in rows)
    found = math.fsum(share * x / n for share, x, n in rows)
    events = math.fsum((share / n) ** 2 * x for share, x, n in rows)
    a = (found + worth) ** 2 / (events + worth**2)
    b = a * (1 + worth) / (found + worth) - a
    if b <= 0 or found >= 1:
        return 1.0
    spread = 1.0
    if events and min(asked) >= FEWEST_IN_STRATUM:
        within = math.fsum((share / n) ** 2 * x * (n - x) / (n - 1) for share, x, n in rows)
        spread = min(max(within / (events * (1 - found)), LEAST_SPREAD), 1.0)
    return beta_quantile(1 - MISSED / 2, a / spread, b / spread)
