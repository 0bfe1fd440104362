"""Many people's writes: each in a transaction of its own, or several in one where only one can write."""

from asyncio import Future, Task, create_task, get_running_loop
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.orm import Session, sessionmaker
from starlette.concurrency import run_in_threadpool

from app.db import Database, Publish, unit_of_work
from app.errors import AppError
from app.hardening import ANSWERING_PLACES
from app.jobs import Job

Result = TypeVar("Result")
Work = Callable[[Session], Any]

TOGETHER = 16  # works in one transaction at most; nobody else writes for about as many milliseconds


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
        self._waiting: list[tuple[Work, Future[Any]]] = []
        self._task: Task[None] | None = None

    async def run(self, work: Callable[[Session], Result]) -> Result:
        """Run it in a transaction; raises what it raises."""
        if not self._is_shared:
            return await run_in_threadpool(self._alone, work)
        future: Future[Result] = get_running_loop().create_future()
        context = copy_context()  # whose language and request id its own thread would have had
        self._waiting.append((lambda session: context.run(work, session), future))
        if self._task is None:
            self._task = create_task(self._work_off())
        return await future

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                now, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                results = await run_in_threadpool(self._together, [work for work, _ in now])
                for (_, future), result in zip(now, results, strict=True):
                    if future.cancelled():
                        continue
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
        finally:
            self._task = None

    def _together(self, works: Sequence[Work]) -> list[Any]:
        """What each gave or raised."""
        if len(works) > 1:
            # Of one of them: then each is tried alone, which tells whose it was.
            with suppress(Exception):
                return self._in_one_transaction(works)
        return [_result(partial(self._alone, work)) for work in works]

    def _in_one_transaction(self, works: Sequence[Work]) -> list[Any]:
        jobs: list[Job] = []
        with self._database.write.begin() as session:
            connection = session.connection()
            savepoints = sessionmaker(
                connection, expire_on_commit=False, join_transaction_mode="create_savepoint"
            )
            results = []
            for work in works:
                try:
                    with unit_of_work(savepoints, jobs.append) as own:
                        results.append(work(own))
                except AppError as error:
                    results.append(error)
        for job in jobs:
            self._publish(job)
        return results

    def _alone(self, work: Callable[[Session], Result]) -> Result:
        with unit_of_work(self._database.write, self._publish) as session:
            return work(session)


def _result(work: Callable[[], Result]) -> Result | Exception:
    try:
        return work()
    except Exception as error:  # raised again where it was asked for
        return error
