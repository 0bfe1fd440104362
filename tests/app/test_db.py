"""The unit of work, and what each engine promises."""

import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import Role, User
from app.claims import LEASE
from app.db import Base, Database, connect, unit_of_work
from app.jobs import Job
from tests.factories import NOW, number

pytestmark = pytest.mark.dialects


def somebody(created_at: datetime = NOW) -> User:
    n = number()
    return User(email=f"db{n}@example.org", name="Somebody", role=Role.ANNOTATOR, created_at=created_at)


class TestUnitOfWork:
    def test_jobs_are_published_after_the_commit(self, database: Database) -> None:
        seen: list[tuple[Job, bool]] = []
        user = somebody()

        def publish(job: Job) -> None:
            with database.read() as reader:
                seen.append((job, reader.scalar(select(User.id).where(User.email == user.email)) is not None))

        with unit_of_work(database.write, publish) as session:
            session.add(user)
            jobs.enqueue(session, jobs.TRAIN_TRIAL, 7)
            assert seen == []

        assert seen == [(Job(jobs.TRAIN_TRIAL, ("7",)), True)]

    def test_a_failed_unit_publishes_and_stores_nothing(self, database: Database) -> None:
        seen: list[Job] = []
        user = somebody()

        def fail() -> None:
            with unit_of_work(database.write, seen.append) as session:
                session.add(user)
                jobs.enqueue(session, jobs.TRAIN_TRIAL, 7)
                raise RuntimeError("half way")

        with pytest.raises(RuntimeError, match="half way"):
            fail()

        assert seen == []
        with database.read() as reader:
            assert reader.scalar(select(User.id).where(User.email == user.email)) is None


class TestTimestamps:
    def test_come_back_in_utc(self, session: Session) -> None:
        elsewhere = datetime(2026, 11, 21, 14, 0, tzinfo=timezone(timedelta(hours=2)))
        user = somebody(elsewhere)
        session.add(user)
        session.flush()

        session.refresh(user)

        assert user.created_at == elsewhere
        assert user.created_at.tzinfo is UTC

    def test_without_a_zone_are_refused(self, session: Session) -> None:
        session.add(somebody(datetime(2026, 11, 21)))  # noqa: DTZ001  the very mistake under test

        with pytest.raises(StatementError, match="needs a zone"):
            session.flush()


class TestSqlite:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Database:
        database = connect(f"sqlite:///{tmp_path / 'new folder' / 'a.db'}")
        Base.metadata.create_all(database.engine)
        return database

    def test_settings_are_those_that_keep_answers(self, file: Database) -> None:
        with file.write.begin() as session:
            values = {
                name: session.scalar(text(f"PRAGMA {name}"))
                for name in ("journal_mode", "foreign_keys", "synchronous")
            }

        assert values == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2}
        file.dispose()

    def test_a_reader_is_not_held_up_by_the_writer(self, file: Database) -> None:
        with file.write.begin() as writer:
            writer.add(somebody())
            writer.flush()
            with file.read.begin() as reader:
                assert reader.scalars(select(User)).all() == []
        file.dispose()

    def test_many_writers_queue_instead_of_failing(self, file: Database) -> None:
        def write() -> None:
            for _ in range(20):
                with file.write.begin() as session:
                    session.scalars(select(User)).all()
                    session.add(somebody())

        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        with file.read.begin() as reader:
            assert len(reader.scalars(select(User)).all()) == 160
        file.dispose()


def test_an_error_of_the_driver_tells_no_values(database: Database) -> None:
    with pytest.raises(StatementError) as failed, database.write() as session:
        session.execute(text("SELECT :secret FROM nowhere"), {"secret": "5eed"})

    assert "5eed" not in str(failed.value)


def test_options_of_the_address_are_kept(postgres_url: str) -> None:
    database = connect(f"{postgres_url}?options=-c%20statement_timeout%3D4321")
    with database.read() as session:
        assert session.scalar(text("SHOW statement_timeout")) == "4321ms"
        assert session.scalar(text("SHOW jit")) == "off"
    database.dispose()


def test_the_server_soon_notices_a_host_that_is_gone(postgres_url: str) -> None:
    database = connect(postgres_url)
    with database.read() as session:
        names = ("idle", "interval", "count")
        idle, interval, count = (
            int(session.execute(text(f"SHOW tcp_keepalives_{name}")).scalar_one()) for name in names
        )
        sent_ms = int(session.execute(text("SHOW tcp_user_timeout")).scalar_one())
    database.dispose()

    assert idle + interval * count < LEASE.total_seconds()
    assert sent_ms < 1000 * LEASE.total_seconds()


def test_a_read_sees_one_moment_throughout(postgres_url: str) -> None:
    database = connect(postgres_url)
    with database.write.begin() as session:
        session.execute(text("CREATE TABLE moment (id integer)"))

    def rows(session: Session) -> int:
        return int(session.execute(text("SELECT count(*) FROM moment")).scalar_one())

    with database.read.begin() as reading:
        before = rows(reading)
        with database.write.begin() as writing:
            writing.execute(text("INSERT INTO moment VALUES (1)"))
        assert rows(reading) == before == 0
    with database.read.begin() as reading:
        assert rows(reading) == 1
    with database.write.begin() as session:
        session.execute(text("DROP TABLE moment"))
    database.dispose()
