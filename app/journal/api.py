"""JSON routes of the journal."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from app.access import admin_only
from app.deps import CurrentUser, SessionDep
from app.journal import schemas, service

router = APIRouter(tags=["journal"])

Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[int, Query(ge=1, le=2**63 - 1)]


@router.get("/journal")
@admin_only
def read_journal(
    user: CurrentUser,
    session: SessionDep,
    campaign_id: UUID | None = None,
    after: After | None = None,
    limit: Limit = 100,
) -> schemas.JournalPage:
    """Who did what, newest first; of one campaign, if given."""
    found = service.entries(session, by=user, campaign_id=campaign_id, before=after, limit=limit + 1)
    return schemas.JournalPage(
        items=[schemas.EntryRead.model_validate(entry) for entry in found[:limit]],
        next=found[limit - 1].id if len(found) > limit else None,
    )
