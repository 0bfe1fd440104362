"""Does "can't tell", or "cannot be used", concentrate somewhere? Pure.

Skipping is fair as long as it does not depend on the class asked about. Three things are compared, each with
what its surroundings let expect: a class over all people, one person's answers about one class, one person
over all classes. The expectation of a class is built from each person's own rate. So a person who skips much,
or who has met only one class so far, raises no alarm about a class.

The counts are compared with a Poisson distribution of the expected mean. It is wider than the truth, because
skips cannot exceed the answers. The bound is shared out over everything that is looked at.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.quality.chi_square import upper_gamma

ALARM = 0.02  # how often one look at a campaign in which nothing concentrates raises an alarm, at most
MIN_SKIPS = 3
MUCH_MORE = 0.05  # by which a person's share must exceed what is expected: people differ a little, and may

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Concentration:
    """More "can't tell" than chance explains."""

    person: int | None  # index; None: of all people
    class_: int | None  # None: over all classes
    skips: int
    answers: int
    expected: float  # skips, from the surroundings


def concentrations(skips: Integers, answers: Integers) -> list[Concentration]:
    """What stands out: classes first, then people at single classes, then people.

    Args:
        skips: (P, K) times that each person could not tell, by class asked about.
        answers: (P, K) all their answers.
    """
    people, classes = skips.shape
    if not people:
        return []
    by_person = _rates(skips.sum(1), answers.sum(1))  # (P,)
    by_class = _rates(skips.sum(0), answers.sum(0))  # (K,)
    expected = answers * by_person[:, None]  # (P, K) if class does not matter
    bound = ALARM / 3

    found = [
        Concentration(None, class_, *_figures(skips[:, class_], answers[:, class_], expected[:, class_]))
        for class_ in range(classes)
        if _is_much(skips[:, class_], expected[:, class_], bound / classes)
    ]
    known = {item.class_ for item in found}
    cells = [(int(person), int(class_)) for person, class_ in np.argwhere(skips >= MIN_SKIPS)]
    found += [
        Concentration(person, class_, *_figures(skips[cell], answers[cell], expected[cell]))
        for person, class_ in cells
        if class_ not in known
        and _is_much(skips[cell := (person, class_)], expected[cell], bound / (people * classes))
    ]
    usual = answers * by_class  # (P, K) if the person does not matter
    found += [
        Concentration(person, None, *_figures(skips[person], answers[person], usual[person]))
        for person in range(people)
        if _is_much(skips[person], usual[person], bound / people)
        and skips[person].sum() - usual[person].sum() > MUCH_MORE * answers[person].sum()
    ]
    return found


def _rates(hits: Integers, totals: Integers) -> Floats:
    return np.asarray(hits / np.maximum(totals, 1))


def _figures(skips: Integers, answers: Integers, expected: Floats) -> tuple[int, int, float]:
    return int(np.sum(skips)), int(np.sum(answers)), float(np.sum(expected))


def _is_much(skips: Integers, expected: Floats, bound: float) -> bool:
    count, mean = int(np.sum(skips)), float(np.sum(expected))
    return count >= MIN_SKIPS and count > mean and poisson_tail(count, mean) < bound


def poisson_tail(count: int, mean: float) -> float:
    """How often a Poisson variable of this mean is at least `count` >= 1."""
    return 1 - upper_gamma(count, mean) if mean > 0 else 0.0
