"""How often the intervals of an evaluation hold the truth, and how wide they are.

`python -m tests.app.evaluations.coverage` prints the tables of docs/results/evaluation.md,
in a quarter of an hour on one core; with a name behind it, as by_class, one of them.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, hypergeom, norm

from app.campaigns.sampling import strata_of
from app.evaluations.estimating import (
    Stratum,
    accuracy_interval,
    compare,
    corrected_interval,
    stratified_interval,
)

REPETITIONS = 2_000
SEED = 20_261_127
TRUTHS = (*np.round(np.arange(0.50, 0.951, 0.05), 2).tolist(), 0.97, 0.98, 0.99, 0.995)
COUNTS = tuple(range(200, 1001, 100))
# Of people: how many right predictions they call right, and how many wrong ones wrong.
PEOPLE = ((0.99, 0.99), (0.97, 0.98), (0.90, 0.95), (0.83, 0.90))
KNOWN = (25, 50, 100, 200)  # known questions of either kind
# Accuracy of each part; the second part of a pair are the weights.
STRATA: dict[str, tuple[list[float], list[float]]] = {
    "ten alike, 95 %": ([0.95] * 10, [1.0] * 10),
    "ten alike, 99 %": ([0.99] * 10, [1.0] * 10),
    "one of ten bad": ([0.40] + [0.99] * 9, [1.0] * 10),
    "one of ten bad, ten times the weight": ([0.40] + [0.99] * 9, [10.0] + [1.0] * 9),
    "60 to 100 %": (np.linspace(0.6, 1, 10).tolist(), list(range(1, 11))),
    "half without a mistake": ([1.0] * 5 + [0.9] * 5, [1.0] * 10),
}
PER_STRATUM = (5, 20, 60)
# How the predictions of a target spread over classes.
SHAPES: dict[str, NDArray[np.float64]] = {
    "ten alike": np.ones(10),
    "ten, each half of the one before": np.power(0.5, np.arange(10)),
    "seven, 30 to 2 %": np.array([30.0, 20, 20, 10, 10, 8, 2]),
    "forty, the k-th with 1/k of the first": 1 / np.arange(1, 41),
}
TARGET = 20_000  # pictures
WORSE = 4.0  # by so much the logit of the rarest class's accuracy lies below that of the commonest
DIFFERING = ((0.02, 0.02), (0.10, 0.10), (0.05, 0.01), (0.20, 0.10), (0.01, 0.001))

Ends = Callable[[NDArray[np.float64], int], tuple[NDArray[np.float64], NDArray[np.float64]]]
_Z = float(norm.ppf(0.975))


def _wilson(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    middle, reach = (k + _Z**2 / 2) / (n + _Z**2), _Z * np.sqrt(k * (n - k) / n + _Z**2 / 4) / (n + _Z**2)
    return middle - reach, middle + reach


def _agresti_coull(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    share = (k + _Z**2 / 2) / (n + _Z**2)
    reach = _Z * np.sqrt(share * (1 - share) / (n + _Z**2))
    return share - reach, share + reach


def _jeffreys(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = beta.ppf([[0.025], [0.975]], k + 0.5, n - k + 0.5)
    return np.where(k == 0, 0, low), np.where(k == n, 1, high)


def _exact(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    with np.errstate(invalid="ignore"):
        low, high = beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
    return np.where(k == 0, 0, low), np.where(k == n, 1, high)


def _mid_p(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where half of the probability of what was seen counts."""

    def above(hits: NDArray[np.float64]) -> NDArray[np.float64]:
        below, beyond = np.zeros(n + 1), np.ones(n + 1)
        for _ in range(40):
            share = (below + beyond) / 2
            more = binom.cdf(hits, n, share) - binom.pmf(hits, n, share) / 2 > 0.025
            below, beyond = np.where(more, share, below), np.where(more, beyond, share)
        return np.where(hits == n, 1, below)

    return 1 - above(n - k), above(k)


