"""Start when the database is there: servers of one installation start in any order."""

import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from app.db import Database, connect
from app.migrate import Schema, schema_of
from app.outages import outage_of
from app.settings import Settings

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
OLDER = "The database's schema is older than this program. Waiting until somebody runs: clarinet db upgrade"
NEWER = "The database's schema is newer than this program, which goes on with what it knows. Update it soon."


def wait_for_database(
    settings: Settings,
    *,
    needs_schema: bool,
    say: Callable[[str], None],
    ended: threading.Event | None = None,
) -> None:
    """Return once the database answers and, if asked for, has a schema that fits; or once `ended` is set.

    Says what it waits for, once for each reason. What is no outage is raised.
    """
    database = connect(settings.sqlalchemy_url)
    said, pause_s = "", FIRST_PAUSE_S
    try:
        while not (ended and ended.is_set()):
            waits_for = _look(database, needs_schema=needs_schema)
            if waits_for and waits_for != said:
                say(waits_for)
            if waits_for in ("", NEWER):
                return
            said = waits_for
            if ended:
                ended.wait(pause_s)
            else:
                time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    finally:
        database.dispose()


def _look(database: Database, *, needs_schema: bool) -> str:
    try:
        with database.engine.connect() as connection:
            schema = schema_of(connection)
    except DBAPIError as error:
        outage = outage_of(error)
        if outage is None:
            raise
        # The driver's own words name a wrong password or database, which waiting does not mend.
        why = " ".join(str(error.orig).split())[:300]
        return f"{outage.words} Waiting for it at {place_of(database)}. It was said: {why}"
    if schema is Schema.NEWER:
        return NEWER
    return OLDER if needs_schema and schema is Schema.OLDER else ""


def place_of(database: Database) -> str:
    """Where the database is, without who asks and the password."""
    url = database.engine.url
    if url.get_backend_name() == "sqlite":
        return url.database or "a place in memory"
    return f"{url.host or 'this machine'}:{url.port or 5432}/{url.database or ''}"
