"""Server-sent events of a run. No database connection is held between two looks."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from uuid import UUID

import anyio
import anyio.to_thread
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sse_starlette import ServerSentEvent

from app.runs import service
from app.runs.errors import RunNotFound, TooManyStreams

LOOK_S = 1.0
# A stream ends after this long and the browser opens the next one, which asks again who is there.
LONGEST_S = 900.0
THREADS = 4  # that look for all streams


class Streams:
    """How many streams this process serves, and the few threads that look for all of them."""

    def __init__(self, *, most: int = 200) -> None:
        self.most = most
        self.open = 0
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """Threads of our own, so that streams never take those that serve requests."""
        if self._limiter is None:  # needs a running event loop
            self._limiter = anyio.CapacityLimiter(THREADS)
        return self._limiter

    def check(self) -> None:
        """Raises TooManyStreams when no further one may be opened."""
        if self.open >= self.most:
            raise TooManyStreams

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a stream while it is open."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


async def follow(
    run_id: UUID, sessions: sessionmaker[Session], streams: Streams
) -> AsyncIterator[ServerSentEvent]:
    """An "update" event with what `pulse` tells whenever it changes, and "end" when nothing more will."""

    def look() -> tuple[str, bool]:
        with sessions.begin() as session:
            pulse, over = service.pulse(session, run_id)
        return json.dumps(pulse), over

    with streams.one():
        known, started = "", time.monotonic()
        while time.monotonic() - started < LONGEST_S:
            try:
                pulse, over = await anyio.to_thread.run_sync(look, limiter=streams.limiter)
            except RunNotFound:
                return
            except OperationalError:
                pulse, over = known, False  # the database is away; the next look will tell
            if pulse != known:
                known = pulse
                yield ServerSentEvent(pulse, event="update")
            if over:
                yield ServerSentEvent(pulse, event="end")
                return
            await anyio.sleep(LOOK_S)
