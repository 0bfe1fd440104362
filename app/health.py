"""Is the process alive, and could it serve: for supervisors and load balancers."""

import shutil

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy import text

from app.access import public
from app.migrate import is_at_head

router = APIRouter(include_in_schema=False)
MIN_FREE_BYTES = 200 * 1024 * 1024


@router.get("/healthz")
@public
async def healthz() -> dict[str, str]:
    """The process answers; touches nothing."""
    return {"status": "ok"}


@router.get("/readyz")
@public
def readyz(request: Request) -> JSONResponse:
    """The database can be written, its schema is current, and there is room on the disk."""
    state = request.app.state
    checks: dict[str, str] = {}
    try:
        # Begins a writing transaction (IMMEDIATE on SQLite), which fails where nothing can be written.
        with state.database.write.begin() as session:
            session.execute(text("SELECT 1"))
            checks["database"] = "ok"
            checks["migrations"] = "ok" if is_at_head(session.connection()) else "run: clarinet db upgrade"
    except Exception as error:
        # The edge of the process: whatever a driver raises means "not ready", and a probe must get an answer.
        checks["database"] = type(error).__name__
    try:
        free = shutil.disk_usage(state.settings.data_dir).free
        checks["disk"] = "ok" if free > MIN_FREE_BYTES else f"{free // 1024**2} MB left"
    except OSError as error:
        checks["disk"] = type(error).__name__
    ready = all(value == "ok" for value in checks.values())
    return JSONResponse({"status": "ok" if ready else "not ready", **checks}, 200 if ready else 503)
