"""Who calls: the person behind a cookie or a bearer token, which every request asks."""

import hashlib
import hmac
import secrets
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


def masked(token: str) -> str:
    """The token under a mask of its own in every page: how well pages compress tells nobody what it is."""
    mask = secrets.token_bytes(len(token) // 2)
    return (mask + _under(mask, bytes.fromhex(token))).hex()


def unmasked(given: str) -> str:
    """The token of a masked one; anything else as it is."""
    try:
        both = bytes.fromhex(given)
    except ValueError:
        return given
    if len(both) != 2 * hashlib.sha256().digest_size:
        return given
    half = len(both) // 2
    return _under(both[:half], both[half:]).hex()


def _under(mask: bytes, token: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(mask, token, strict=True))
