"""The table of labels: what is known of images about classes, from answers to a batch. No torch."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clarinet.files.names import NO_LABEL


class LabelKind(enum.StrEnum):
    """What is known of an image about a class."""

    COMPLEMENTARY = "complementary"
    TRUE = "true"


KINDS = tuple(LabelKind)  # in arrays a kind's number is its place
COMPLEMENTARY, TRUE = range(len(KINDS))


class LabelRow(NamedTuple):
    """What is known of one image about one class: a row on its way into a table or a file."""

    position: int  # of the image in its data set
    kind: str  # of KINDS once it has been checked
    class_: int  # that it is, or is not
    weight: float
    probability: float | None = None  # with which the question behind it was drawn, where that is known
    example_id: int = NO_LABEL  # the application's own number of the image
    answers: int = 0  # yes/no answers it rests on
    imported: bool = False  # whether it came from elsewhere: no question was drawn
    filename: str | None = None  # what the image's file was called, for whoever may know it
    excluded: tuple[int, ...] = ()  # classes that earlier answers had ruled out when its question was drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """Labels of the images of a data set. An image has one true label, or complementary ones.

    Where questions knew earlier answers (`excluded`), the noes before a yes are there, too: see `true_alone`.

    Args:
        kinds: (L,) uint8, COMPLEMENTARY or TRUE.
        classes: (L,) int64 in [0, K), the class it is not, or is; -1 where nothing is known.
        weights: (L,) float32 >= 0, trust in the label.
        positions: (L,) int64, the image each label is about; None where row i is about image i.
        probabilities: (L,) float32 in (0, 1] with which the question behind each label was drawn; None where
            the labels come from no questions, or nobody wrote it down.
        excluded: (L, M) int64, the classes that earlier answers about the image had ruled out when the
            question was drawn, -1 beyond those; None where no question knew any.
        example_ids: (L,) int64, the application's own numbers of the images; None elsewhere.
        num_classes: K >= 2.
        named: the names of classes, by number, as far as they are known.
    """

    kinds: NDArray[np.uint8]
    classes: NDArray[np.int64]
    weights: NDArray[np.float32]
    positions: NDArray[np.int64] | None = None
    probabilities: NDArray[np.float32] | None = None
    excluded: NDArray[np.int64] | None = None
    example_ids: NDArray[np.int64] | None = None
    num_classes: int
    named: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, rows: Iterable[LabelRow], *, num_classes: int, named: dict[int, str] | None = None
    ) -> "Labels":
        """A table of rows, in their order; with probabilities where all rows have one."""
        listed = list(rows)
        known = [row.probability for row in listed if row.probability is not None]
        ids = np.array([row.example_id for row in listed], np.int64)
        most = max((len(row.excluded) for row in listed), default=0)
        gone = [(*row.excluded, *[NO_LABEL] * (most - len(row.excluded))) for row in listed]
        return cls(
            kinds=np.array([KINDS.index(row.kind) for row in listed], np.uint8),
            classes=np.array([row.class_ for row in listed], np.int64),
            weights=np.array([row.weight for row in listed], np.float32),
            positions=np.array([row.position for row in listed], np.int64),
            probabilities=np.array(known, np.float32) if listed and len(known) == len(listed) else None,
            excluded=np.array(gone, np.int64) if most else None,
            example_ids=ids if (ids != NO_LABEL).all() else None,
            num_classes=num_classes,
            named=named or {},
        )

    def __len__(self) -> int:
        return len(self.kinds)

    def at(self, rows: NDArray[np.int64]) -> "Labels":
        """Some of them, by row."""
        return replace(
            self,
            kinds=self.kinds[rows],
            classes=self.classes[rows],
            weights=self.weights[rows],
            positions=None if self.positions is None else self.positions[rows],
            probabilities=None if self.probabilities is None else self.probabilities[rows],
            excluded=None if self.excluded is None else self.excluded[rows],
            example_ids=None if self.example_ids is None else self.example_ids[rows],
        )

    def true_alone(self) -> "Labels":
        """Without complementary labels of images that have a true one.

        Only the loss "inverse", which weights each answer by 1/q, takes those that came before a yes.
        """
        if self.positions is None:
            return self
        known = np.isin(self.positions, self.positions[self.kinds == TRUE])
        return self.at(np.flatnonzero(~known | (self.kinds == TRUE)))

    @property
    def complementary(self) -> NDArray[np.int64]:
        """(L,) the class that each image is not, or -1."""
        return np.where(self.kinds == COMPLEMENTARY, self.classes, NO_LABEL)

    @property
    def true(self) -> NDArray[np.int64]:
        """(L,) the class that each image is, or -1."""
        return np.where(self.kinds == TRUE, self.classes, NO_LABEL)

    @property
    def class_names(self) -> list[str] | None:
        """K names, where all classes have one."""
        if len(self.named) < self.num_classes:
            return None
        return [self.named[number] for number in range(self.num_classes)]

    def counts(self, kind: int) -> list[int]:
        """How many labels of a kind there are by class."""
        counts: list[int] = np.bincount(self.classes[self.kinds == kind], minlength=self.num_classes).tolist()
        return counts
