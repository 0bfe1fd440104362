"""What many people write at once is one transaction on SQLite, and nobody pays for another's mistake."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.db import Base, Database, connect
from app.errors import Conflict
from app.fast.writing import PLACES, SHARED, Work, Writer
from app.gate import Busy
from app.jobs import Job, enqueue
from app.languages import current_language, speaking
from tests.factories import make_user

pytestmark = pytest.mark.dialects


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An SQLite database whose transactions really commit, and take in more however slow this machine is."""
    monkeypatch.setattr("app.fast.writing.HOLD_S", 60.0)
    database = connect(f"sqlite:///{tmp_path / 'writes.db'}")
    Base.metadata.create_all(database.engine)
    yield database
    database.dispose()


def named(name: str) -> Work:
    """Adds somebody, asks for a job, and gives the name."""

    def work(session: Session) -> str:
        make_user(session).name = name
        enqueue(session, "job", name)
        return name

    return work


def at_once(writer: Writer, works: list[Work]) -> list[Any]:
    """What each gave or raised."""

    async def main() -> list[Any]:
        return await asyncio.gather(*map(writer.run, works), return_exceptions=True)

    return asyncio.run(main())


def names(database: Database) -> set[str]:
    """Of everybody who is stored."""
    with database.read.begin() as session:
        return set(session.scalars(select(User.name)))


def commits_of(database: Database) -> list[int]:
    """Grows with each commit of the writing connection."""
    seen: list[int] = []
    event.listen(database.engine, "commit", lambda _: seen.append(1))
    return seen


def raising(error: Exception, before: Callable[[Session], Any]) -> Work:
    """Writes something, and then fails."""

    def work(session: Session) -> None:
        before(session)
        session.flush()
        raise error

    return work


def test_what_arrives_meanwhile_is_one_transaction(committed: Database) -> None:
    jobs: list[Job] = []
    seen = commits_of(committed)
    everybody = [f"P {number}" for number in range(2 * SHARED)]

    given = at_once(Writer(committed, jobs.append), [named(name) for name in everybody])

    assert given == everybody
    assert names(committed) == set(everybody)
    assert sorted(job.args[0] for job in jobs) == sorted(everybody)
    assert len(seen) == 2


def test_a_refused_one_undoes_nothing_of_the_others(committed: Database) -> None:
    jobs: list[Job] = []
    seen = commits_of(committed)
    refused = raising(Conflict("no"), named("refused"))

    given = at_once(Writer(committed, jobs.append), [named("a"), named("b"), refused, named("c")])

    assert [str(item) for item in given] == ["a", "b", "no", "c"]
    assert names(committed) == {"a", "b", "c"}
    assert sorted(job.args[0] for job in jobs) == ["a", "b", "c"]
    assert len(seen) == 1


def test_after_an_unexpected_error_each_is_tried_alone(committed: Database) -> None:
    jobs: list[Job] = []
    broken = raising(RuntimeError("our mistake"), named("broken"))

    given = at_once(Writer(committed, jobs.append), [named("a"), named("b"), broken, named("c")])

    assert [str(item) for item in given] == ["a", "b", "our mistake", "c"]
    assert names(committed) == {"a", "b", "c"}
    assert sorted(job.args[0] for job in jobs) == ["a", "b", "c"]


def test_nobody_is_told_yes_when_the_commit_fails(committed: Database) -> None:
    tries = []

    def fail(_: object) -> None:
        tries.append(1)
        raise IntegrityError("COMMIT", None, Exception("the disk is full"))

    event.listen(committed.engine, "commit", fail)
    given = at_once(Writer(committed, lambda _: None), [named("a"), named("b"), named("c")])
    event.remove(committed.engine, "commit", fail)

    assert [type(item) for item in given] == [IntegrityError] * 3
    assert names(committed) == set()
    assert len(tries) == 1, "each alone would wait as long again"


