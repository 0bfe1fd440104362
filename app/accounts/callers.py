"""Who calls: the person behind a cookie or a bearer token, which every request asks."""

import hashlib
import hmac
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session, make_transient_to_detached

from app.accounts.models import ApiToken, LoginSession, User
from app.accounts.passwords import digest
from app.prepared import Given, Prepared, Rows, presume, together

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


class _Known(NamedTuple):
    rows: Rows
    user: User


_known: dict[str, _Known] = {}  # by the digest of their cookie or token
MOST_KNOWN = 10_000


def user_of_session(session: Session, secret: str, *, now: datetime, presumes: bool = False) -> User | None:
    """Who is signed in with this cookie; detached, for the session may end before the answer is made.

    `presumes` as in `user_of_token`.
    """
    return _holder(session, _OF_COOKIE.given(hash=digest(secret), now=now), presumes=presumes)


def user_of_token(session: Session, secret: str, *, presumes: bool = False) -> User | None:
    """Whose bearer token this is; detached as well.

    Args:
        session: any.
        secret: the token.
        presumes: take it to be as last time, and ask with the session's next statements (`prepared.presume`).
            What is given is shared with other requests and is only to be read.
    """
    return _holder(session, _OF_TOKEN.given(hash=digest(secret)), presumes=presumes)


def _holder(session: Session, given: Given, *, presumes: bool) -> User | None:
    key = str(given.values["hash"])
    known = _known.get(key)
    if presumes and known:
        presume(session, given, known.rows)
        return known.user
    [rows] = together(session, given)
    if known and known.rows != rows:
        _known.pop(key, None)
    if not rows:
        return None
    user = User(**dict(zip(_columns.keys(), rows[0], strict=True)))
    make_transient_to_detached(user)
    if presumes:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = _Known(rows, user)
    return user


def csrf_token(signing_secret: bytes, session_secret: str) -> str:
    """The token that our own pages send back; bound to the session, so it needs no storage."""
    return hmac.new(signing_secret, f"csrf:{session_secret}".encode(), hashlib.sha256).hexdigest()
