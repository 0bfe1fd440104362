"""Is the process alive, and could it serve: for supervisors and load balancers.

Plain routes, which no guard stands before: who asks with a token must not wait for the database that is away.
"""

import asyncio
import math
import os
import shutil
import time
from concurrent.futures import Future

from kombu.connection import Connection
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app import jobs
from app.access import public
from app.clock import utc_now
from app.db import Database
from app.migrate import fits
from app.outages import outage_of
from app.questions import Question
from app.runs.workers import UPKEEP, WEB, own_version, process_name, record_service, seen_queues
from app.settings import Settings
from app.storage import Storage, StorageAway

MIN_FREE_BYTES = 200 * 1024 * 1024
WITHIN_S = 1.5  # load balancers ask every few seconds, and an answer that comes late is none
OK = "ok"
STORED_FOR_S = 15.0  # a bucket that was written is not written again: each time costs money
NEEDED = ("database", "migrations", "disk", "storage")  # the others only delay people's work

Told = dict[str, str]


@public
async def healthz(_request: Request) -> JSONResponse:
    """The process answers; touches nothing."""
    return JSONResponse({"status": OK})


@public
async def readyz(request: Request) -> JSONResponse:
    """Database and bucket are written, the schema is current, the disk has room; what else is missing.

    What only delays people's work is a warning: a process without a broker still takes their answers.
    """
    readiness: Readiness = request.app.state.readiness
    checks, warnings = await readiness.look()
    ready = all(value == OK for value in checks.values())
    body = {"status": OK if ready else "not ready", **checks, "warnings": warnings}
    return JSONResponse(body, 200 if ready else 503, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]


class Readiness:
    """What a process needs before it can serve, looked at anew for each probe."""

    def __init__(self, settings: Settings, database: Database, storage: Storage, *, kind: str = WEB) -> None:
        self._settings = settings
        self._database = database
        self._storage = storage
        self._name = f"{kind}-{process_name(os.getpid())}"
        self._kind = kind
        self._questions: dict[str, Question[Told]] = {
            "database": Question(self._of_database),
            "disk": Question(self._of_disk),
            "broker": Question(self._of_broker),
        }
        if settings.s3_bucket:  # a folder is on the disk
            self._questions["storage"] = Question(self._of_storage)
        self._stored_at = -math.inf

    async def look(self) -> tuple[Told, Told]:
        """What must be there, by name, "ok" or what is wrong; and in words what else is missing."""
        asked = {name: question.asked() for name, question in self._questions.items()}
        await asyncio.wait(map(asyncio.wrap_future, asked.values()), timeout=WITHIN_S)
        told = {name: _told(name, answer) for name, answer in asked.items()}
        found = {key: words for each in told.values() for key, words in each.items()}
        checks = {name: found.pop(name) for name in NEEDED if name in found}
        return checks, {name: words for name, words in found.items() if words != OK}

    def _of_database(self) -> Told:
        with self._database.write.begin() as session:
            if not fits(session.connection()):
                return {"database": OK, "migrations": "run: clarinet db upgrade"}
            record_service(session, self._name, self._kind, version=own_version(), now=utc_now())
            return {"database": OK, "migrations": OK} | _others(session)

    def _of_disk(self) -> Told:
        free = shutil.disk_usage(self._settings.data_dir).free
        return {"disk": OK if free > MIN_FREE_BYTES else f"{free // 1024**2} MB left"}

    def _of_storage(self) -> Told:
        if time.monotonic() - self._stored_at > STORED_FOR_S:
            self._storage.check()
            self._stored_at = time.monotonic()
        return {"storage": OK}

    def _of_broker(self) -> Told:
        options = jobs.broker_options(self._settings)
        connection = Connection(  # type: ignore[no-untyped-call]  # kombu
            options["broker_url"],
            transport_options={"socket_connect_timeout": WITHIN_S, "socket_timeout": WITHIN_S}
            | options.get("broker_transport_options", {}),
        )
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0)  # type: ignore[no-untyped-call]
            connection.default_channel  # noqa: B018 - asks Redis
        return {"broker": OK}


def _others(session: Session) -> Told:
    """Whether anybody does what this process leaves to others."""
    seen = seen_queues(session, now=utc_now())
    missing = [queue for queue in dict.fromkeys(jobs.QUEUE_OF.values()) if queue not in seen]
    silent = f"none for: {', '.join(missing)}"
    return {
        "workers": silent if missing else OK,
        UPKEEP: OK if UPKEEP in seen else "none; lost work is not handed on",
    }


def _told(name: str, answer: "Future[Told | Exception]") -> Told:
    if not answer.done():
        return {name: f"no answer within {WITHIN_S:g} s"}
    told = answer.result()
    if isinstance(told, Exception):
        if name == "broker":
            return {name: "does not answer; work begins late, by upkeep"}
        if isinstance(told, StorageAway):
            return {name: str(told)}
        found = outage_of(told)
        return {name: found.words if found else type(told).__name__}
    return dict(told)
