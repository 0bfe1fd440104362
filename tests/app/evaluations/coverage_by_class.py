"""How often what is drawn by class keeps its promise where people err, and where two models are compared.

`python -m tests.app.evaluations.coverage_by_class` prints the tables of docs/results/evaluation.md, in a
few minutes on one core; with a name behind it, corrected or compared, one of them.
"""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.campaigns.sampling import strata_of
from app.evaluations.estimating import Stratum, corrected_interval, stratified_interval
from app.evaluations.weighted import Alike, compare_weighted, weight_of
from tests.app.evaluations.coverage import (
    PEOPLE,
    REPETITIONS,
    SEED,
    SHAPES,
    TARGET,
    WORSE,
    accuracies_of,
    simulated,
)

Ints = NDArray[np.int64]
UNEVEN = ("ten, each half of the one before", "forty, the k-th with 1/k of the first")  # of SHAPES
KNOWN = (50, 200)  # known questions of either kind
# Accuracy of the first model, and of the second.
MODELS = ((0.80, 0.80), (0.95, 0.95), (0.80, 0.75), (0.95, 0.90))


def corrected_by_class(
    shape: str,
    truth: float,
    n: int,
    people: tuple[float, float],
    known: int,
    *,
    repetitions: int = REPETITIONS,
) -> tuple[float, float]:
    """From each class by itself, the rarer the worse, judged by people who err."""
    hit, rejected = people
    shares = SHAPES[shape] / SHAPES[shape].sum()
    populations = np.maximum(np.round(shares * TARGET), 1).astype(int)
    right = np.round(populations * accuracies_of(shares, truth, WORSE)).astype(int)
    chance = np.random.default_rng([SEED, n, round(1000 * truth), round(1000 * hit), known])
    predicted = chance.permutation(np.repeat(np.arange(len(shares)), populations))
    strata = strata_of(predicted.tolist(), sample=n, num_classes=len(shares))
    asked = np.array([stratum.sampled for stratum in strata])

    def one() -> Iterator[tuple[float, float]]:
        while True:
            hits = chance.hypergeometric(right, populations - right, asked)
            said = chance.binomial(hits, hit) + chance.binomial(asked - hits, 1 - rejected)
            parts = [
                Stratum(item.population, k, item.sampled)
                for item, k in zip(strata, said.tolist(), strict=True)
            ]
            found = corrected_interval(
                stratified_interval(parts),
                gold_yes_right=int(chance.binomial(known, hit)),
                gold_yes_asked=known,
                gold_no_right=int(chance.binomial(known, rejected)),
                gold_no_asked=known,
            )
            yield (0.0, 1.0) if found is None else (found.low, found.high)

    return simulated(float(right.sum() / populations.sum()), one(), repetitions)


def _predictions(
    chance: np.random.Generator, shows: Ints, accuracy: float, shares: NDArray[np.float64]
) -> Ints:
    """Of a model that is worse for rare classes; a wrong prediction names a class by its share."""
    is_right = chance.random(len(shows)) < accuracies_of(shares, accuracy, WORSE)[shows]
    said: Ints = np.where(is_right, shows, chance.choice(len(shares), len(shows), p=shares))
    return said


def _as_good(chance: np.random.Generator, first: Ints, second: Ints, shows: Ints) -> None:
    """Let the worse of two models be right as often as the other."""
    behind = int((first == shows).sum() - (second == shows).sum())
    worse = second if behind > 0 else first
    mended = chance.choice(np.flatnonzero(worse != shows), abs(behind), replace=False)
    worse[mended] = shows[mended]


