"""Task: place a map's pictures by UMAP, in a process of its own that is given so much time and no more."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app import claims
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.errors import AppError
from app.mistakes import umaps
from app.mistakes.models import Umap, UmapState
from app.registry.kept_pictures import kept_pictures
from app.registry.models import Model
from app.storage import StorageAway, StorageRefused
from worker.apart import ImportFailed, ImportInterrupted, read_apart
from worker.beating import Stopped, beating, renewing
from worker.context import Context

log = structlog.get_logger()


class UmapFailed(AppError):
    """There is no UMAP of these pictures; the sentence says why."""


def make_umap(context: Context, umap_id: UUID) -> None:
    """Compute one and keep it beside its model's files, or do nothing if somebody else is at it.

    Safe to deliver twice and to lose. Equal maps give equal places.
    """
    with context.unit_of_work() as session:
        claim = claims.claim(
            session,
            Umap,
            umap_id,
            umaps.WAITS,
            by=f"{os.uname().nodename}:{os.getpid()}",
            now=utc_now(),
            state=UmapState.RUNNING,
        )
    if claim is None:
        return
    about = {"umap_id": str(umap_id), "attempt": claim.number}
    start = time.monotonic()
    try:
        key, digest = _make(context, claim)
        with context.unit_of_work() as session:
            claims.release(
                session, claim, state=UmapState.READY, key=key, digest=digest, finished_at=utc_now()
            )
    except ClaimLost:
        log.warning("umap.lost", **about)
    except StorageRefused as refusal:  # another worker's store may not; the last one says why
        with suppress(ClaimLost), context.unit_of_work() as session:
            if claims.is_last_attempt(session, claim):
                _fail(session, claim, refusal.sentence)
            else:
                claims.release(session, claim, state=UmapState.QUEUED)
        log.warning("umap.refused", **about, reason=str(refusal))
    except (Stopped, StorageAway) as reason:
        with suppress(ClaimLost), context.unit_of_work() as session:
            claims.hand_back(session, claim, state=UmapState.QUEUED)
        log.warning("umap.handed_back", **about, reason=str(reason))
    except ImportInterrupted as reason:  # its process was killed; another attempt may succeed
        with suppress(ClaimLost), context.unit_of_work() as session:
            claims.release(session, claim, state=UmapState.QUEUED)
        log.warning("umap.interrupted", **about, reason=str(reason))
    except AppError as refusal:
        with suppress(ClaimLost), context.unit_of_work() as session:
            _fail(session, claim, refusal.detail)
        log.info("umap.failed", **about, reason=refusal.detail)
    else:
        log.info("umap.ended", **about, took_s=round(time.monotonic() - start, 1))


def _fail(session: Session, claim: Claim, failure: str) -> None:
    claims.release(session, claim, state=UmapState.FAILED, failure=failure, finished_at=utc_now())


def _make(context: Context, claim: Claim) -> tuple[str, str]:
    """The key and the digest of what was kept."""
    with context.reading() as session:
        row = session.get(Umap, claim.id)
        model = None if row is None else session.get(Model, row.model_id)
        if model is None:  # deleted a moment ago, and this with it
            raise ClaimLost
        session.expunge(model)
    beat = renewing(context, claim)
    kept = beating(lambda: kept_pictures(context.patient, model), beat)
    points = 0 if kept is None else len(kept.map_rows)
    if kept is None or points < umaps.LEAST_POINTS:
        raise UmapFailed(f"The map shows {points} pictures, and UMAP needs at least {umaps.LEAST_POINTS}.")
    if points > umaps.MOST_POINTS:
        raise UmapFailed(f"The map shows {points} pictures, and UMAP takes at most {umaps.MOST_POINTS}.")
    if not umaps.is_installed():
        raise UmapFailed(umaps.NOT_INSTALLED)
    data = _placed(context, kept.map_places, beat)
    key = umaps.key_of(model.key, claim.number)
    return key, beating(lambda: context.patient.put(key, data), beat)


def _placed(context: Context, places: NDArray[np.float32], renew: Callable[[], None]) -> bytes:
    """Places in two dimensions, as a file of numpy; the process that finds them is dead afterwards."""
    deadline = time.monotonic() + umaps.LONGEST_S

    def beat(_message: Mapping[str, Any]) -> None:
        if context.is_stopping():
            raise Stopped
        if time.monotonic() > deadline:
            raise UmapFailed(f"The UMAP took longer than {umaps.LONGEST_S:.0f} s on this machine.")
        renew()

    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.npy"), Path(folder, "found.npy")
        np.save(given, places)
        request = {
            "given": str(given),
            "found": str(found),
            "folder": folder,
            "cpu_s": int(umaps.LONGEST_S) + 60,
        }
        try:
            read_apart("worker.umapping_apart", request, name="The UMAP", beat=beat)
        except ImportFailed as failure:
            raise UmapFailed(
                "The UMAP failed because of a fault on our side; the worker's log says more."
            ) from failure
        return found.read_bytes()
