"""The time that one person's looks have used up, over all campaigns: nobody looks at two at once. Pure.

Kept are its spans, in order and apart, and not only the last one's end: answers of one campaign may wait for
the network while those of another arrive, and are to find the time in which they were given.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

KEPT = timedelta(days=1)  # and nobody's look begins before
MOST = 12  # spans: they are read with each answer; beyond, those that lie closest become one
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Span = tuple[datetime, datetime]


def read_spans(text: str | None) -> list[Span]:
    """As `written` wrote them; none of None."""
    pairs = (pair.split("-") for pair in text.split(",")) if text else ()
    return [(_EPOCH + int(begin) * _MS, _EPOCH + int(end) * _MS) for begin, end in pairs]


def written(spans: Sequence[Span]) -> str:
    """Their ends in ms since 1970."""
    return ",".join(f"{(begin - _EPOCH) // _MS}-{(end - _EPOCH) // _MS}" for begin, end in spans)


def free_ms(spans: Sequence[Span], start: datetime, now: datetime) -> float:
    """How much time between is not used up."""
    used = (max(timedelta(0), min(end, now) - max(begin, start)) for begin, end in spans)
    return max(0.0, (now - start - sum(used, timedelta(0))) / _MS)


def after_using(spans: Sequence[Span], start: datetime, ms: float) -> datetime:
    """When a look of this length is over that uses what is free from `start` on."""
    at, left = start, ms * _MS
    for begin, end in spans:
        if end <= at:
            continue
        gap = max(timedelta(0), begin - at)
        if gap >= left:
            break
        at, left = end, left - gap
    return at + left


def with_used(spans: Sequence[Span], more: Iterable[Span], now: datetime) -> list[Span]:
    """The spans with further ones, without what is long over."""
    found: list[Span] = []
    for begin, end in sorted([*spans, *more]):
        if end < now - KEPT:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    while len(found) > MOST:
        place = min(range(1, len(found)), key=lambda number: found[number][0] - found[number - 1][1])
        found[place - 1 : place + 1] = [(found[place - 1][0], found[place][1])]
    return found