def compared_by_class(
    shape: str,
    accuracies: tuple[float, float],
    n: int,
    *,
    other_simple: bool = False,
    repetitions: int = REPETITIONS,
) -> tuple[float, float, float]:
    """Two models on what both evaluations drew from one random order, a new one each time.

    `other_simple`: the second drew each picture with the same chance. Gives also how often they are called
    different (p < 5 %).
    """
    shares = SHAPES[shape] / SHAPES[shape].sum()
    classes = len(shares)
    chance = np.random.default_rng([SEED, n, *(round(1000 * each) for each in accuracies), int(other_simple)])
    shows: Ints = chance.choice(classes, TARGET, p=shares)
    first, second = (_predictions(chance, shows, accuracy, shares) for accuracy in accuracies)
    if accuracies[0] == accuracies[1]:
        _as_good(chance, first, second, shows)
    verdicts: list[bool] = []

    def one() -> Iterator[tuple[float, float]]:
        while True:
            order = chance.permutation(TARGET)
            a, b, truth = first[order], second[order], shows[order]
            of_a = [
                (each.population, each.sampled, each.end)
                for each in strata_of(a.tolist(), sample=n, num_classes=classes)
            ]
            of_b = [(TARGET, n, n)] * classes
            if not other_simple:
                of_b = [
                    (each.population, each.sampled, each.end)
                    for each in strata_of(b.tolist(), sample=n, num_classes=classes)
                ]
            place = np.arange(TARGET)
            both = (place < np.array(of_a)[a, 2]) & (place < np.array(of_b)[b, 2])
            a, b, truth = a[both], b[both], truth[both]
            cells, which = np.unique(a * classes + b, return_inverse=True)
            counted = [
                np.bincount(which, weights=mask).astype(int).tolist()
                for mask in ((a == truth) & (b != truth), (b == truth) & (a != truth), np.ones(len(a)))
            ]
            parts = [
                Alike(weight_of(of_a, of_b, divmod(int(cell), classes)), *counts)
                for cell, *counts in zip(cells, *counted, strict=True)
            ]
            found = compare_weighted(parts)
            verdicts.append(found.p_value < 0.05)
            yield found.low, found.high

    real = float((first == shows).mean() - (second == shows).mean())
    return (*simulated(real, one(), repetitions), float(np.mean(verdicts)))


def _row(*cells: str | float) -> None:
    shown = [cell if isinstance(cell, str) else f"{100 * cell:.1f} %" for cell in cells]
    sys.stdout.write(f"| {' | '.join(shown)} |\n")
    sys.stdout.flush()


def _head(*names: str) -> None:
    sys.stdout.write("\n")
    _row(*names)
    _row(*("---" for _ in names))


def print_corrected() -> None:
    """Simulated coverage and width over accuracies and numbers of questions."""
    _head("predictions", "right: of yes, of no", "known questions", "mean coverage", "least", "mean width")
    for shape in UNEVEN:
        for people in PEOPLE:
            for known in KNOWN:
                pairs = [(truth, n) for truth in (0.6, 0.8, 0.95, 0.99) for n in (200, 700)]
                found = [corrected_by_class(shape, truth, n, people, known) for truth, n in pairs]
                covered, widths = zip(*found, strict=True)
                told = f"{100 * people[0]:.0f} %, {100 * people[1]:.0f} %"
                _row(
                    shape,
                    told,
                    f"{known} + {known}",
                    float(np.mean(covered)),
                    min(covered),
                    float(np.mean(widths)),
                )


def print_compared() -> None:
    """Simulated coverage, width, and how often a difference is found."""
    _head("predictions", "right: first, second", "drawn", "sample", "coverage", "width", "called different")
    for shape in UNEVEN:
        for accuracies in MODELS:
            for n in (200, 600):
                for other_simple, words in ((False, "both by class"), (True, "one by class")):
                    told = f"{100 * accuracies[0]:.0f} %, {100 * accuracies[1]:.0f} %"
                    figures = compared_by_class(shape, accuracies, n, other_simple=other_simple)
                    _row(shape, told, words, f"{n}", *figures)


if __name__ == "__main__":
    for part in (print_corrected, print_compared):
        if len(sys.argv) == 1 or part.__name__ == f"print_{sys.argv[1]}":
            part()
