"""Prepared statements give what SQLAlchemy would."""

from datetime import timedelta

import pytest
from sqlalchemy import Table, bindparam, func, insert, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.accounts.models import Role, User
from app.prepared import (
    Given,
    Mistaken,
    Prepared,
    RowWrites,
    Several,
    among,
    is_presuming,
    presume,
    together,
)
from tests.factories import NOW, make_user

pytestmark = pytest.mark.dialects

_users = User.__table__.c


def test_values_come_back_typed(session: Session) -> None:
    user = make_user(session, role="admin")
    statement = Prepared(
        select(
            _users.id, _users.role, _users.created_at, _users.disabled_at, func.coalesce(_users.name, "x")
        ).where(_users.id == bindparam("me"))
    )

    for _ in range(2):
        row = statement.row(session, me=user.id)
        assert row == (user.id, Role.ADMIN, user.created_at, None, user.name)
    assert row is not None
    assert isinstance(row[1], Role)


def test_one_parameter_has_any_number_of_values(session: Session) -> None:
    users = [make_user(session) for _ in range(3)]
    ids = bindparam("ids", type_=Several(_users.id.type))
    statement = Prepared(select(_users.id).where(among(_users.id, ids)))

    assert {row[0] for row in statement.rows(session, ids=[user.id for user in users[:2]])} == {
        users[0].id,
        users[1].id,
    }
    assert statement.rows(session, ids=[]) == []


def test_what_is_not_written_yet_is_seen(session: Session) -> None:
    user = make_user(session)
    user.disabled_at = NOW + timedelta(days=1)

    found = Prepared(select(_users.disabled_at).where(_users.id == bindparam("me"))).row(session, me=user.id)

    assert found == (user.disabled_at,)


def test_several_statements_run_over_the_same_rows(session: Session) -> None:
    session.execute(text("CREATE TEMPORARY TABLE counted (name TEXT PRIMARY KEY, count INTEGER)"))
    session.execute(text("INSERT INTO counted VALUES ('gone', 1), ('kept', 1)"))
    writes = RowWrites(
        {"name": "text", "more": "integer", "goes": "boolean"},
        [
            "UPDATE counted SET count = count + :times * more FROM given "
            "WHERE counted.name = given.name AND NOT given.goes",
            "DELETE FROM counted WHERE name IN (SELECT name FROM given WHERE goes)",
        ],
        bindparam("times"),
    )

    writes.run(
        session,
        [{"name": "gone", "more": 1, "goes": True}, {"name": "kept", "more": 4, "goes": False}],
        times=2,
    )

    assert session.execute(text("SELECT name, count FROM counted")).all() == [("kept", 9)]


def test_errors_are_those_of_sqlalchemy(session: Session) -> None:
    user = make_user(session)
    table = User.__table__
    assert isinstance(table, Table)
    row = {column.name: getattr(user, column.name) for column in table.columns}
    statement = Prepared(insert(table).values({name: bindparam(name) for name in row}))

    with pytest.raises(IntegrityError) as caught:
        statement.rows(session, **row)

    assert user.email not in str(caught.value).split("[SQL", maxsplit=1)[1]


class TestPresume:
    def test_what_is_so_saves_a_question_of_its_own(self, session: Session) -> None:
        user, name, mail = _asking(session)
        [before] = together(session, name)

        presume(session, name, before)

        assert is_presuming(session)
        assert together(session, mail) == [[(user.email,)]]
        assert not is_presuming(session)

    def test_what_is_not_so_gives_nothing(self, session: Session) -> None:
        user, name, mail = _asking(session)
        presume(session, name, [(user.name,)])
        user.name = "Somebody Else"

        with pytest.raises(Mistaken):
            together(session, mail)

    def test_is_asked_even_where_nothing_else_is(self, session: Session) -> None:
        _, name, _ = _asking(session)
        presume(session, name, [])

        with pytest.raises(Mistaken):
            together(session)
        assert together(session) == []


def _asking(session: Session) -> tuple[User, Given, Given]:
    """Somebody, and what asks for their name and for their address."""
    user = make_user(session)
    me = _users.id == bindparam("me")
    name, mail = Prepared(select(_users.name).where(me)), Prepared(select(_users.email).where(me))
    return user, name.given(me=user.id), mail.given(me=user.id)
