"""Answers that nobody can have thought about. Pure.

Two clocks tell. The browser's says how long a picture was there before the answer; who writes a browser of
his own can make it say anything. The server's says how long ago it gave the questions out, or took the last
answer, and in that time a person looks at so many pictures and no more. It is read with patience, because
answers wait for each other on the way: only what came in less than half the shortest time is too fast by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

PATIENCE = 0.5  # of the shortest time, by the server's clock


@dataclass(frozen=True, slots=True)
class ShortestLook:
    """How long anybody looks at least, in ms; 0: nothing is too fast."""

    card: int
    page: int
    picture: int

    def each(self, pictures: int) -> float:
        """For each of so many pictures that are shown together."""
        return float(self.card) if pictures <= 1 else self.page / pictures + self.picture


def hasty(
    looks: Sequence[tuple[int | None, int]], shortest: ShortestLook, *, since: datetime | None, now: datetime
) -> list[bool]:
    """Which of the answers of one request are hasty.

    Args:
        looks: of each answer the time in ms that the browser tells (None: not known), and how many pictures
            were shown together.
        shortest: of the campaign.
        since: from when on they can have been looked at; None where that is not known.
        now: when they came.
    """
    least = [shortest.each(pictures) for _, pictures in looks]
    is_rushed = since is not None and 1000 * (now - since).total_seconds() < PATIENCE * sum(least)
    return [
        needed > 0 and (is_rushed or (told is not None and told < needed))
        for (told, _), needed in zip(looks, least, strict=True)
    ]
