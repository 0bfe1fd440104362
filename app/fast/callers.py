"""Who calls: as `app.accounts.callers` finds out, by prepared statements."""

from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts import callers
from app.accounts.callers import digest
from app.accounts.models import User
from app.fast.prepared import Prepared

_OF_COOKIE = Prepared(callers.as_user, callers.OF_COOKIE)
_OF_TOKEN = Prepared(callers.as_user, callers.OF_TOKEN)


def user_of_session(session: Session, secret: str, *, now: datetime) -> User | None:
    """Who is signed in with this cookie."""
    return next(iter(_OF_COOKIE.run(session, hash=digest(secret), now=now)), None)


def user_of_token(session: Session, secret: str) -> User | None:
    """Whose bearer token this is."""
    return next(iter(_OF_TOKEN.run(session, hash=digest(secret))), None)