def test_a_transaction_that_takes_long_takes_in_no_more(
    committed: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.fast.writing.HOLD_S", 0.0)
    seen = commits_of(committed)

    given = at_once(Writer(committed, lambda _: None), [named(name) for name in "abcd"])

    assert given == list("abcd")
    assert names(committed) == set("abcd")
    assert len(seen) == 4


def test_a_job_that_cannot_be_sent_makes_nothing_happen_twice(committed: Database) -> None:
    def publish(_: Job) -> None:
        raise RuntimeError("the broker is away")

    given = at_once(Writer(committed, publish), [named("a"), named("b")])

    assert [str(item) for item in given] == ["the broker is away"] * 2
    with committed.read.begin() as session:
        assert sorted(session.scalars(select(User.name))) == ["a", "b"]


def test_another_process_gets_its_turn_while_works_keep_arriving(
    committed: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.fast.writing.BUSY_S", 0.0)
    monkeypatch.setattr("app.fast.writing.FREE_S", 0.15)  # longer than it may sleep before it looks again
    stranger = sqlite3.connect(
        str(committed.engine.url.database), timeout=30, isolation_level=None, check_same_thread=False
    )
    order: list[str] = []
    has_begun = Event()

    def work(session: Session) -> None:
        make_user(session)
        order.append("ours")
        has_begun.set()
        sleep(0.01)

    def write_from_outside() -> None:
        has_begun.wait()
        stranger.execute("BEGIN IMMEDIATE")
        order.append("stranger")
        stranger.execute("COMMIT")

    async def main() -> None:
        writer = Writer(committed, lambda _: None)
        works = [writer.run(work) for _ in range(4 * SHARED)]
        await asyncio.gather(*works, asyncio.to_thread(write_from_outside))

    asyncio.run(main())
    stranger.close()

    assert order.count("ours") == 4 * SHARED
    assert order.index("stranger") <= 2 * SHARED


def test_each_speaks_its_own_language(committed: Database) -> None:
    writer = Writer(committed, lambda _: None)

    async def ask(language: str) -> str:
        with speaking(language):
            return await writer.run(lambda _: current_language())

    async def main() -> list[str]:
        return await asyncio.gather(*(ask(language) for language in ("en", "de", "es", "de")))

    assert asyncio.run(main()) == ["en", "de", "es", "de"]


class TestLine:
    def test_is_full_where_the_last_would_wait_too_long(
        self, committed: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.writing.LONGEST_WAIT_S", 0.05)
        writer = Writer(committed, lambda _: None)
        seen: list[bool] = []

        async def main() -> None:
            seen.append(writer.is_full())
            works = [asyncio.create_task(writer.run(lambda _: sleep(0.01))) for _ in range(4 * SHARED)]
            await works[SHARED]
            seen.append(writer.is_full())  # 47 of them have yet to wait, for ten milliseconds each
            await asyncio.gather(*works)
            seen.append(writer.is_full())

        asyncio.run(main())
        assert seen == [False, True, False]

    def test_is_full_while_nobody_is_served(
        self, committed: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.writing.STANDSTILL_S", 0.05)
        monkeypatch.setattr("app.fast.writing.LONGEST_WAIT_S", 60)
        writer, goes_on = Writer(committed, lambda _: None), Event()

        async def full_after(waiting: int) -> bool:
            goes_on.clear()
            works = [asyncio.create_task(writer.run(lambda _: goes_on.wait())) for _ in range(waiting)]
            await asyncio.sleep(0.2)
            full = writer.is_full()
            goes_on.set()
            await asyncio.gather(*works)
            return full

        assert not asyncio.run(full_after(3))  # who are few may wait
        assert asyncio.run(full_after(3 * SHARED))

    def test_who_gave_up_says_nothing_of_the_pace(
        self, committed: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.writing.PATIENCE_S", 0.1)
        monkeypatch.setattr("app.fast.writing.STANDSTILL_S", 0.2)
        writer, goes_on = Writer(committed, lambda _: None), Event()
        seen: list[bool] = []

        async def main() -> list[Any]:
            works = [asyncio.create_task(writer.run(lambda _: goes_on.wait(300))) for _ in range(4 * SHARED)]
            await asyncio.sleep(0.15)  # all but the first sixteen gave up by now
            late = [asyncio.create_task(writer.run(lambda _: None)) for _ in range(2 * SHARED)]
            await asyncio.sleep(0.07)
            seen.append(writer.is_full())
            goes_on.set()
            return await asyncio.gather(*works, *late, return_exceptions=True)

        given = asyncio.run(main())

        assert sum(isinstance(result, Busy) for result in given) >= 3 * SHARED
        assert seen == [True]

    def test_who_waited_in_vain_is_told_so_and_nothing_is_done_for_them(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.fast.writing.PATIENCE_S", 0.1)
        writer, goes_on = Writer(database, lambda _: None), Event()
        done: list[str] = []

        def slow(_: Session) -> None:
            goes_on.wait(300)
            done.append("slow")

        async def main() -> list[Any]:
            first = [asyncio.create_task(writer.run(slow)) for _ in range(PLACES)]
            await asyncio.sleep(0.05)  # on SQLite only one of them has begun
            last = asyncio.create_task(writer.run(lambda _: done.append("last")))
            await asyncio.sleep(0.3)
            goes_on.set()
            return await asyncio.gather(*first, last, return_exceptions=True)

        given = asyncio.run(main())
        writer.close()

        assert isinstance(given[-1], Busy)
        served = [result for result in given if not isinstance(result, Busy)]
        assert served
        assert done == ["slow"] * len(served)