CANDIDATES: dict[str, Ends] = {
    "Wilson": _wilson,
    "Jeffreys": _jeffreys,
    "mid-P": _mid_p,
    "Agresti and Coull": _agresti_coull,
    "exact (Clopper and Pearson)": _exact,
}


def exact_coverage(ends: Ends, n: int, truths: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """By summing the binomial: at each truth how often the interval holds it; and its mean width."""
    k = np.arange(n + 1, dtype=np.float64)
    low, high = ends(k, n)
    chances = binom.pmf(k[:, None], n, truths)
    holds = (low[:, None] <= truths) & (truths <= high[:, None])
    return (chances * holds).sum(0), float((chances * (high - low)[:, None]).sum(0).mean())


def of_the_app(k: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends that the page shows."""
    found = [accuracy_interval(int(each), n) for each in k]
    return np.array([each.low for each in found]), np.array([each.high for each in found])


def simulated(
    truth: float, intervals: Iterator[tuple[float, float]], repetitions: int
) -> tuple[float, float]:
    """Of so many evaluations: the share that holds the truth, and the mean width."""
    ends = np.array([next(intervals) for _ in range(repetitions)])
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()), float(
        (ends[:, 1] - ends[:, 0]).mean()
    )


def plain(truth: float, n: int, repetitions: int = REPETITIONS) -> tuple[float, float]:
    """People who do not err."""
    chance = np.random.default_rng([SEED, n, round(1000 * truth)])
    interval = cache(lambda yes: accuracy_interval(yes, n))

    def one() -> Iterator[tuple[float, float]]:
        while True:
            found = interval(int(chance.binomial(n, truth)))
            yield found.low, found.high

    return simulated(truth, one(), repetitions)


def corrected(
    truth: float, n: int, people: tuple[float, float], known: int, repetitions: int = REPETITIONS
) -> tuple[float, float]:
    """People who err, and so many known questions of either kind."""
    hit, rejected = people
    chance = np.random.default_rng([SEED, n, round(1000 * truth), round(1000 * hit), known])

    def one() -> Iterator[tuple[float, float]]:
        while True:
            found = corrected_interval(
                accuracy_interval(int(chance.binomial(n, truth * hit + (1 - truth) * (1 - rejected))), n),
                gold_yes_right=int(chance.binomial(known, hit)),
                gold_yes_asked=known,
                gold_no_right=int(chance.binomial(known, rejected)),
                gold_no_asked=known,
            )
            yield (0.0, 1.0) if found is None else (found.low, found.high)

    return simulated(truth, one(), repetitions)


def stratified(name: str, per: int, repetitions: int = REPETITIONS) -> tuple[float, float]:
    """As many questions in each part."""
    accuracies, weights = STRATA[name]
    chance = np.random.default_rng([SEED, per, list(STRATA).index(name)])

    def one() -> Iterator[tuple[float, float]]:
        while True:
            yes = chance.binomial(per, accuracies).tolist()
            found = stratified_interval([Stratum(w, k, per) for w, k in zip(weights, yes, strict=True)])
            yield found.low, found.high

    return simulated(float(np.average(accuracies, weights=weights)), one(), repetitions)


def accuracies_of(shares: NDArray[np.float64], truth: float, spread: float) -> NDArray[np.float64]:
    """(K,) Of classes by their shares: the rarer, the worse by `spread`; `truth` over all."""
    if not spread:
        return np.full(len(shares), truth)
    rank = np.argsort(np.argsort(-shares, kind="stable")) / (len(shares) - 1) - 0.5
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        below = float((shares / (1 + np.exp(spread * rank - middle))).sum()) < truth
        low, high = (middle, high) if below else (low, middle)
    found: NDArray[np.float64] = 1 / (1 + np.exp(spread * rank - low))
    return found


def by_class(
    shape: str, truth: float, n: int, spread: float, repetitions: int = REPETITIONS
) -> tuple[float, float, int]:
    """From each class by itself, as an evaluation draws; and how many pictures are judged in all."""
    shares = SHAPES[shape] / SHAPES[shape].sum()
    populations = np.maximum(np.round(shares * TARGET), 1).astype(int)
    right = np.round(populations * accuracies_of(shares, truth, spread)).astype(int)
    chance = np.random.default_rng([SEED, n, round(1000 * truth), list(SHAPES).index(shape), int(spread)])
    predicted = chance.permutation(np.repeat(np.arange(len(shares)), populations))
    strata = strata_of(predicted.tolist(), sample=n, num_classes=len(shares))
    asked = np.array([stratum.sampled for stratum in strata])

    def one() -> Iterator[tuple[float, float]]:
        while True:
            hits = chance.hypergeometric(right, populations - right, asked).tolist()
            found = stratified_interval(
                [Stratum(item.population, k, item.sampled) for item, k in zip(strata, hits, strict=True)]
            )
            yield found.low, found.high

    real = float(right.sum() / populations.sum())
    return (*simulated(real, one(), repetitions), int(asked.sum()))


def finite(population: int, n: int) -> tuple[float, float, float, float]:
    """Without replacement, exact: mean and least coverage, mean width, and that of a draw without end.

    Over every number of right predictions from half of the pictures to all.
    """
    found = [accuracy_interval(yes, n, population) for yes in range(n + 1)]
    low, high = (np.array([getattr(each, end) for each in found]) for end in ("low", "high"))
    hits = np.arange(population // 2, population + 1)
    chances = hypergeom.pmf(np.arange(n + 1)[:, None], population, hits, n)
    truths = hits / population
    covered = (chances * ((low[:, None] <= truths) & (truths <= high[:, None]))).sum(0)
    endless = np.subtract(*_exact(np.arange(n + 1, dtype=np.float64), n)[::-1])
    width, wide = (float((chances * each[:, None]).sum(0).mean()) for each in (high - low, endless))
    return float(covered.mean()), float(covered.min()), width, wide


def compared(
    shares: tuple[float, float], n: int, repetitions: int = REPETITIONS
) -> tuple[float, float, float]:
    """Two models of which each alone is right so often; and how often they are called different (p < 5 %)."""
    chance = np.random.default_rng([SEED, n, *(round(1000 * share) for share in shares)])
    verdicts: list[bool] = []

    def one() -> Iterator[tuple[float, float]]:
        while True:
            first, second, _ = chance.multinomial(n, [*shares, 1 - sum(shares)]).tolist()
            found = compare(first, second, n)
            verdicts.append(found.p_value < 0.05)
            yield found.low, found.high

    return (*simulated(shares[0] - shares[1], one(), repetitions), float(np.mean(verdicts)))


def _row(*cells: str | float) -> None:
    shown = [cell if isinstance(cell, str) else f"{100 * cell:.1f} %" for cell in cells]
    sys.stdout.write(f"| {' | '.join(shown)} |\n")
    sys.stdout.flush()


def _head(*names: str) -> None:
    sys.stdout.write("\n")
    _row(*names)
    _row(*("---" for _ in names))


def print_candidates() -> None:
    """Exact coverage: 50 to 99.5 % in steps of 0.1, and 200 to 1,000 questions in steps of 5."""
    truths = np.round(np.arange(0.5, 0.9951, 0.001), 3)
    _head("interval", "mean coverage", "least", "at", "mean width")
    for name, ends in CANDIDATES.items():
        counts = range(200, 1001, 5)
        found = [exact_coverage(ends, n, truths) for n in counts]
        covered = np.array([each for each, _ in found])
        row, column = np.unravel_index(covered.argmin(), covered.shape)
        worst = f"{100 * truths[column]:.1f} %, {counts[row]} questions"
        _row(name, covered.mean(), covered.min(), worst, float(np.mean([width for _, width in found])))


def print_plain() -> None:
    """Simulated coverage at every pair."""
    _head("accuracy", *(f"{n}" for n in COUNTS))
    covered = []
    for truth in TRUTHS:
        row = [plain(truth, n)[0] for n in COUNTS]
        covered += row
        _row(f"{100 * truth:.1f} %", *row)
    sys.stdout.write(f"\nMean {100 * np.mean(covered):.2f} %, least {100 * min(covered):.2f} %.\n")


def print_corrected() -> None:
    """Simulated coverage and width over accuracies, at 200, 400 and 1,000 questions."""
    _head(
        "right: of yes, of no",
        "known questions",
        "mean coverage",
        "least",
        "mean width",
        "uncorrected covers",
    )
    for people in PEOPLE:
        for known in KNOWN:
            pairs = [(truth, n) for truth in TRUTHS[::2] for n in (200, 400, 1000)]
            found = [corrected(truth, n, people, known) for truth, n in pairs]
            covered = [each for each, _ in found]
            _row(
                f"{100 * people[0]:.0f} %, {100 * people[1]:.0f} %",
                f"{known} + {known}",
                float(np.mean(covered)),
                min(covered),
                float(np.mean([width for _, width in found])),
                float(np.mean([uncorrected(truth, n, people) for truth, n in pairs])),
            )


def uncorrected(truth: float, n: int, people: tuple[float, float]) -> float:
    """How often the plain interval holds the truth although people err; exact."""
    k = np.arange(n + 1, dtype=np.float64)
    low, high = _exact(k, n)
    chances = binom.pmf(k, n, truth * people[0] + (1 - truth) * (1 - people[1]))
    return float((chances * ((low <= truth) & (truth <= high))).sum())


def print_stratified() -> None:
    """Simulated coverage and width."""
    _head("parts", *(f"{per} questions in each: coverage, width" for per in PER_STRATUM))
    for name in STRATA:
        found = [stratified(name, per) for per in PER_STRATUM]
        _row(name, *(f"{100 * covered:.1f} %, {100 * width:.1f} %" for covered, width in found))


def print_by_class() -> None:
    """Simulated coverage over accuracies and counts, and the width beside that of a simple draw."""
    _head("predictions", "accuracy", "mean coverage", "least", "mean width", "of a simple draw", "judged")
    covered = []
    for shape in SHAPES:
        for spread, words in ((0.0, "the same for all"), (WORSE, "worse for rare classes")):
            pairs = [(truth, n) for truth in TRUTHS[::2] for n in (200, 400, 700, 1000)]
            found = [by_class(shape, truth, n, spread) for truth, n in pairs]
            own = [each for each, _, _ in found]
            covered += own
            simple = float(np.mean([plain(truth, n)[1] for truth, n in pairs]))
            more = sum(judged for *_, judged in found) / sum(n for _, n in pairs)
            width = float(np.mean([each for _, each, _ in found]))
            _row(shape, words, float(np.mean(own)), min(own), width, simple, f"{more:.2f} times")
    sys.stdout.write(f"\nMean {100 * np.mean(covered):.2f} %, least {100 * min(covered):.2f} %.\n")


def print_finite() -> None:
    """Exact coverage of a draw that is a large part of all pictures."""
    _head("pictures", "asked", "mean coverage", "least", "mean width", "of a draw without end")
    for population in (108, 400, 1000, 4000):
        for part in (0.05, 0.1, 0.25, 0.5, 0.75, 1.0):
            n = round(part * population)
            _row(f"{population:,}", f"{n:,}", *finite(population, n))


def print_compared() -> None:
    """Simulated coverage, width, and how often a difference is found."""
    _head("right alone: first, second", "pictures", "coverage", "width", "called different")
    for shares in DIFFERING:
        for n in (200, 600):
            _row(f"{100 * shares[0]:g} %, {100 * shares[1]:g} %", f"{n}", *compared(shares, n))


if __name__ == "__main__":
    parts = (
        print_candidates,
        print_plain,
        print_corrected,
        print_stratified,
        print_by_class,
        print_finite,
        print_compared,
    )
    for part in parts:
        if len(sys.argv) == 1 or part.__name__ == f"print_{sys.argv[1]}":
            part()
