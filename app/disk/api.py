"""The JSON route."""

from fastapi import APIRouter

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, SettingsDep, StorageDep
from app.disk import service
from app.disk.schemas import DiskRead, DiskUseRead

router = APIRouter(tags=["disk"])


@router.get("/disk")
@admin_only
def read_disk_use(
    session: SessionDep, storage: StorageDep, settings: SettingsDep, user: CurrentUser
) -> DiskRead:
    """What uses the disk, as upkeep found it within the last hour, and how long things are kept."""
    found = service.uses_of_disk(session, by=user)
    return DiskRead(
        items=[DiskUseRead.model_validate(use) for use in found],
        measured_at=found[0].measured_at if found else None,
        free_bytes=storage.free_bytes(),
        keep_logs_days=settings.keep_logs_days,
        keep_checkpoints_days=settings.keep_checkpoints_days,
    )
