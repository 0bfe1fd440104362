"""The one stream that all pages of a browser share."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import StringConstraints
from sqlalchemy import select
from sqlalchemy.orm import selectinload
from sse_starlette import EventSourceResponse

from app.access import admin_only
from app.accounts.models import User
from app.clock import utc_now
from app.deps import CurrentUser
from app.runs import pages, queue
from app.runs.api import PING_S
from app.runs.events import Streams
from app.runs.following import Page, follow_all
from app.runs.models import Run
from app.runs.pieces import pieces_of
from app.runs.pulse import pulse_of

router = APIRouter(include_in_schema=False)

MOST_RUNS = 40  # of one browser
# The page of a run, or one of its further parts; browsers give it back as the page has it.
HEX = "[0-9a-f]"
Name = Annotated[
    str, StringConstraints(pattern=rf"^{HEX}{{8}}(-{HEX}{{4}}){{3}}-{HEX}{{12}}(/({'|'.join(pages.Part)}))?$")
]


@router.get("/live", response_class=EventSourceResponse)
@admin_only
async def follow_pages(
    request: Request, user: CurrentUser, run: Annotated[list[Name], Query(max_length=MOST_RUNS)]
) -> EventSourceResponse:
    """Server-sent events with what changes on pages of runs, each `ID` or `ID/PART`: "pieces", and "end"."""
    streams: Streams = request.app.state.streams
    streams.check()
    followed = [_page_of(streams, request, name, user) for name in dict.fromkeys(run)]
    return EventSourceResponse(
        follow_all(followed, streams), ping=PING_S, headers={"Cache-Control": "no-store"}
    )


def _page_of(streams: Streams, request: Request, name: str, user: User) -> Page:
    """The page that others follow already, or a new one; it is forgotten with the last who follows it."""
    page = streams.pages.get(name)
    if page is None:
        run, _, part = name.partition("/")
        run_id, shown = UUID(run), pages.Part(part or pages.Part.RESULT)
        look, render = partial(_look, request, run_id), partial(_render, request, run_id, user, shown)
        page = streams.pages[name] = Page(name, look, render)
    return page


def _look(request: Request, run_id: UUID) -> tuple[object, bool]:
    """What tells whether the page has changed, and whether the run is over; raises RunNotFound."""
    with request.app.state.database.read.begin() as session:
        pulse, over = pulse_of(session, run_id)
        run = session.scalars(select(Run).where(Run.id == run_id).options(selectinload(Run.trials))).one()
        asked = run.note, run.cancel_requested_at, run.paused_at, run.priority
        return (pulse, asked, queue.places(session, [run], now=utc_now())), over


def _render(request: Request, run_id: UUID, user: User, part: pages.Part) -> tuple[str, ...]:
    """The pieces of the run's page, without anything of the one who asked: no token of a form is in it."""
    headers = [*request.scope["headers"], (b"hx-request", b"true")]
    asked = Request({**request.scope, "headers": headers, "state": {}})
    with request.app.state.database.read.begin() as session:
        storage = request.app.state.storage
        shown = pages.show_run(
            request=asked, run_id=run_id, session=session, storage=storage, user=user, part=part
        )
        return pieces_of(bytes(shown.body).decode())
