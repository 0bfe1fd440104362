"""/metrics for Prometheus: what this process served, and what the database says of everybody's work."""

import asyncio
import ipaddress
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import clock
from app.access import public
from app.addresses import address_of
from app.annotation.models import Tally
from app.clock import utc_now
from app.db import Database
from app.deps import ROUTE
from app.disk.models import DiskUse
from app.questions import Question
from app.runs.models import Run, Trial, TrialState, Worker
from app.runs.workers import DOCTOR, live_workers, own_version

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
UNKNOWN = "unknown"  # a route; addresses that nobody serves must not each become a series
WITHIN_S = 5.0
FORMAT = "text/plain; version=0.0.4; charset=utf-8"


log = structlog.get_logger()


class Metrics:
    """The counters of one application, and what it reads when somebody asks."""

    def __init__(self, database: Database, folder: Path) -> None:
        """
        Args:
            database: of which everybody's work is read.
            folder: on the disk that must not become full.
        """
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "clarinet_requests", "Requests served.", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "clarinet_request_seconds",
            "Seconds from a request to the end of its answer.",
            ["method", "route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._from_database = Question(lambda: _from(database))
        self._from_disk = Question(lambda: _room(folder))

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that is over."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    async def text(self) -> bytes:
        """Everything, as Prometheus reads it; without what the database tells where that hangs."""
        asked = [self._from_database.asked(), self._from_disk.asked()]
        await asyncio.wait(map(asyncio.wrap_future, asked), timeout=WITHIN_S)
        told = [each.result() if each.done() else None for each in asked]
        found, room = (each if isinstance(each, list) else [] for each in told)
        given = _Given([*_own(is_up=bool(found)), *room, *found])
        return generate_latest(self.registry) + generate_latest(given)


class _Given(CollectorRegistry):
    """Metrics that are there already."""

    def __init__(self, metrics: list[Metric]) -> None:
        super().__init__()
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """These."""
        yield from self._metrics


def _from(database: Database) -> list[Metric]:
    """What every process would tell alike; nothing where the database is away."""
    try:
        with database.read.begin() as session:
            return [*_work(session), *_workers(session), *_disk(session)]
    except SQLAlchemyError as error:
        log.warning("metrics.no_database", error=type(error).__name__)
        return []


def _room(folder: Path) -> list[Metric]:
    """What is free on the disk of this process's data."""
    usage = shutil.disk_usage(folder)
    words = "Room on the disk of this process's data folder, and how large that disk is."
    return [_gauge("disk_room_bytes", words, "kind", [("free", usage.free), ("total", usage.total)])]


def _own(*, is_up: bool) -> Iterator[Metric]:
    answers = GaugeMetricFamily("clarinet_database_up", "Whether the database answered just now.")
    answers.add_metric([], 1.0 if is_up else 0.0)
    yield answers
    version = GaugeMetricFamily("clarinet_version", "1, with the version.", labels=["version"])
    version.add_metric([own_version()], 1.0)
    yield version
    ahead = GaugeMetricFamily(
        "clarinet_clock_ahead_seconds", "How far this host's clock is ahead of the database's."
    )
    ahead.add_metric([], clock.host_ahead_s())
    yield ahead


def _gauge(name: str, words: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(f"clarinet_{name}", words, labels=[label])
    for value, number in values:
        family.add_metric([value], number)
    return family


def _work(session: Session) -> Iterator[Metric]:
    counted: dict[Any, int] = dict(
        session.execute(select(Trial.state, func.count()).group_by(Trial.state)).all()
    )
    states = [(state.value, float(counted.get(state, 0))) for state in TrialState]
    yield _gauge("trials", "Trainings by state.", "state", states)
    query = select(func.min(Run.created_at)).join(Trial, Trial.run_id == Run.id)
    oldest = session.scalar(query.where(Trial.state == TrialState.QUEUED, Run.paused_at.is_(None)))
    waited = (utc_now() - oldest).total_seconds() if oldest else 0.0
    waiting = GaugeMetricFamily(
        "clarinet_oldest_waiting_run_seconds", "Since the oldest run was started of which a training waits."
    )
    waiting.add_metric([], max(0.0, waited))
    yield waiting
    kinds = (Tally.yes, Tally.no, Tally.unsure, Tally.unusable)
    sums = session.execute(select(*(func.coalesce(func.sum(kind), 0) for kind in kinds))).one()
    yield _gauge(
        "answers",
        "Answers that stand; their rate is answers a second.",
        "value",
        zip(("yes", "no", "unsure", "unusable"), map(float, sums), strict=True),
    )


def _workers(session: Session) -> Iterator[Metric]:
    silent = GaugeMetricFamily(
        "clarinet_silent_seconds",
        "How long ago a worker, upkeep or web process said that it is there.",
        labels=["name", "queues"],
    )
    now = utc_now()
    for worker in session.scalars(select(Worker).where(Worker.queues != DOCTOR).order_by(Worker.name)):
        silent.add_metric([worker.name, worker.queues], max(0.0, (now - worker.seen_at).total_seconds()))
    yield silent
    troubled = GaugeMetricFamily(
        "clarinet_workers_in_trouble", "Workers that take no trainings until what they lack is there."
    )
    there = [worker for worker in live_workers(session, now=now) if worker.trouble]
    troubled.add_metric([], float(len(there)))
    yield troubled


def _disk(session: Session) -> Iterator[Metric]:
    used = session.scalars(select(DiskUse).order_by(DiskUse.kind))
    yield _gauge(
        "disk_used_bytes",
        "What lies on the disk, added up once an hour.",
        "kind",
        [(row.kind.value, float(row.size_bytes)) for row in used],
    )


def route_of(scope: Scope, prefix: str) -> str | None:
    """The route that served a request, with the names of its parameters; None: nobody serves the address."""
    route: str | None = scope["state"].get(ROUTE)
    # The framework leaves out under what a router was included.
    if route is None or not scope["path"].startswith(prefix) or route.startswith(prefix):
        return route
    return prefix + route


class Measured:
    """Counts every request with its time, by the route that served it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, prefix: str) -> None:
        self.app = app
        self.prefix = prefix
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})  # which layers that copy the scope share
        started, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note)
        finally:
            route = route_of(scope, self.prefix)
            method = scope["method"] if route else ""
            self.metrics.note(method, route or UNKNOWN, status, time.perf_counter() - started)


@public
async def show_metrics(request: Request) -> Response:
    """What is measured, for the addresses that the operator names."""
    allowed = request.app.state.settings.metrics_networks
    try:
        caller = ipaddress.ip_address(address_of(request))
    except ValueError:
        caller = None
    if caller is None or not any(caller in network for network in allowed):
        return PlainTextResponse("Only addresses of CLARINET_METRICS_FROM may read this.\n", 403)
    metrics: Metrics = request.app.state.metrics
    return Response(await metrics.text(), media_type=FORMAT, headers={"Cache-Control": "no-store"})


ROUTES = [Route("/metrics", show_metrics, methods=["GET"])]
