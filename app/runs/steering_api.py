"""JSON routes of the queue: pause, resume, try again; and the workers."""

from uuid import UUID

from fastapi import APIRouter

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, SessionDep
from app.runs import service, steering, workers
from app.runs.api import read_back
from app.runs.schemas import RunRead, TryAgain
from app.runs.worker_schemas import WorkerProcess, WorkerProcessList

router = APIRouter(tags=["runs"])


@router.post("/runs/{run_id}/pause")
@admin_only
def pause_run(run_id: UUID, session: SessionDep, user: CurrentUser) -> RunRead:
    """Let a run wait; what trains is checkpointed and handed back within seconds."""
    run = service.get_run(session, run_id, by=user)
    steering.pause_run(session, run, by=user, now=utc_now())
    return read_back(session, run)


@router.post("/runs/{run_id}/resume")
@admin_only
def resume_run(run_id: UUID, session: SessionDep, user: CurrentUser) -> RunRead:
    """Let a paused run go on from its checkpoints."""
    run = service.get_run(session, run_id, by=user)
    steering.resume_run(session, run, by=user, now=utc_now())
    return read_back(session, run)


@router.post("/runs/{run_id}/retry")
@admin_only
def retry_run(run_id: UUID, body: TryAgain, session: SessionDep, user: CurrentUser) -> RunRead:
    """Queue failed trials again; each goes on from its last checkpoint, if it has one."""
    run = service.get_run(session, run_id, by=user)
    steering.retry_failed(session, run, seeds=body.seeds, by=user, now=utc_now())
    return read_back(session, run)


@router.get("/workers")
@admin_only
def read_worker_processes(session: SessionDep, user: CurrentUser) -> WorkerProcessList:
    """Workers that were seen within the hour: what they are, and what they train."""
    found = workers.all_workers(session, by=user, now=utc_now())
    return WorkerProcessList(items=[WorkerProcess.of(worker) for worker in found])
