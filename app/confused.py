"""Which classes are taken for which, where a table of all of them is too large for a page. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

MOST_IN_MATRIX = 25  # classes of which a page shows every cell
MOST_PAIRS = 20


@dataclass(frozen=True, slots=True)
class Confused:
    """Pictures of one class that are taken for another one."""

    true: int
    predicted: int
    pictures: int
    share: float  # of the pictures of the true class


def most_confused(rows: Sequence[Sequence[int]]) -> list[Confused]:
    """The pairs with most pictures, the first in the order of the classes where they are equal.

    `rows`: counts [true][predicted].
    """
    pairs = (
        Confused(true, predicted, count, count / sum(row))
        for true, row in enumerate(rows)
        for predicted, count in enumerate(row)
        if count and true != predicted
    )
    return nlargest(MOST_PAIRS, pairs, key=lambda pair: (pair.pictures, -pair.true, -pair.predicted))
