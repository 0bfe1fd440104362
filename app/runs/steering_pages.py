"""HTML routes of the queue: pause, resume, go first, try again; and the workers."""

from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.access import admin_only
from app.clock import utc_now
from app.deps import CurrentUser, FormDep, SessionDep
from app.pages import read_form, render, see_other
from app.runs import service, steering, workers
from app.runs.schemas import PriorityForm

router = APIRouter(include_in_schema=False)


@router.post("/runs/{run_id}/pause")
@admin_only
def pause_run_from_page(
    request: Request, run_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """Let a run wait."""
    steering.pause_run(session, service.get_run(session, run_id, by=user), by=user, now=utc_now())
    return see_other(request, "show_run", run_id=run_id)


@router.post("/runs/{run_id}/resume")
@admin_only
def resume_run_from_page(
    request: Request, run_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """Let a paused run go on."""
    steering.resume_run(session, service.get_run(session, run_id, by=user), by=user, now=utc_now())
    return see_other(request, "show_run", run_id=run_id)


@router.post("/runs/{run_id}/retry")
@admin_only
def retry_run_from_page(
    request: Request, run_id: UUID, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """Queue all failed trials of a run again."""
    steering.retry_failed(session, service.get_run(session, run_id, by=user), by=user, now=utc_now())
    return see_other(request, "show_run", run_id=run_id)


@router.post("/runs/{run_id}/priority")
@admin_only
def prioritise_from_page(
    request: Request, run_id: UUID, form: FormDep, session: SessionDep, user: CurrentUser
) -> RedirectResponse:
    """Let a run go before others, or behind them; a value that the page does not offer changes nothing."""
    run = service.get_run(session, run_id, by=user)
    given, _ = read_form(form, PriorityForm)
    if given is not None:
        steering.prioritise(session, run, given.priority, by=user)
    return see_other(request, "show_run", run_id=run_id)


@router.get("/workers")
@admin_only
def list_workers(request: Request, session: SessionDep, user: CurrentUser) -> Response:
    """Workers that were seen within the hour."""
    found = workers.all_workers(session, by=user, now=utc_now())
    return render(request, "runs/workers.html", fragment="runs/_workers.html", workers=found)
