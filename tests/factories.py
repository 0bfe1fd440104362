"""Rows for tests: plain functions with defaults for everything. They flush; tests commit."""

import itertools
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Role, User

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PASSWORD = "correct horse battery"
_counter = itertools.count(1)


def number() -> int:
    """A number that no other row of this process has."""
    return next(_counter)


def make_user(session: Session, *, role: str = "annotator", password: str | None = None) -> User:
    """Somebody with an account; without a password, because hashing takes time."""
    n = number()
    return accounts.create_user(
        session,
        email=f"person{n}@example.org",
        name=f"Person {n}",
        role=Role(role),
        password=password,
        now=NOW,
    )


def make_token(session: Session, user: User) -> str:
    """A bearer token of this user; commits, so that clients can use it."""
    _, secret = accounts.create_token(session, user, "test", now=NOW)
    session.commit()
    return secret
