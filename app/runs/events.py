"""Server-sent events of a run, for programs. No database connection is held between two looks.

What pages show comes by following.py.
"""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sse_starlette import ServerSentEvent

from app.runs.errors import BadSince, RunNotFound, TooManyStreams
from app.runs.pulse import metrics_after, pulse_of
from app.runs.schemas import MetricRead

if TYPE_CHECKING:
    from app.runs.following import Page

LOOK_S = 1.0
# A stream ends after this long and the browser opens the next one, which asks again who is there.
LONGEST_S = 900.0
THREADS = 4  # that look for all streams
EPOCH_DIGITS = 9  # of a number that the column holds


class Streams:
    """How many streams this process serves, and the few threads that look for all of them."""

    def __init__(self, *, most: int = 200) -> None:
        self.most = most
        self.open = 0
        # By run and by how browsers call this server; kept by those who follow them.
        self.pages: WeakValueDictionary[str, Page] = WeakValueDictionary()
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


def read_place(since: str, seeds: int) -> tuple[int, ...]:
    """The epochs by seed that an event's id says are known; raises BadSince."""
    parts = since.split("-")
    if len(parts) != seeds or not all(map(_is_epoch, parts)):
        raise BadSince(since, seeds)
    return tuple(map(int, parts))


def _is_epoch(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= EPOCH_DIGITS


async def follow(
    run_id: UUID, sessions: sessionmaker[Session], streams: Streams, known: tuple[int, ...] | None = None
) -> AsyncIterator[ServerSentEvent]:
    """An "epoch" event for each that ends, "update" when what `pulse` tells changes, and "end".

    An event's id says up to which epoch of each seed the events were, those of all earlier ones included.

    Args:
        known: epochs by seed that the follower has; None: those that have ended by now.
    """

    def look(known: tuple[int, ...] | None) -> tuple[str, bool, tuple[int, ...], list[MetricRead]]:
        with sessions.begin() as session:
            pulse, over = pulse_of(session, run_id)
            reached = tuple(trial["epoch"] for trial in pulse["trials"])
            ended = []
            if known is not None and reached != known:
                run, metrics = metrics_after(session, run_id, known, upto=reached)
                trials = {trial.id: trial for trial in run.trials}
                ended = [MetricRead.of(run, trials[metric.trial_id], metric) for metric in metrics]
        return json.dumps(pulse), over, reached, ended

    with streams.one():
        told, started = "", time.monotonic()
        while time.monotonic() - started < LONGEST_S:
            try:
                looked = await anyio.to_thread.run_sync(look, known, limiter=streams.limiter)
            except RunNotFound:
                return
            except OperationalError:  # the database is away; the next look will tell
                await anyio.sleep(LOOK_S)
                continue
            pulse, over, known, ended = looked
            place = "-".join(map(str, known))
            # Only the last of them has an id: who is cut off between two gets both again.
            for epoch in ended:
                yield ServerSentEvent(
                    epoch.model_dump_json(), event="epoch", id=place if epoch is ended[-1] else None
                )
            if pulse != told:
                told = pulse
                yield ServerSentEvent(pulse, event="update", id=place)
            if over:
                yield ServerSentEvent(pulse, event="end", id=place)
                return
            await anyio.sleep(LOOK_S)
