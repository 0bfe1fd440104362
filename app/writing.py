"""Many people's writes: each in a transaction of its own, or several in one where only one can write."""

from asyncio import Future, Task, create_task, get_running_loop, sleep
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import structlog
from anyio import Semaphore
from sqlalchemy.orm import Session, sessionmaker

from app.db import Database, Publish, unit_of_work
from app.errors import AppError
from app.hardening import ANSWERING_PLACES
from app.jobs import Job

Result = TypeVar("Result")
Work = Callable[[Session], Any]

TOGETHER = 16  # works in one transaction at most
HOLD_S = 0.05  # after which a transaction takes in no further work
# Who writes from another process looks for a free database ten times a second, so now and then it is free.
BUSY_S, FREE_S = 0.2, 0.01

log = structlog.get_logger()


class _Unexpected(Exception):
    """A work raised what is no refusal; the cause says what."""


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
        # How many works to let in at once: one transaction of them under way and the next one full.
        self.places = 2 * TOGETHER if self._is_shared else ANSWERING_PLACES
        # Threads of our own: the way to the framework's takes twice as long.
        self._pool = ThreadPoolExecutor(1 if self._is_shared else ANSWERING_PLACES, "answering")
        # For those of them that are served the framework's way, in its threads.
        self.threads = Semaphore(ANSWERING_PLACES)
        self._waiting: list[tuple[Work, Future[Any]]] = []
        self._task: Task[None] | None = None

    def close(self) -> None:
        """Wait for what its threads are at; nothing more can be run."""
        self._pool.shutdown()

    async def run(self, work: Callable[[Session], Result]) -> Result:
        """Run it in a transaction; raises what it raises."""
        if not self._is_shared:
            return await self._in_thread(partial(copy_context().run, self._alone, work))
        future: Future[Result] = get_running_loop().create_future()
        context = copy_context()  # whose language and request id its own thread would have had
        self._waiting.append((lambda session: context.run(work, session), future))
        if self._task is None:
            self._task = create_task(self._work_off())
        return await future

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await get_running_loop().run_in_executor(self._pool, work)

    async def _work_off(self) -> None:
        busy_since = monotonic()
        try:
            while self._waiting:
                now, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                results: list[Any] = []
                try:
                    results = await self._in_thread(partial(self._together, [work for work, _ in now]))
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

    def _together(self, works: Sequence[Work]) -> list[Any]:
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
