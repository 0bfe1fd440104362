"""Statements in one round trip to PostgreSQL."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.sql import bindparam, text

from app.db import connect
from app.fast.pipelines import Failed, Pipeline, Sent, as_text
from app.fast.prepared import Prepared, run_all
from tests.factories import NOW

ONE = Sent(b"one", "SELECT $1::int + 1", [b"1"])
WRONG = Sent(b"wrong", "SELECT 1 / $1::int", [b"0"])


@pytest.fixture
def driver(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    url = make_url(postgres_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, prepare_threshold=None) as connection:
        yield connection
        connection.rollback()


def test_each_statement_gives_its_rows_and_sees_what_came_before(driver: psycopg.Connection[Any]) -> None:
    pipeline = Pipeline(driver)
    made = Sent(b"made", "CREATE TEMPORARY TABLE made (number int)", [])

    found = pipeline.send([ONE, made])
    written = Sent(b"written", "INSERT INTO made VALUES ($1), ($1)", [b"7"])
    read = Sent(b"read", "SELECT number, number::text, number > 5, NULL FROM made", [])
    again = pipeline.send([written, read, ONE])

    assert [item.rows for item in found] == [[(2,)], []]
    assert [item.rows for item in again] == [[], [(7, "7", True, None)] * 2, [(2,)]]
    assert pipeline.prepared == {b"one", b"made", b"written", b"read"}
    assert driver.info.transaction_status is TransactionStatus.INTRANS
    assert driver.execute("SELECT 3").fetchone() == (3,)  # in the same transaction, by the driver's own ways


def test_values_are_read_as_their_types(driver: psycopg.Connection[Any]) -> None:
    id_ = UUID(int=5)
    values = [None, 3, True, 0.1, "it's {a}, “b”", NOW, id_, [1, 2], [id_]]
    kinds = ["int", "bigint", "boolean", "float8", "text", "timestamptz", "uuid", "bigint[]", "uuid[]"]
    columns = ", ".join(f"${place}::{kind}" for place, kind in enumerate(kinds, start=1))

    [found] = Pipeline(driver).send([Sent(b"all", f"SELECT {columns}", [as_text(value) for value in values])])

    assert found.rows == [tuple(values)]


def test_text_that_would_be_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        as_text("a\0b")


def test_what_fails_is_named_and_the_connection_goes_on_after_a_rollback(
    driver: psycopg.Connection[Any],
) -> None:
    pipeline = Pipeline(driver)
    new = Sent(b"new", "SELECT 5", [])

    with pytest.raises(Failed) as caught:
        pipeline.send([ONE, WRONG, new])

    assert caught.value.place == 1
    assert isinstance(caught.value.why, psycopg.errors.DivisionByZero)
    assert driver.info.transaction_status is TransactionStatus.INERROR
    driver.rollback()
    assert [item.rows for item in pipeline.send([new, ONE])] == [[(5,)], [(2,)]]


def test_a_text_that_cannot_be_prepared_is_tried_anew(driver: psycopg.Connection[Any]) -> None:
    pipeline = Pipeline(driver)
    statement = Sent(b"later", "SELECT count(*) FROM not_yet", [])
    with pytest.raises(Failed) as caught:
        pipeline.send([statement])
    assert isinstance(caught.value.why, psycopg.errors.UndefinedTable)
    assert pipeline.prepared == set()
    driver.rollback()

    driver.execute("CREATE TEMPORARY TABLE not_yet (number int)")

    assert pipeline.send([statement])[0].rows == [(0,)]


@pytest.mark.parametrize("level", [None, psycopg.IsolationLevel.REPEATABLE_READ])
def test_a_transaction_begins_as_the_connection_says(
    driver: psycopg.Connection[Any], level: psycopg.IsolationLevel | None
) -> None:
    driver.isolation_level = level

    [found] = Pipeline(driver).send([Sent(b"level", "SHOW transaction_isolation", [])])

    assert found.rows == [("repeatable read" if level else "read committed",)]
    assert driver.info.transaction_status is TransactionStatus.INTRANS


def test_a_connection_that_commits_by_itself_begins_none(driver: psycopg.Connection[Any]) -> None:
    driver.autocommit = True

    Pipeline(driver).send([ONE])

    assert driver.info.transaction_status is TransactionStatus.IDLE


def test_more_than_the_network_holds_at_once_goes_both_ways(driver: psycopg.Connection[Any]) -> None:
    long = b"x" * 3_000_000

    found = Pipeline(driver).send([Sent(b"echo", "SELECT $1::text", [long])] * 5)

    assert [len(item.rows[0][0]) for item in found] == [len(long)] * 5


def test_others_run_while_one_waits_for_the_database(driver: psycopg.Connection[Any]) -> None:
    ticks: list[float] = []

    def tick() -> None:
        for _ in range(5):
            ticks.append(time.monotonic())
            time.sleep(0.02)

    other = threading.Thread(target=tick)
    begun = time.monotonic()
    other.start()
    Pipeline(driver).send([Sent(b"sleep", "SELECT pg_sleep(0.5)", [])])
    ended = time.monotonic()
    other.join()

    assert ended - begun >= 0.5
    assert len([at for at in ticks if at < ended]) == 5


class TestLostConnections:
    def test_are_told_as_such_and_replaced(self, postgres_url: str) -> None:
        database = connect(postgres_url)
        own = Prepared(tuple, text("SELECT pg_backend_pid(), CAST(:value AS integer)"))
        end = Prepared(tuple, text("SELECT pg_terminate_backend(pg_backend_pid())"))
        try:
            with database.write() as session:
                [(first, _)] = own.run(session, value=1)
                with pytest.raises(OperationalError) as caught:
                    run_all(session, end.bind(), own.bind(value=2))
                assert caught.value.connection_invalidated
            with database.write() as session:
                [(second, value)] = own.run(session, value=3)
        finally:
            database.dispose()

        assert (second != first, value) == (True, 3)

    def test_are_found_after_a_rest(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.db.REST_S", 0)
        database, other = connect(postgres_url), connect(postgres_url)
        own = Prepared(tuple, text("SELECT pg_backend_pid()"))
        end = Prepared(tuple, text("SELECT pg_terminate_backend(:pid)").bindparams(bindparam("pid")))
        try:
            with database.write() as session:
                [(first,)] = own.run(session)
            with other.write() as session:
                end.run(session, pid=first)
            with database.write() as session:
                [(second,)] = own.run(session)
        finally:
            database.dispose()
            other.dispose()

        assert second != first

    def test_so_are_those_whose_statements_no_longer_fit_the_schema(self, postgres_url: str) -> None:
        database = connect(postgres_url)
        read = Prepared(tuple, text("SELECT number FROM changing"))

        def run(statement: str) -> None:
            with database.write.begin() as session:
                session.execute(text(statement))

        try:
            run("CREATE TABLE changing (number integer)")
            with database.write() as session:
                assert read.run(session) == []
            run("ALTER TABLE changing ALTER number TYPE bigint")
            with database.write() as session, pytest.raises(SQLAlchemyError, match="cached plan"):
                read.run(session)
            with database.write() as session:
                assert read.run(session) == []
        finally:
            run("DROP TABLE IF EXISTS changing")
            database.dispose()

    def test_an_error_names_the_statement_that_made_it(self, postgres_url: str) -> None:
        database = connect(postgres_url)
        good, bad = Prepared(tuple, text("SELECT 1")), Prepared(tuple, text("SELECT 1 / 0"))
        try:
            with database.write() as session, pytest.raises(SQLAlchemyError, match="1 / 0") as caught:
                run_all(session, good.bind(), bad.bind(), good.bind())
        finally:
            database.dispose()

        assert "division by zero" in str(caught.value)
