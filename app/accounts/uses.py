"""When sessions and tokens were last used: gathered in memory, written down now and then.

A request that only reads must not wait for a writer, and each answer must not write a line more.
"""

from datetime import datetime
from threading import Lock

import structlog
from sqlalchemy import bindparam, or_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from app.accounts.models import ApiToken, LoginSession

EVERY_S = 30.0  # a process that is killed forgets the uses of so long

_now = bindparam("at", type_=LoginSession.seen_at.type)
_of_sessions, _of_tokens = (
    update(model)
    .where(key == bindparam("hash"), or_(model.seen_at.is_(None), model.seen_at < _now))
    .values(seen_at=_now)
    .execution_options(synchronize_session=False)
    for model, key in ((LoginSession, LoginSession.id_hash), (ApiToken, ApiToken.token_hash))
)

log = structlog.get_logger()


class Uses:
    """The last use of each session and token since the last writing."""

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        self._sessions = sessions
        self._lock = Lock()
        self._by_session: dict[str, datetime] = {}
        self._by_token: dict[str, datetime] = {}

    def note_session(self, id_hash: str, *, now: datetime) -> None:
        """A session was used."""
        with self._lock:
            self._by_session[id_hash] = now

    def note_token(self, token_hash: str, *, now: datetime) -> None:
        """A token was used."""
        with self._lock:
            self._by_token[token_hash] = now

    def write_down(self) -> None:
        """Write what was gathered; without the database it is lost, and a line of the log says so."""
        with self._lock:
            sessions, self._by_session = self._by_session, {}
            tokens, self._by_token = self._by_token, {}
        if not sessions and not tokens:
            return
        try:
            with self._sessions.begin() as session:
                connection = session.connection()
                # In one order, so that two processes cannot wait for each other.
                for statement, found in ((_of_sessions, sessions), (_of_tokens, tokens)):
                    rows = [{"hash": hash_, "at": at} for hash_, at in sorted(found.items())]
                    if rows:
                        connection.execute(statement, rows)
        except SQLAlchemyError:
            log.warning("uses.not_written", sessions=len(sessions), tokens=len(tokens), exc_info=True)
