"""What every task works with: settings, database, storage and the way to ask for further jobs."""

import multiprocessing
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Self

from sqlalchemy.orm import Session

from app.database_clock import know_time
from app.db import Database, Publish, connect, unit_of_work
from app.jobs import publisher
from app.settings import Settings
from app.storage import Storage
from app.stores.chosen import storage_of
from worker.outages import PATIENCE_S


def never() -> bool:
    """The answer of a process that nobody has asked to stop."""
    return False


class Suspicion:
    """Whether this worker's last training failed by the machine's fault; shared with forked children."""

    def __init__(self) -> None:
        self._raised = multiprocessing.RawValue("b", 0)

    def __bool__(self) -> bool:
        """Whether it is raised."""
        return bool(self._raised.value)

    def set(self, raised: bool) -> None:
        """Raise or lower it."""
        self._raised.value = int(raised)


@dataclass(frozen=True, slots=True)
class Context:
    """The hands of a task. `is_stopping` says whether this worker was asked to shut down."""

    settings: Settings
    database: Database
    storage: Storage
    publish: Publish
    is_stopping: Callable[[], bool] = never
    suspicion: Suspicion = field(default_factory=Suspicion)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        is_stopping: Callable[[], bool] = never,
        suspicion: Suspicion | None = None,
    ) -> Self:
        """Connect to everything that the settings name."""
        return cls(
            settings=settings,
            database=connect(settings.sqlalchemy_url),
            storage=storage_of(settings),  # under a lease of seconds nobody waits long
            publish=publisher(settings),
            is_stopping=is_stopping,
            suspicion=Suspicion() if suspicion is None else suspicion,
        )

    @property
    def patient(self) -> Storage:
        """The same storage, waited for as long as a training waits: only where a claim is held meanwhile."""
        return self.storage.patiently(PATIENCE_S)

    def unit_of_work(self) -> AbstractContextManager[Session]:
        """One writing transaction; its jobs are published after the commit."""
        return unit_of_work(self.database.write, self.publish)

    def reading(self) -> AbstractContextManager[Session]:
        """One transaction that only looks."""
        know_time(self.database.engine)
        return self.database.read.begin()


class ProcessContext:
    """The context of this process, built when it is first asked for.

    Celery forks its pool; a database connection that crossed a fork would be used by two processes at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._made: tuple[int, Context] | None = None
        # Shared with forked children without a lock, so that a signal handler may set it at any moment.
        self._stopping = multiprocessing.RawValue("b", 0)
        self._suspicion = Suspicion()

    def __call__(self) -> Context:
        """The context of the calling process."""
        if self._made is None or self._made[0] != os.getpid():
            made = Context.of(self.settings, is_stopping=self.is_stopping, suspicion=self._suspicion)
            self._made = os.getpid(), made
        return self._made[1]

    def stop(self) -> None:
        """Ask every task of this worker, forked children included, to hand its work back."""
        self._stopping.value = 1

    def is_stopping(self) -> bool:
        """Whether `stop` was called here or in the parent."""
        return bool(self._stopping.value)
