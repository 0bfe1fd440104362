"""Many at once, on real connections: an admin is left, limits hold, and what ends has ended."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.errors import WrongCode
from app.accounts.models import ApiToken, LoginSession, Role, User
from app.clock import utc_now
from app.db import Database
from app.errors import AppError
from tests.factories import NOW, PASSWORD, make_user

pytestmark = [pytest.mark.long, pytest.mark.dialects]

PEOPLE = 8
ROUNDS = 6
TIMEOUT_S = 60


def at_once(database: Database, acts: Sequence[Callable[[Session], object]]) -> list[bool]:
    """Do all in threads that begin together, each in a transaction; tells which were not refused."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[Session], object]) -> bool:
        barrier.wait(TIMEOUT_S)
        try:
            with database.write.begin() as session:
                act(session)
        except AppError:
            return False
        return True

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result(TIMEOUT_S) for future in [pool.submit(run, act) for act in acts]]


def admins(database: Database, count: int) -> list[User]:
    """So many new admins, and no other."""
    with database.write.begin() as session:
        for user in session.scalars(select(User)):
            user.role = Role.ANNOTATOR
        return [make_user(session, role="admin", password=PASSWORD) for _ in range(count)]


def disable(by: User, whom: User) -> Callable[[Session], object]:
    return lambda session: service.set_disabled(session, whom.id, disabled=True, by=by, now=NOW)


def demote(by: User, whom: User) -> Callable[[Session], object]:
    return lambda session: service.set_role(session, whom.id, Role.ANNOTATOR, by=by, now=NOW)


def test_admins_who_end_each_other_leave_one(committed: Database) -> None:
    for round_ in range(ROUNDS):
        people = admins(committed, 2 + round_)
        pairs = [(by, whom) for by in people for whom in people if by is not whom]
        acts = [(disable if n % 2 else demote)(by, whom) for n, (by, whom) in enumerate(pairs)]

        done = at_once(committed, acts)

        with committed.read() as session:
            assert service.has_admin(session), f"round {round_}: {done}"
            left = session.scalar(
                select(func.count()).where(User.role == Role.ADMIN, User.disabled_at.is_(None))
            )
        assert left == 1, "each of them is somebody's aim"


def test_one_link_makes_one_first_admin(committed: Database) -> None:
    for round_ in range(ROUNDS):
        admins(committed, 0)
        made: list[str] = []

        def make(session: Session, made: list[str] = made) -> None:
            made.append(service.invite_first_admin(session, now=utc_now()) or "")

        at_once(committed, [make] * 4)
        accepts = [
            partial(accept, secret=made[n % 4], email=f"{round_}.{n}@example.org") for n in range(PEOPLE)
        ]

        done = at_once(committed, accepts)

        assert sum(done) == 1


def accept(session: Session, *, secret: str, email: str) -> None:
    """Become the first admin by a link."""
    service.accept_invitation(session, secret, email=email, name="First", password_hash="hash", now=utc_now())


def test_nobody_gets_a_twenty_first_token(committed: Database) -> None:
    with committed.write.begin() as session:
        user = make_user(session)
        for n in range(service.MAX_TOKENS - 3):
            service.create_token(session, user, f"t{n}", now=NOW)

    done = at_once(committed, [lambda session: service.create_token(session, user, "more", now=NOW)] * PEOPLE)

    assert sum(done) == 3
    with committed.read() as session:
        assert len(session.scalars(service.tokens_of(user, now=NOW)).all()) == service.MAX_TOKENS


def test_whoever_comes_in_while_their_password_changes_is_out_again(committed: Database) -> None:
    """Signing in and making tokens take turns with what ends them: afterwards nothing of before works."""
    for _ in range(ROUNDS):
        (ada,) = admins(committed, 1)
        with committed.write.begin() as session:
            cookie = service.start_session(session, ada, now=NOW)

        def change(session: Session, ada: User = ada) -> None:
            service.change_password(session, ada, proved=ada, password_hash="new", keep="", now=NOW)

        def sign_in(session: Session, ada: User = ada) -> None:
            service.start_session(session, ada, now=NOW)

        def make_token(session: Session, ada: User = ada, cookie: str = cookie) -> None:
            service.require_proof(session, ada, cookie, now=NOW)
            service.create_token(session, ada, "script", now=NOW)

        assert at_once(committed, [change, *[sign_in, make_token] * 3])[0]

        with committed.read() as session:
            assert session.scalar(select(func.count()).where(LoginSession.user_id == ada.id)) == 0
            live = select(func.count()).where(ApiToken.user_id == ada.id, ApiToken.revoked_at.is_(None))
            assert session.scalar(live) == 0


def test_a_link_to_another_password_is_used_once(committed: Database) -> None:
    with committed.write.begin() as session:
        user = make_user(session, password=PASSWORD)
        _, secret = service.make_password_link(session, user, by=None, now=NOW)

    acts = [
        partial(service.choose_password, secret=secret, password_hash=f"hash {n}", now=NOW)
        for n in range(PEOPLE)
    ]
    done = at_once(committed, acts)

    assert sum(done) == 1


def test_a_code_works_once(committed: Database) -> None:
    import pyotp

    with committed.write.begin() as session:
        user = make_user(session, password=PASSWORD)
        secret = service.begin_second_factor(session, user)
    code = pyotp.TOTP(secret).at(NOW)

    done = at_once(committed, [lambda session: service.use_code(session, user, code, now=NOW)] * PEOPLE)

    assert sum(done) == 1
    with committed.write.begin() as session, pytest.raises(WrongCode):
        service.use_code(session, user, code, now=NOW)
