"""What a run does while it has no epoch to report, as it is told to people. Never imports torch."""

from collections.abc import Callable
from dataclasses import dataclass

from clarinet.recipes.choices import DoingKind

OnPart = Callable[[], None]
"""Called after each part of what takes long beside the steps, in the order and thread of the work."""

SENTENCES: dict[DoingKind, str] = {
    "features": "Computing the features of the images: {done} of {total}.",
    "fine-tuning": "Fine-tuning the network: {done} of {total} steps.",
}


def silently() -> None:
    """The `OnPart` of who tells nobody."""


@dataclass(frozen=True, slots=True)
class Doing:
    """How far a run is with something.

    Args:
        kind: what it does.
        done, total: images ("features") or steps ("fine-tuning"), done and in all.
    """

    kind: DoingKind
    done: int
    total: int

    def sentence(self, number: Callable[[int], str] = "{:,}".format) -> str:
        """It in English, with numbers as they are written where it is read."""
        return SENTENCES[self.kind].format(done=number(self.done), total=number(self.total))
