"""Adding up what uses the disk: a walk over all files, which upkeep takes once an hour."""

from collections import Counter
from datetime import datetime
from pathlib import Path, PurePosixPath

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.db import Database
from app.disk.models import DiskKind, DiskUse
from app.registry import service as registry
from app.runs import labels, trials
from app.storage import Storage

# Folders of storage, and what lies in them; those of trials have two kinds.
_KIND_OF = {
    "datasets": DiskKind.DATASETS,
    "uploads": DiskKind.UPLOADS,
    labels.FOLDER: DiskKind.SNAPSHOTS,
    registry.FOLDER: DiskKind.MODELS,
    trials.FOLDER: DiskKind.CHECKPOINTS,
}


def measure(database: Database, storage: Storage, *, now: datetime) -> None:
    """Add up all files and keep the sums; no transaction is open during the walk."""
    sizes, files = Counter[DiskKind](), Counter[DiskKind]()
    for about in storage.listed():
        kind = _kind(PurePosixPath(about.key))
        sizes[kind] += about.size
        files[kind] += 1
    sizes[DiskKind.DATABASE], files[DiskKind.DATABASE] = _database(database.read)
    with database.write.begin() as session:
        for kind in DiskKind:
            session.merge(DiskUse(kind=kind, size_bytes=sizes[kind], files=files[kind], measured_at=now))


def _kind(path: PurePosixPath) -> DiskKind:
    kind = _KIND_OF.get(path.parts[0], DiskKind.OTHER)
    return DiskKind.LOGS if kind is DiskKind.CHECKPOINTS and path.name == trials.LOG else kind


def _database(reading: sessionmaker[Session]) -> tuple[int, int]:
    """Bytes and files of the database; a server's are not counted one by one."""
    with reading.begin() as session:
        url = session.get_bind().engine.url
        if url.get_backend_name() == "postgresql":
            return session.scalars(select(func.pg_database_size(func.current_database()))).one(), 0
    path = Path(url.database or "")
    found = [file.stat().st_size for file in path.parent.iterdir() if _is_of(file, path)]
    return sum(found), len(found)


def _is_of(file: Path, database: Path) -> bool:
    return file.name == database.name or file.name.startswith(f"{database.name}-")
