"""UMAPs of what the map shows: asked for, waiting, given up, read back. Workers compute them."""

import io
from datetime import datetime
from importlib.util import find_spec
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app import claims, jobs
from app.claims import MAX_ATTEMPTS
from app.mistakes.drawing import Layout
from app.mistakes.errors import MapNotKept, UmapNotInstalled, UmapNotMade
from app.mistakes.finding import Seen
from app.mistakes.models import Umap, UmapState
from app.registry.kept_pictures import MOST_ON_MAP
from app.storage import Storage

FOLDER = "umap"  # among a model's files
MOST_POINTS = 2 * MOST_ON_MAP
LEAST_POINTS = 10  # of fewer there are no neighbourhoods
LONGEST_S = 600.0  # of computing one; 2,000 points take less than a minute
WAITS = Umap.state.in_([UmapState.QUEUED, UmapState.RUNNING])
NOT_INSTALLED = (
    "UMAP needs the package umap-learn, which is not installed on this server: pip install 'clarinet[umap]', "
    "then start it again."
)
DIED = (
    f"The UMAP was started {MAX_ATTEMPTS} times and its worker died each time. Look at the worker's log, "
    "then ask for it again."
)
HOW = {
    None: "Nobody has asked for this trial's UMAP yet. Ask for it, and a worker computes it.",
    UmapState.QUEUED: "The UMAP waits for a worker.",
    UmapState.READY: "The UMAP is there.",
    UmapState.RUNNING: "A worker computes the UMAP; that takes less than a minute on most machines.",
}


def is_installed() -> bool:
    """Whether this environment has the package; it is looked for, not loaded."""
    return find_spec("umap") is not None


def key_of(model_key: str, claim_number: int) -> str:
    """Where an attempt keeps its places: among the model's files, which are deleted with it."""
    return f"{model_key}/{FOLDER}/{claim_number}.npy"


def umap_of(session: Session, seen: Seen) -> Umap | None:
    """That of a trial's model, wherever it stands; None: nobody asked for it."""
    return session.scalar(select(Umap).where(Umap.model_id == seen.model.id))


def ask_for_umap(session: Session, seen: Seen, *, now: datetime) -> Umap:
    """Let a worker compute the UMAP of a trial's map; asking twice is asking once, unless it failed.

    Raises:
        MapNotKept: the trial has no map.
        UmapNotInstalled: this server has not the package.
    """
    if not len(seen.kept.map_rows):
        raise MapNotKept
    if not is_installed():
        raise UmapNotInstalled(NOT_INSTALLED)
    found = umap_of(session, seen)
    if found is None:
        try:
            with session.begin_nested():
                found = Umap(model_id=seen.model.id, asked_at=now)
                session.add(found)
        except IntegrityError:  # somebody else asked a moment ago
            return session.scalars(select(Umap).where(Umap.model_id == seen.model.id)).one()
    elif found.state is UmapState.FAILED:
        again = update(Umap).where(Umap.id == found.id, Umap.state == UmapState.FAILED)
        session.execute(
            again.values(state=UmapState.QUEUED, failure=None, attempts=0, asked_at=now, finished_at=None)
        )
        session.refresh(found)
    else:
        return found
    jobs.enqueue(session, jobs.MAKE_UMAP, found.id)
    return found


def places_of(storage: Storage, umap: Umap | None) -> NDArray[np.float32]:
    """(P, 2) places of the pictures on the map, in its order.

    Raises:
        UmapNotMade: it is not there; the sentence says why.
        StoredFileMissing, StoredFileDamaged: the server has lost its file.
    """
    if umap is None or umap.state is not UmapState.READY:
        raise UmapNotMade(words_of(umap))
    assert umap.key is not None and umap.digest is not None  # noqa: PT018 - it is ready
    data = storage.read_as_written(umap.key, umap.digest)
    places: NDArray[np.float32] = np.load(io.BytesIO(data), allow_pickle=False)
    return places


def shown(session: Session, storage: Storage, seen: Seen, layout: Layout) -> NDArray[np.float32] | None:
    """The places of a map by UMAP; None of one by components. Raises like `places_of`."""
    return places_of(storage, umap_of(session, seen)) if layout is Layout.UMAP else None


def words_of(umap: Umap | None) -> str:
    """Why it is not there."""
    if umap is not None and umap.state is UmapState.FAILED:
        return umap.failure or DIED
    return HOW[None if umap is None else umap.state]


def waiting_umaps(session: Session, now: datetime) -> list[UUID]:
    """Those that nobody works on, oldest first."""
    return claims.waiting_ids(session, Umap, WAITS, order=Umap.asked_at, now=now)


def give_up_umaps(session: Session, now: datetime) -> None:
    """Fail those whose worker died MAX_ATTEMPTS times."""
    claims.give_up(session, Umap, WAITS, now=now, state=UmapState.FAILED, failure=DIED, finished_at=now)
