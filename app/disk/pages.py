"""The page."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, status
from fastapi.responses import RedirectResponse, Response
from pydantic import AwareDatetime

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.disk import service
from app.pages import render, with_query
from app.spelling import query_of

router = APIRouter(include_in_schema=False)
NEVER = "1970-01-01T00:00:00Z"  # where nothing has been added up yet

Since = Annotated[AwareDatetime | None, Query()]


@router.get("/disk", openapi_extra=query_of("since"))
@admin_only
def show_disk(
    *,
    request: Request,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
    user: CurrentUser,
    since: Since = None,
) -> Response:
    """What uses the disk; asks for itself until it was added up again after `since`."""
    uses = service.uses_of_disk(session, by=user)
    return render(
        request,
        "disk/show.html",
        fragment="disk/_uses.html",
        uses=uses,
        sums_now=service.sums_now(session),
        is_counting=since is not None and (not uses or uses[0].measured_at <= since),
        free=storage.free_bytes(),
        datasets=service.largest_datasets(session),
        models=service.largest_models(session),
        keep_logs_days=settings.keep_logs_days,
        keep_checkpoints_days=settings.keep_checkpoints_days,
    )


@router.post("/disk")
@admin_only
def count_disk_again(request: Request, session: SessionDep, user: CurrentUser) -> RedirectResponse:
    """Have it added up now."""
    last = service.count_again(session, by=user)
    again = with_query(request, "show_disk", since=last.isoformat() if last else NEVER)
    return RedirectResponse(again, status.HTTP_303_SEE_OTHER)
