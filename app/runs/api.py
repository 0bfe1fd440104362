"""JSON routes."""

from typing import Annotated
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from sqlalchemy.orm import Session
from sse_starlette import EventSourceResponse

from app.access import admin_only
from app.accounts.models import User
from app.campaigns import service as campaigns
from app.clock import utc_now
from app.deps import CurrentUser, ReadingDep, SessionDep, SettingsDep, StorageDep
from app.idempotency import OnceDep
from app.runs import service, steering
from app.runs.compare_schemas import ComparisonRead, SweepCreate, SweepRead
from app.runs.comparing import MOST, compare
from app.runs.describing import describe, put_away
from app.runs.events import Streams, follow, read_place
from app.runs.finding import find_runs
from app.runs.launching import launch, prepare, runs_of
from app.runs.list_schemas import RunsQuery
from app.runs.models import Run
from app.runs.pairs import look_at_pair
from app.runs.pulse import pulse_of
from app.runs.schemas import (
    MetricList,
    MetricRead,
    RunCreate,
    RunList,
    RunRead,
    RunSummary,
    RunUpdate,
)
from app.runs.weights import weights_asked_for

router = APIRouter(tags=["runs"])

Since = Annotated[
    str | None,
    Query(
        max_length=400,
        description="id of the last event that is known; 0 for each seed (0-0): from the start",
    ),
]
LastEventId = Annotated[
    str | None, Header(max_length=400, description="as since, which browsers send when they connect again")
]
PING_S = 15  # a comment that keeps proxies from closing a quiet stream


@router.post("/campaigns/{campaign_id}/runs", status_code=202)
@admin_only
def start_run(
    *,
    campaign_id: UUID,
    body: RunCreate,
    request: Request,
    response: Response,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
    settings: SettingsDep,
    once: OnceDep,
    user: CurrentUser,
) -> RunRead:
    """Freeze the campaign's labels and queue one trial per seed, by the recipe that fits the images."""
    with reading.begin() as looking:
        if made := once.made_before(looking):
            return _launched(request, response, looking, service.get_run(looking, UUID(made), by=user))
        campaign = campaigns.find_campaign(looking, campaign_id, by=user)
        labels = service.freeze_labels(
            looking,
            campaign,
            setting=body.setting,
            imported=body.imported_labels,
            uniform_only=body.uniform_only,
            by=user,
            storage=storage,
        )
        pair = look_at_pair(looking, storage, campaign, body.target_dataset_id, by=user)
        weights = weights_asked_for(settings.weights_dir, body.config, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):  # by the same request, which came meanwhile
        return _launched(request, response, session, service.get_run(session, UUID(made), by=user))
    run = service.start_run(
        session,
        labels,
        pair,
        method=body.method,
        setting=body.setting,
        preset=body.preset,
        seeds=body.seeds,
        config=body.config,
        weights=weights,
        note=body.note,
        processes=body.processes,
        download_weights=body.download_weights,
        by=user,
        now=now,
    )
    once.end(session, run.id)
    return _launched(request, response, session, run)


def _launched(request: Request, response: Response, session: Session, run: Run) -> RunRead:
    response.headers["Location"] = request.app.url_path_for("read_run", run_id=run.id)
    return read_back(session, run)


@router.get("/runs")
@admin_only
def read_runs(asked: Annotated[RunsQuery, Query()], session: SessionDep, user: CurrentUser) -> RunList:
    """Runs, newest first: all that were not put away, or those that the parameters name."""
    runs, following = find_runs(
        session, asked.wanted, by=user, sort=asked.sort, after=asked.after, limit=asked.limit
    )
    summaries = service.summaries(session, runs, now=utc_now())
    return RunList(items=[RunSummary.of(run, summaries[run.id]) for run in runs], next=following)


