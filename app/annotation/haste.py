"""How long people looked, as far as the server's clock bears it out, and answers without a look. Pure.

The browser tells how long a picture was there before the answer; who writes a browser of his own can make it
tell anything. The server knows since when each question was held, and until when the person's answers so far
have used up the time since. A look lies between that and the answer's arrival, and one person's looks lie one
after the other, in all campaigns together: what they tell beyond that is cut off. An answer is hasty where
what is left is shorter than anybody looks.

Who tells the truth is never cut, however long answers waited for the network: their looks did lie one after
the other, so that the time used up never lies after the end of the last one. Answers of one campaign may come
after those of another that were given later: they find the time that these left (`used_time`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.annotation.used_time import KEPT, Span, after_using, free_ms

PATIENCE = 0.5  # of the shortest time that its answers take: a request that came sooner is hasty as a whole


@dataclass(frozen=True, slots=True)
class ShortestLook:
    """How long anybody looks at least, in ms; 0: nothing is too fast, and what browsers tell is believed."""

    card: int
    page: int
    picture: int

    def each(self, pictures: int) -> float:
        """For each of so many pictures that are shown together."""
        return float(self.card) if pictures <= 1 else self.page / pictures + self.picture


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the look before an answer."""

    ms: int | None  # by the browser; None: not known
    pictures: int  # that were shown together
    since: datetime | None  # when the question was handed out; None: not known


@dataclass(frozen=True, slots=True)
class Look:
    """What is believed of it."""

    ms: int | None
    is_hasty: bool


class Looks(NamedTuple):
    """What is believed of the looks before the answers of one request, and the time that they used up."""

    found: list[Look]
    until: datetime | None  # of the campaign
    spans: list[Span]  # may be longer than what was told, where they enclose time that was used up before


def looks(
    told: Sequence[Told],
    shortest: ShortestLook,
    *,
    until: datetime | None,
    now: datetime,
    used: Sequence[Span] = (),
) -> Looks:
    """What is believed of the looks before the answers of one request.

    Args:
        told: of each answer, in the order in which they were given.
        shortest: of the campaign.
        until: when this person's answers to the campaign so far used up the time; None: not known.
        now: when these came.
        used: time that this person's answers used up, to whichever campaign.
    """
    least = [shortest.each(one.pictures) for one in told]
    earliest = now - KEPT
    begin = min((max(one.since, earliest) for one in told if one.since is not None), default=None)
    is_rushed = _ms_since(_later(begin, until), now, used) < PATIENCE * sum(least)
    found, spans = [], []
    for one, needed in zip(told, least, strict=True):
        if needed <= 0:
            found.append(Look(one.ms, is_hasty=False))
            continue
        start = _later(one.since and max(one.since, earliest), until)
        there_was = _ms_since(start, now, used)
        is_short = there_was < needed or (one.ms is not None and one.ms < needed)
        ms = None if one.ms is None else int(min(one.ms, there_was))
        found.append(Look(ms, is_hasty=is_rushed or is_short))
        if start is not None:
            until = after_using(used, start, min(needed if one.ms is None else one.ms, there_was))
            spans.append((start, until))
    return Looks(found, until, spans)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(filter(None, (one, other)), default=None)


def _ms_since(start: datetime | None, now: datetime, used: Sequence[Span]) -> float:
    return float("inf") if start is None else free_ms(used, start, now)
