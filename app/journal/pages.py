"""The journal as a page."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app.access import admin_only
from app.deps import CurrentUser, SessionDep
from app.journal import service
from app.journal.words import in_words
from app.pages import render

router = APIRouter(include_in_schema=False)

LINES = 100  # on one page
After = Annotated[int, Query(ge=1, le=2**63 - 1)]


@router.get("/journal")
@admin_only
def show_journal(
    request: Request,
    user: CurrentUser,
    session: SessionDep,
    campaign_id: UUID | None = None,
    after: After | None = None,
) -> Response:
    """Who did what, newest first; of one campaign, if given."""
    found = service.entries(session, by=user, campaign_id=campaign_id, before=after, limit=LINES + 1)
    return render(
        request,
        "journal.html",
        entries=found[:LINES],
        in_words=in_words,
        runs=service.runs_named(session, found[:LINES]),
        campaign_id=campaign_id,
        next_after=found[LINES - 1].id if len(found) > LINES else None,
        is_first=after is None,
    )
