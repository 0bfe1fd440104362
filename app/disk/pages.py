"""The page."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.disk import service
from app.pages import render

router = APIRouter(include_in_schema=False)


@router.get("/disk")
@admin_only
def show_disk(
    request: Request, session: SessionDep, storage: StorageDep, settings: SettingsDep, user: CurrentUser
) -> Response:
    """What uses the disk."""
    return render(
        request,
        "disk/show.html",
        uses=service.uses_of_disk(session, by=user),
        free=service.free_bytes(storage),
        datasets=service.largest_datasets(session),
        models=service.largest_models(session),
        keep_logs_days=settings.keep_logs_days,
        keep_checkpoints_days=settings.keep_checkpoints_days,
    )
