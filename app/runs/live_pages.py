"""The one stream that all pages of a browser share."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import selectinload
from sse_starlette import EventSourceResponse

from app.access import admin_only
from app.accounts.models import User
from app.clock import utc_now
from app.deps import CurrentUser
from app.runs import pages, queue, service
from app.runs.api import PING_S
from app.runs.events import Streams
from app.runs.following import Page, follow_all
from app.runs.models import Run
from app.runs.pieces import pieces_of

router = APIRouter(include_in_schema=False)

MOST_RUNS = 40  # of one browser


@router.get("/live", response_class=EventSourceResponse)
@admin_only
async def follow_pages(
    request: Request, user: CurrentUser, run: Annotated[list[UUID], Query(max_length=MOST_RUNS)]
) -> EventSourceResponse:
    """Server-sent events with what changes on the pages of these runs: "pieces", and "end"."""
    streams: Streams = request.app.state.streams
    streams.check()
    followed = [_page_of(streams, request, run_id, user) for run_id in dict.fromkeys(run)]
    return EventSourceResponse(
        follow_all(followed, streams), ping=PING_S, headers={"Cache-Control": "no-store"}
    )


def _page_of(streams: Streams, request: Request, run_id: UUID, user: User) -> Page:
    """The page that others follow already, or a new one; it is forgotten with the last who follows it."""
    key = run_id, str(request.base_url)  # addresses in it begin with what the browser calls us
    page = streams.pages.get(key)
    if page is None:
        look, render = partial(_look, request, run_id), partial(_render, request, run_id, user)
        page = streams.pages[key] = Page(run_id, look, render)
    return page


def _look(request: Request, run_id: UUID) -> tuple[object, bool]:
    """What tells whether the page has changed, and whether the run is over; raises RunNotFound."""
    with request.app.state.database.read.begin() as session:
        pulse, over = service.pulse(session, run_id)
        run = session.scalars(select(Run).where(Run.id == run_id).options(selectinload(Run.trials))).one()
        asked = run.note, run.cancel_requested_at, run.paused_at, run.priority
        return (pulse, asked, queue.places(session, [run], now=utc_now())), over


def _render(request: Request, run_id: UUID, user: User) -> tuple[str, ...]:
    """The pieces of the run's page, without anything of the one who asked: no token of a form is in it."""
    headers = [*request.scope["headers"], (b"hx-request", b"true")]
    asked = Request({**request.scope, "headers": headers, "state": {}})
    with request.app.state.database.read.begin() as session:
        return pieces_of(bytes(pages.show_run(asked, run_id, session, user).body).decode())
