"""Who calls: the person behind a cookie or a bearer token, which every request asks."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, null, select, type_coerce
from sqlalchemy.orm import Session, make_transient_to_detached

from app.accounts.models import ApiToken, LoginSession, Role, Scope, User

Looking = Session | Connection  # what asks the database, within a session or beneath one


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who proved who they are.

    Args:
        user: who; detached, for the database session may end before the answer is made. With a token that
            may only annotate, an admin is an annotator.
        scope: of the token; None: in person, with a cookie.
    """

    user: User
    scope: Scope | None


# Not joins, for which PostgreSQL would read a short table whole.
_columns = User.__table__.c
_by_cookie = select(LoginSession.user_id).where(
    LoginSession.id_hash == bindparam("hash"),
    LoginSession.expires_at > bindparam("now"),
    func.coalesce(LoginSession.seen_at, LoginSession.created_at) > bindparam("idle_since"),
)
_by_token = select(ApiToken.user_id).where(
    ApiToken.token_hash == bindparam("hash"),
    ApiToken.revoked_at.is_(None),
    ApiToken.expires_at > bindparam("now"),
)
_scope = select(ApiToken.scope).where(ApiToken.token_hash == bindparam("hash"))
_no_scope = type_coerce(null(), ApiToken.scope.type)
# :hash and :now, of a cookie :idle_since as well; rows as `as_caller` takes them
OF_COOKIE, OF_TOKEN = (
    select(*_columns, scope.label("scope")).where(
        User.id == found.scalar_subquery(), User.disabled_at.is_(None)
    )
    for found, scope in ((_by_cookie, _no_scope), (_by_token, _scope.scalar_subquery()))
)


def caller_by_cookie(session: Looking, secret: str, *, now: datetime, idle_since: datetime) -> Caller | None:
    """Who is signed in with this cookie, if it was used after `idle_since`."""
    given = {"hash": digest(secret), "now": now, "idle_since": idle_since}
    row = session.execute(OF_COOKIE, given).one_or_none()
    return None if row is None else as_caller(row)


def caller_by_token(session: Looking, secret: str, *, now: datetime) -> Caller | None:
    """Whose bearer token this is, and what it may do."""
    row = session.execute(OF_TOKEN, {"hash": digest(secret), "now": now}).one_or_none()
    return None if row is None else as_caller(row)


def as_caller(row: Sequence[Any]) -> Caller:
    """The caller of a row: the columns of their table, and the token's scope."""
    *columns, scope = row
    values = dict(zip(_columns.keys(), columns, strict=True))
    if scope is Scope.ANNOTATE:
        values["role"] = Role.ANNOTATOR
    user = User(**values)
    make_transient_to_detached(user)
    return Caller(user, scope)


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
