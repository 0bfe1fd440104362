"""Which images of the target score a run, as it is told to people. Never imports torch."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from clarinet.recipes.binomial import clopper_pearson

MOST_PER_EPOCH = 2000  # images that score before the last epoch of a step, which scores all


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredOn:
    """The images that score: those with a true class that is told apart.

    Args:
        split: test images where one of them scores, else the images that the target trains on. Training saw
            those without their classes.
        images: how many score; 0 where the accuracy on the target stays unmeasured.
        of: how many images the split has.
    """

    split: Literal["test", "train"]
    images: int
    of: int

    def in_words(self, number: Callable[[int], str] = "{:,}".format) -> str:
        """Behind "on": "10,000 test images"; with numbers as they are written where it is read."""
        if self.split == "test":
            if self.images == self.of:
                return f"{number(self.of)} test images"
            return f"{number(self.images)} of {number(self.of)} test images, {_THOSE_KNOWN}"
        unseen = "training saw the images without classes"
        if self.images == self.of:
            return f"its {number(self.of)} training images, whose classes are known; {unseen}"
        return f"{number(self.images)} of its {number(self.of)} training images, {_THOSE_KNOWN}; {unseen}"

    def interval(self, accuracy: float, *, most: int | None = None) -> tuple[float, float]:
        """The ends of the 95 % sampling interval of an accuracy on these images, in [0, 1].

        For the mean over several seeds it is too wide, never too narrow: their hits on an image are averaged.

        Args:
            accuracy: on the images, of which there is one or more.
            most: how many of them were looked at; None: all.
        """
        count = self.images if most is None else min(self.images, most)
        return clopper_pearson(accuracy * count, count)

    def interval_in_words(self, accuracy: float) -> str:
        """The interval for a line of text."""
        low, high = self.interval(accuracy)
        return f"{100 * low:.1f} to {100 * high:.1f} %"

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        return cls(**values)


_THOSE_KNOWN = "those of a known class that is one of these"
