"""Who calls: the person behind a cookie or a bearer token, which every request asks."""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session, make_transient_to_detached

from app.accounts.models import ApiToken, LoginSession, User

# Not joins, for which PostgreSQL would read a short table whole.
_columns = User.__table__.c
_by_cookie = select(LoginSession.user_id).where(
    LoginSession.id_hash == bindparam("hash"), LoginSession.expires_at > bindparam("now")
)
_by_token = select(ApiToken.user_id).where(
    ApiToken.token_hash == bindparam("hash"), ApiToken.revoked_at.is_(None)
)
# :hash, and of a cookie :now; rows as `as_user` takes them
OF_COOKIE, OF_TOKEN = (
    select(*_columns).where(User.id == found.scalar_subquery(), User.disabled_at.is_(None))
    for found in (_by_cookie, _by_token)
)


def user_of_session(session: Session, secret: str, *, now: datetime) -> User | None:
    """Who is signed in with this cookie; detached, for the session may end before the answer is made."""
    row = session.execute(OF_COOKIE, {"hash": digest(secret), "now": now}).one_or_none()
    return None if row is None else as_user(row)


def user_of_token(session: Session, secret: str) -> User | None:
    """Whose bearer token this is; detached as well."""
    row = session.execute(OF_TOKEN, {"hash": digest(secret)}).one_or_none()
    return None if row is None else as_user(row)


def as_user(row: Sequence[Any]) -> User:
    """The person of a row of their table's columns."""
    user = User(**dict(zip(_columns.keys(), row, strict=True)))
    make_transient_to_detached(user)
    return user


def digest(secret: str) -> str:
    """What is stored of a random secret. It has 128 bits or more, so a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_token(signing_secret: bytes, session_secret: str) -> str:
    """The token that our own pages send back; bound to the session, so it needs no storage."""
    return hmac.new(signing_secret, f"csrf:{session_secret}".encode(), hashlib.sha256).hexdigest()
