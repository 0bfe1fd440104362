"""The page of a run for all who have it open: looked at and rendered once a second for everybody together."""

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread
from sqlalchemy.exc import OperationalError
from sse_starlette import ServerSentEvent

from app.runs.errors import RunNotFound
from app.runs.events import LONGEST_S, LOOK_S, Streams

# What no row tells, such as the time left and for how long workers are silent, is told this often.
AGAIN_S = 10.0
FRESH_S = 0.9 * LOOK_S  # for so long what one has seen is new enough for the others


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page showed at one look.

    Args:
        version: rises with each change; 0: nothing was seen yet.
        whole: all pieces, as JSON; a page that does not know the version before needs them.
        changes: the same with null for each piece that is as it was.
        over: nothing more will happen.
    """

    version: int
    whole: str
    changes: str
    over: bool

    def since(self, version: int) -> str:
        """What a page must be told that knows `version`."""
        return self.changes if version == self.version - 1 else self.whole


class Page:
    """One part of a run's page. Whoever comes first in a second looks; the others get what was seen.

    Args:
        name: by which browsers tell it from others.
        look: gives what tells whether the page has changed, and whether the run is over.
        render: gives the page's pieces.
    """

    def __init__(
        self, name: str, look: Callable[[], tuple[object, bool]], render: Callable[[], tuple[str, ...]]
    ) -> None:
        self.name = name
        self._look = look
        self._render = render
        self._lock = anyio.Lock()
        self._looked = self._rendered = 0.0
        self._known: object = None
        self._pieces: tuple[str, ...] = ()
        self._seen = Seen(0, "", "", over=False)

    async def look(self, limiter: anyio.CapacityLimiter) -> Seen:
        """What the page shows now; raises RunNotFound."""
        async with self._lock:
            if time.monotonic() - self._looked >= FRESH_S:
                self._seen = await anyio.to_thread.run_sync(self._again, limiter=limiter)
                self._looked = time.monotonic()
        return self._seen

    def _again(self) -> Seen:
        known, over = self._look()
        if known == self._known and time.monotonic() - self._rendered < AGAIN_S:
            return self._seen
        pieces = self._render()
        self._known, self._rendered = known, time.monotonic()
        if pieces == self._pieces:
            return self._seen
        changed: Sequence[str | None] = pieces
        if len(pieces) == len(self._pieces):
            pairs = zip(pieces, self._pieces, strict=True)
            changed = [None if piece == before else piece for piece, before in pairs]
        self._pieces = pieces
        return Seen(self._seen.version + 1, self._told(pieces), self._told(changed), over)

    def _told(self, pieces: Sequence[str | None]) -> str:
        return json.dumps({"run": self.name, "pieces": pieces}, ensure_ascii=False)


async def follow_all(pages: Sequence[Page], streams: Streams) -> AsyncIterator[ServerSentEvent]:
    """A "pieces" event whenever one of the pages changes, an "end" for each that will not change any more."""
    with streams.one():
        known = dict.fromkeys(pages, 0)
        started = time.monotonic()
        while known and time.monotonic() - started < LONGEST_S:
            for page, version in list(known.items()):
                try:
                    seen = await page.look(streams.limiter)
                except RunNotFound:
                    seen = Seen(version, "", "", over=True)
                except OperationalError:
                    continue  # the database is away; the next look will tell
                if seen.version != version:
                    known[page] = seen.version
                    yield ServerSentEvent(seen.since(version), event="pieces")
                if seen.over:
                    del known[page]
                    yield ServerSentEvent(json.dumps({"run": page.name}), event="end")
            await anyio.sleep(LOOK_S)