@router.get("/runs/compare")
@admin_only
def read_comparison(
    run: Annotated[
        list[UUID], Query(min_length=1, max_length=MOST, description="the first is compared with")
    ],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> ComparisonRead:
    """Up to twenty runs side by side: figures, curves, and how they differ from the first."""
    return ComparisonRead.of(compare(session, storage, run, by=user, now=utc_now()))


@router.get("/runs/{run_id}")
@admin_only
def read_run(run_id: UUID, session: SessionDep, user: CurrentUser) -> RunRead:
    """One run with its trials."""
    return read_back(session, service.get_run(session, run_id, by=user))


@router.patch("/runs/{run_id}")
@admin_only
def edit_run(run_id: UUID, body: RunUpdate, session: SessionDep, user: CurrentUser) -> RunRead:
    """Change what is written beside a run or which it goes before, put it away or take it out again."""
    run = service.get_run(session, run_id, by=user)
    describe(session, run, name=body.name, note=body.note, tags=body.tags, by=user)
    if body.priority is not None:
        steering.prioritise(session, run, body.priority, by=user)
    if body.archived is not None:
        put_away(session, run, away=body.archived, by=user, now=utc_now())
    return read_back(session, run)


@router.get("/runs/{run_id}/metrics")
@admin_only
def read_metrics(run_id: UUID, session: SessionDep, user: CurrentUser) -> MetricList:
    """What the trials reported after each epoch, by seed and epoch."""
    run = service.get_run(session, run_id, by=user)
    trials = {trial.id: trial for trial in run.trials}
    items = [
        MetricRead.of(run, trials[metric.trial_id], metric) for metric in service.metrics_of(session, run)
    ]
    return MetricList(items=sorted(items, key=lambda item: (item.seed, item.epoch)))


@router.get(
    "/runs/{run_id}/events",
    response_class=EventSourceResponse,
    responses={
        200: {
            "description": "The stream",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
@admin_only
async def read_events(
    run_id: UUID, request: Request, since: Since = None, last_event_id: LastEventId = None
) -> EventSourceResponse:
    """Server-sent events: "epoch" with its figures, "update" when a trial changes or gets on, "end".

    An event's id says what was told by then. Give the last one that you have as `since`, and the stream goes
    on behind it, however long ago that was.
    """
    streams: Streams = request.app.state.streams
    sessions = request.app.state.database.read
    streams.check()

    def check() -> tuple[int, ...] | None:
        with sessions.begin() as session:
            pulse, _ = pulse_of(session, run_id)
        given = since if last_event_id is None else last_event_id  # a browser that comes again names its last
        return None if given is None else read_place(given, len(pulse["trials"]))

    known = await anyio.to_thread.run_sync(check, limiter=streams.limiter)
    return EventSourceResponse(
        follow(run_id, sessions, streams, known), ping=PING_S, headers={"Cache-Control": "no-store"}
    )


@router.post("/runs/{run_id}/cancel")
@admin_only
def cancel_run(run_id: UUID, session: SessionDep, user: CurrentUser) -> RunRead:
    """Ask for the end of a run; its trials end within seconds."""
    run = service.get_run(session, run_id, by=user)
    service.cancel_run(session, run, by=user, now=utc_now())
    return read_back(session, run)


@router.post("/runs/{run_id}/sweeps", status_code=202)
@admin_only
def launch_sweep(
    *,
    run_id: UUID,
    body: SweepCreate,
    session: SessionDep,
    reading: ReadingDep,
    storage: StorageDep,
    once: OnceDep,
    user: CurrentUser,
) -> SweepRead:
    """Launch runs beside one: the paper's methods, or methods times seeds times numbers of labels."""
    with reading.begin() as looking:
        run = service.get_run(looking, run_id, by=user)
        if made := once.made_before(looking):
            return _sweep(looking, UUID(made), user)
        sweep = body.beside(run)
        prepared = prepare(looking, storage, run, sweep, by=user)
    now = utc_now()
    if made := once.begin(session, now=now):  # by the same request, which came meanwhile
        return _sweep(session, UUID(made), user)
    runs = launch(session, run, sweep, prepared, by=user, now=now)
    sweep_id = runs[0].sweep_id
    assert sweep_id is not None  # all runs of a launch have one
    once.end(session, sweep_id)
    return _sweep(session, sweep_id, user)


def _sweep(session: Session, sweep_id: UUID, user: User) -> SweepRead:
    runs = runs_of(session, sweep_id, by=user)
    summaries = service.summaries(session, runs, now=utc_now())
    return SweepRead(sweep_id=sweep_id, items=[RunSummary.of(run, summaries[run.id]) for run in runs])


def read_back(session: Session, run: Run) -> RunRead:
    """A run as it is now, for the answer."""
    summary = service.summaries(session, [run], now=utc_now())[run.id]
    return RunRead.read(run, summary, service.recipe_of(session, run))
