"""Many people's writes: each in a transaction of its own, or several in one where only one can write."""

from asyncio import (
    CancelledError,
    Future,
    Task,
    create_task,
    current_task,
    get_running_loop,
    sleep,
    wrap_future,
)
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import structlog
from sqlalchemy.orm import Session, sessionmaker

from app.db import Database, Publish, unit_of_work
from app.errors import AppError
from app.gate import PATIENCE_S, Busy
from app.jobs import Job

Result = TypeVar("Result")
Work = Callable[[Session], Any]

# Threads of one interpreter take turns, and each turn costs: eight or ten answer no more people a second than
# six do.
PLACES = 6
SHARED = 16  # works in one transaction at most
SHORT = 2 * SHARED  # so many may always wait: one transaction of them under way and the next one full
OF_LATE = 32  # works whose pace tells how long others will wait
FIRST_PACE_S = 0.005  # in a process that has yet to see
LONGEST_WAIT_S = 0.15  # who would wait longer is told to come again at once
STANDSTILL_S = 1.0  # or where nobody was served for so long
HOLD_S = 0.05  # after which a transaction takes in no further work
# Who writes from another process looks for a free database ten times a second, so now and then it is free.
BUSY_S, FREE_S = 0.2, 0.01

log = structlog.get_logger()


class _Unexpected(Exception):
    """A work raised what is no refusal; the cause says what."""


class _Line:
    """How long the last of those who wait will wait: by how many they are, at the pace of late."""

    def __init__(self) -> None:
        self._length = 0
        self._pace_s = FIRST_PACE_S  # from the end of one to the end of the next
        self._since = 0.0  # when the last one ended, or the first came

    def is_full(self) -> bool:
        if self._length < SHORT:
            return False
        stands_still_s = monotonic() - self._since
        return self._length * self._pace_s > LONGEST_WAIT_S or stands_still_s > STANDSTILL_S

    @contextmanager
    def joined(self) -> Iterator[None]:
        if not self._length:
            self._since = monotonic()
        self._length += 1
        try:
            yield
        except (Busy, CancelledError):  # was not served, which says nothing of the pace
            raise
        except Exception:
            self._note_served()
            raise
        else:
            self._note_served()
        finally:
            self._length -= 1

    def _note_served(self) -> None:
        now = monotonic()
        # One that waits for something of its own says little of what the others will take.
        took_s = min(now - self._since, LONGEST_WAIT_S)
        self._pace_s += (took_s - self._pace_s) / OF_LATE
        self._since = now


class Writer:
    """Runs what changes something, in a thread, and gives its result once that is committed.

    On SQLite a commit waits for the disk, which takes longer than most work, and nobody else writes
    meanwhile. So what arrives during one transaction shares the next one, each work in a savepoint: an error
    that the user made undoes nothing of the others.
    """

    def __init__(self, database: Database, publish: Publish) -> None:
        self._database = database
        self._publish = publish
        self._is_shared = database.engine.dialect.name == "sqlite"
        # Threads of our own: the way to the framework's takes twice as long, and slow pages and downloads
        # keep no annotator waiting.
        self._pool = ThreadPoolExecutor(1 if self._is_shared else PLACES, "answering")
        self._line = _Line()
        self._waiting: list[tuple[Work, Future[Any]]] = []
        self._task: Task[None] | None = None

    def close(self) -> None:
        """Wait for what its threads are at; nothing more can be run."""
        self._pool.shutdown()

    def is_full(self) -> bool:
        """Whether a further work would wait too long."""
        return self._line.is_full()

    async def run(self, work: Callable[[Session], Result]) -> Result:
        """Run it in a transaction; raises what it raises.

        Raises:
            Busy: it was not even begun for a long while, and will not be. (On SQLite: not taken into a
                transaction, which may then still wait for the database.)
        """
        context = copy_context()  # whose language and request id its own thread would have had
        with self._line.joined():
            if self._is_shared:
                return await self._with_others(lambda session: context.run(work, session))
            return await self._in_thread(partial(context.run, self._alone, work))

    async def _with_others(self, work: Callable[[Session], Result]) -> Result:
        loop = get_running_loop()
        future: Future[Result] = loop.create_future()
        place = (work, future)
        self._waiting.append(place)

        def give_up() -> None:
            if place in self._waiting:
                self._waiting.remove(place)
                if not future.done():
                    future.set_exception(Busy())

        if self._task is None:
            self._task = create_task(self._work_off())
        patience = loop.call_later(PATIENCE_S, give_up)
        try:
            return await future
        finally:
            patience.cancel()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        running = self._pool.submit(work)
        patience = get_running_loop().call_later(PATIENCE_S, running.cancel)  # unless it has begun
        try:
            return await wrap_future(running)
        except CancelledError:
            task = current_task()
            if task and task.cancelling():
                raise
            raise Busy from None
        finally:
            patience.cancel()

    async def _work_off(self) -> None:
        busy_since = monotonic()
        try:
            while self._waiting:
                now, self._waiting = self._waiting[:SHARED], self._waiting[SHARED:]
                results: list[Any] = []
                try:
                    results = await self._in_thread(partial(self._all, [work for work, _ in now]))
                except Exception as error:
                    # No thread could be had, or something worse: nobody may wait for ever.
                    log.exception("writing.failed")
                    results = [error] * len(now)
                self._waiting[:0] = now[len(results) :]  # for which there was no time
                for (_, future), result in zip(now, results, strict=False):
                    if future.cancelled():
                        continue
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
                if monotonic() - busy_since > BUSY_S:
                    await sleep(FREE_S)
                    busy_since = monotonic()
        finally:
            self._task = None

    def _all(self, works: Sequence[Work]) -> list[Any]:
        """What each of the first works gave or raised; at least one, and as many as there is time for."""
        if len(works) == 1:
            return [_result(partial(self._alone, works[0]))]
        jobs: list[Job] = []
        try:
            results = self._in_one_transaction(works, jobs)
        except _Unexpected as error:
            # Each alone, which tells whose it was.
            log.warning("writing.tried_alone", works=len(works), exc_info=error.__cause__)
            return [_result(partial(self._alone, work)) for work in works]
        except Exception as error:
            # The database could not be had or did not commit, and would make each of them wait as long again.
            return [error] * len(works)
        for job in jobs:
            self._publish(job)
        return results

    def _in_one_transaction(self, works: Sequence[Work], jobs: list[Job]) -> list[Any]:
        results: list[Any] = []
        with self._database.write.begin() as session:
            connection = session.connection()
            begun = monotonic()
            savepoints = sessionmaker(
                connection, expire_on_commit=False, join_transaction_mode="create_savepoint"
            )
            for work in works:
                try:
                    with unit_of_work(savepoints, jobs.append) as own:
                        results.append(work(own))
                except AppError as error:
                    results.append(error)
                except Exception as error:
                    raise _Unexpected from error
                if monotonic() - begun > HOLD_S:
                    break
        return results

    def _alone(self, work: Callable[[Session], Result]) -> Result:
        with unit_of_work(self._database.write, self._publish) as session:
            return work(session)


def _result(work: Callable[[], Result]) -> Result | Exception:
    try:
        return work()
    except Exception as error:  # raised again where it was asked for
        return error
