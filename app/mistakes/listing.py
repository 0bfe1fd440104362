"""Which pictures of a trial a list has, in which order, and what the confusion counts. Pure."""

import enum
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.registry.kept_pictures import Among, KeptPictures
from clarinet.files.names import NO_LABEL


class Order(enum.StrEnum):
    """Which pictures come first; of equal ones the one whose position is lower."""

    POSITION = "position"
    SURE = "sure"
    UNSURE = "unsure"


class Only(enum.StrEnum):
    """Predictions that are wrong by the true class or by what most people say, or by people alone."""

    MISTAKES = "mistakes"
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a list is limited to; classes are places among the run's."""

    among: Among
    true_class: int | None = None
    predicted_class: int | None = None
    only: Only | None = None
    order: Order = Order.POSITION


@dataclass(frozen=True, eq=False)
class Listing:
    """A list of a trial's pictures; `denied`: examples whose prediction most people call wrong."""

    kept: KeptPictures
    wanted: Wanted
    denied: Collection[int]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """(R,) rows of the pictures that are wanted, in order."""
        return self._ordered[self._is_wanted[self._ordered]]

    def page(self, *, after: int | None, limit: int) -> tuple[NDArray[np.int64], int | None]:
        """The rows behind row `after`, and the row to give as `after` for the next page.

        `after` may be a picture that the list has no more: its place is known by what it was ordered by.
        """
        start = 0 if after is None else int(np.searchsorted(self._ranks[self.rows], self._ranks[after] + 1))
        found = self.rows[start : start + limit]
        return found, int(found[-1]) if start + limit < len(self.rows) else None

    def beside(self, row: int) -> tuple[int | None, int | None]:
        """The rows before and behind one in the list; None at its ends."""
        ranks = self._ranks[self.rows]
        place = int(np.searchsorted(ranks, self._ranks[row]))
        is_there = place < len(ranks) and ranks[place] == self._ranks[row]
        following = place + is_there
        before = int(self.rows[place - 1]) if place else None
        return before, int(self.rows[following]) if following < len(self.rows) else None

    @cached_property
    def _ordered(self) -> NDArray[np.int64]:
        """(N,) all rows, wanted or not."""
        likeliest = self.kept.probabilities[:, 0]
        if self.wanted.order is Order.SURE:
            return np.argsort(-likeliest, kind="stable")
        if self.wanted.order is Order.UNSURE:
            return np.argsort(margins(self.kept), kind="stable")
        return np.arange(len(self.kept))

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        """(N,) the place of each row among all."""
        ranks = np.empty(len(self._ordered), np.int64)
        ranks[self._ordered] = np.arange(len(ranks))
        return ranks

    @cached_property
    def _is_wanted(self) -> NDArray[np.bool_]:
        kept, wanted = self.kept, self.wanted
        predicted = kept.classes[:, 0]
        found: NDArray[np.bool_] = kept.among == wanted.among.code
        if wanted.true_class is not None:
            found &= kept.true_classes == wanted.true_class
        if wanted.predicted_class is not None:
            found &= predicted == wanted.predicted_class
        if wanted.only is not None:
            wrong = np.isin(kept.example_ids, list(self.denied))
            if wanted.only is Only.MISTAKES:
                wrong |= (kept.true_classes != NO_LABEL) & (kept.true_classes != predicted)
            found &= wrong
        return found


def margins(kept: KeptPictures) -> NDArray[np.float32]:
    """(N,) by how much the likeliest class is before the second one."""
    found: NDArray[np.float32] = kept.probabilities[:, 0] - kept.probabilities[:, 1]
    return found


def groups_of(kept: KeptPictures) -> dict[Among, int]:
    """How many pictures there are of each kind; those that score come first."""
    counts = np.bincount(kept.among, minlength=len(Among))
    return {among: int(counts[among.code]) for among in Among if counts[among.code]}


def confusion_of(kept: KeptPictures, among: Among, num_classes: int) -> list[list[int]] | None:
    """Counts [true class][predicted class] of those of a kind; None where no true class is known."""
    chosen = (kept.among == among.code) & (kept.true_classes != NO_LABEL)
    if not chosen.any():
        return None
    cells = kept.true_classes[chosen].astype(np.int64) * num_classes + kept.classes[chosen, 0]
    counts: list[list[int]] = (
        np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes).tolist()
    )
    return counts


def predicted_counts(kept: KeptPictures, among: Among, num_classes: int) -> list[int]:
    """How many pictures of a kind are taken for each class."""
    chosen = kept.classes[kept.among == among.code, 0]
    counts: list[int] = np.bincount(chosen, minlength=num_classes).tolist()
    return counts
