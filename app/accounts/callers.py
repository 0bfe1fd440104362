"""Who calls: the person behind a cookie or a bearer token, which every request asks."""

import hashlib
import hmac
from datetime import datetime

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session, make_transient_to_detached

from app.accounts.models import ApiToken, LoginSession, User
from app.accounts.passwords import digest
from app.prepared import Prepared

# Not joins, for which PostgreSQL would read a short table whole.
_columns = User.__table__.c
_by_cookie = select(LoginSession.user_id).where(
    LoginSession.id_hash == bindparam("hash"), LoginSession.expires_at > bindparam("now")
)
_by_token = select(ApiToken.user_id).where(
    ApiToken.token_hash == bindparam("hash"), ApiToken.revoked_at.is_(None)
)
_OF_COOKIE, _OF_TOKEN = (
    Prepared(select(*_columns).where(User.id == found.scalar_subquery(), User.disabled_at.is_(None)))
    for found in (_by_cookie, _by_token)
)


def user_of_session(session: Session, secret: str, *, now: datetime) -> User | None:
    """Who is signed in with this cookie; detached, for the session may end before the answer is made."""
    return _user(_OF_COOKIE.row(session, hash=digest(secret), now=now))


def user_of_token(session: Session, secret: str) -> User | None:
    """Whose bearer token this is; detached as well."""
    return _user(_OF_TOKEN.row(session, hash=digest(secret)))


def _user(row: tuple[object, ...] | None) -> User | None:
    if row is None:
        return None
    user = User(**dict(zip(_columns.keys(), row, strict=True)))
    make_transient_to_detached(user)
    return user


def csrf_token(signing_secret: bytes, session_secret: str) -> str:
    """The token that our own pages send back; bound to the session, so it needs no storage."""
    return hmac.new(signing_secret, f"csrf:{session_secret}".encode(), hashlib.sha256).hexdigest()
