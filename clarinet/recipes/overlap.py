"""How many of a target's images are the source's, and when a run has nothing to adapt to for it."""

from dataclasses import dataclass
from typing import Final

MOST_SHARED: Final = 0.5  # a few images in both, as of two draws from one archive, do no harm


@dataclass(frozen=True, slots=True)
class Overlap:
    """What source and target have in common.

    Args:
        shared: images for training of the target that the source trains on, too.
        images: that the target has for training.
    """

    shared: int
    images: int

    @property
    def is_too_large(self) -> bool:
        """Whether the target is rather the source than another domain."""
        return self.shared > MOST_SHARED * self.images

    @property
    def in_words(self) -> str:
        """How many, beside the rule; follows a colon."""
        return f"{self.shared:,} of its {self.images:,} for training, and at most half may be"
