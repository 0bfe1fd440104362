"""Prepared statements give what SQLAlchemy would."""

from datetime import timedelta

import pytest
from sqlalchemy import Table, bindparam, func, insert, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts.models import Role, User
from app.fast.compiling import ListOf, in_list
from app.fast.prepared import (
    Prepared,
    RowWrites,
    run_all,
)
from tests.factories import NOW, make_user

pytestmark = pytest.mark.dialects

_users = User.__table__.c


def test_values_come_back_typed(session: Session) -> None:
    user = make_user(session, role="admin")
    statement = Prepared(
        tuple,
        select(
            _users.id, _users.role, _users.created_at, _users.disabled_at, func.coalesce(_users.name, "x")
        ).where(_users.id == bindparam("me")),
    )

    for _ in range(2):
        [row] = statement.run(session, me=user.id)
        assert row == (user.id, Role.ADMIN, user.created_at, None, user.name)
    assert isinstance(row[1], Role)


def test_one_parameter_has_any_number_of_values(session: Session) -> None:
    users = [make_user(session) for _ in range(3)]
    ids = bindparam("ids", type_=ListOf(_users.id.type))
    statement = Prepared(tuple, select(_users.id).where(in_list(_users.id, ids)))

    assert {row[0] for row in statement.run(session, ids=[user.id for user in users[:2]])} == {
        users[0].id,
        users[1].id,
    }
    assert statement.run(session, ids=[]) == []


def test_what_is_not_written_yet_is_seen(session: Session) -> None:
    user = make_user(session)
    user.disabled_at = NOW + timedelta(days=1)

    statement = Prepared(tuple, select(_users.disabled_at).where(_users.id == bindparam("me")))

    assert statement.run(session, me=user.id) == [(user.disabled_at,)]


def test_several_statements_run_over_the_same_rows(session: Session) -> None:
    session.execute(text("CREATE TEMPORARY TABLE counted (name TEXT PRIMARY KEY, count INTEGER)"))
    session.execute(text("INSERT INTO counted VALUES ('gone', 1), ('kept', 1)"))
    writes = RowWrites(
        {"name": "text", "more": "integer", "goes": "boolean"},
        [
            "UPDATE counted SET count = count + :times * more FROM change "
            "WHERE counted.name = change.name AND NOT change.goes",
            "DELETE FROM counted WHERE name IN (SELECT name FROM change WHERE goes)",
        ],
        table="change",
        common=[bindparam("times")],
    )
    rows = [{"name": "gone", "more": 1, "goes": True}, {"name": "kept", "more": 4, "goes": False}]

    run_all(session, writes.bind(rows, times=2))

    assert session.execute(text("SELECT name, count FROM counted")).all() == [("kept", 9)]


def test_errors_are_those_of_sqlalchemy(session: Session) -> None:
    user = make_user(session)
    table = User.__table__
    assert isinstance(table, Table)
    row = {column.name: getattr(user, column.name) for column in table.columns}
    statement = Prepared(tuple, insert(table).values({name: bindparam(name) for name in row}))

    with pytest.raises(IntegrityError) as caught:
        statement.run(session, **row)

    assert user.email not in str(caught.value).split("[SQL", maxsplit=1)[1]
