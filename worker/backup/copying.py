"""`clarinet backup` and `clarinet restore`: rows as one moment has them, and every file once.

A backup is a folder with a date: its rows, and a manifest that names each file by its digest. The files
themselves lie beside all backups under their digests, so what a former one has is not copied again.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from app.clock import utc_now
from app.db import Database
from app.errors import AppError
from app.migrate import Schema, revision_of, revision_of_code, schema_of, upgrade
from app.runs.workers import own_version
from app.storage import UNFINISHED, About, Storage, StoredFileMissing
from worker.backup import rows

MANIFEST, ROWS, FILES = "manifest.json", "rows", "files"
BLOCK = 1024 * 1024


class BackupRefused(AppError):
    """A backup cannot be made or restored like this."""

    title = "Backup refused"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of storage: its digest, and by what one knows that it is the same still."""

    sha256: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class Backup:
    """What was copied, and where it lies."""

    path: Path
    rows: int
    files: int
    copied: int
    copied_bytes: int
    gone: int = 0  # files that were deleted while they were to be copied


def backup(database: Database, storage: Storage, target: Path, *, keep: int | None = None) -> Backup:
    """Copy all rows as they are at this moment, and all files that are not in `target` yet.

    Nobody waits for it: the rows are read in one transaction that only looks. Files do not change once they
    are written, so those that the rows name are there when the rows have been read, but for what people or
    upkeep delete meanwhile: that is counted.

    Args:
        database: of the schema that this program has.
        storage: what its rows refer to.
        target: a folder of backups; it is made, and only its owner may read it.
        keep: so many backups stay, the newest; None: all.

    Raises:
        BackupRefused: the schema is another one, another backup is being made there, or the folder is a part
            of what is to be copied.
    """
    if storage.holds(target):
        raise BackupRefused(
            f"{target} is inside {storage.words}, which is to be copied. Choose another folder."
        )
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    made_at = utc_now()
    with _alone(target), tempfile.TemporaryDirectory(dir=target, prefix=UNFINISHED) as folder:
        new = Path(folder)
        (new / ROWS).mkdir()
        with database.read.begin() as session:
            schema, revision = schema_of(session.connection()), revision_of(session.connection())
            if schema is not Schema.CURRENT:
                raise BackupRefused(
                    f"The database's schema is {schema}. Make the backup with the version that it belongs to."
                )
            counts = {
                table.name: rows.write(session, table, new / ROWS / f"{table.name}.jsonl.gz")
                for table in rows.tables()
            }
        before = list(storage.listed())
        files, copied, copied_bytes = _copy_files(storage, before, target)
        manifest = {
            "made_at": made_at.isoformat(),
            "version": own_version(),
            "revision": revision,
            "rows": counts,
            "row_digests": {name: _digest(new / ROWS / f"{name}.jsonl.gz") for name in counts},
            "files": {key: asdict(kept) for key, kept in files.items()},
        }
        (new / MANIFEST).write_text(json.dumps(manifest, indent=1))
        # On the disk before a former one goes.
        for written in (*(new / ROWS).iterdir(), new / MANIFEST, new / ROWS, new, *_folders(target / FILES)):
            _sync(written)
        path = target / made_at.strftime("%Y-%m-%dT%H-%M-%S-%fZ")
        new.rename(path)
        new.mkdir()  # what the block's end removes
        _sync(target)
        if keep:
            forget(target, keep=keep)
    gone = len(before) - len(files)
    return Backup(path, sum(counts.values()), len(files), copied, copied_bytes, gone)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """One backup at a time: what one copies, another that ends must not take for forgotten."""
    with (target / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupRefused(f"Another backup into {target} is being made. Wait for its end.") from None
        yield


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _folders(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield root
        yield from (path for path in root.iterdir() if path.is_dir())


def backups(target: Path) -> list[Path]:
    """The backups in a folder, the oldest first."""
    return sorted(path.parent for path in target.glob(f"[0-9]*/{MANIFEST}"))


def forget(target: Path, *, keep: int) -> None:
    """Delete all backups but the newest, and the files that none of those names."""
    found = backups(target)
    for path in found[:-keep]:
        shutil.rmtree(path)
    named = {kept["sha256"] for path in found[-keep:] for kept in _manifest(path)["files"].values()}
    for path in (target / FILES).glob("*/*"):
        if path.name not in named:
            path.unlink()


def restore(database: Database, storage: Storage, source: Path) -> Backup:
    """Bring a backup back into a database without rows and a folder without files.

    Everything is looked at before the first row is written, and all rows come with one transaction.

    Raises:
        BackupRefused: something is there already, the backup is damaged, or another version made it.
    """
    manifest = _manifest(source)
    kept = {key: Kept(**value) for key, value in manifest["files"].items()}
    here = revision_of_code()
    if here != manifest["revision"]:
        raise BackupRefused(
            f"The backup has the schema {manifest['revision']} of Clarinet {manifest['version']}, and this "
            f"program has {here}. Restore it with that version, then upgrade."
        )
    _require_whole(source, manifest, kept)
    if next(storage.listed(), None) is not None:
        raise BackupRefused(f"There are files in {storage.words} already. Restore into a new place of data.")
    upgrade(database.engine)
    with database.read.begin() as session:
        for table in rows.tables():
            if session.scalar(select(func.count()).select_from(table)):
                raise BackupRefused(f"The database has rows already ({table.name}). Restore into a new one.")
    try:
        for key, file in kept.items():
            with storage.create(key) as sink, _place(source.parent, file.sha256).open("rb") as found:
                shutil.copyfileobj(found, sink, BLOCK)
        with database.write.begin() as session:
            for table in rows.tables():
                rows.read(session, table, source / ROWS / f"{table.name}.jsonl.gz")
    except BaseException:
        for folder in {key.partition("/")[0] for key in kept}:  # nothing half done: it can be tried again
            storage.delete_tree(folder)
        raise
    return Backup(
        source, sum(manifest["rows"].values()), len(kept), len(kept), sum(file.size for file in kept.values())
    )


def _require_whole(source: Path, manifest: Mapping[str, Any], kept: Mapping[str, Kept]) -> None:
    for name, digest in manifest["row_digests"].items():
        if _digest(source / ROWS / f"{name}.jsonl.gz") != digest:
            raise BackupRefused(f"The backup is damaged: rows of {name} are not what was written.")
    for key, file in kept.items():
        path = _place(source.parent, file.sha256)
        if not path.exists() or _digest(path) != file.sha256:
            raise BackupRefused(f"The backup is damaged: {key} is missing or not what was written.")


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise BackupRefused(f"{path} is no backup: it has no readable {MANIFEST}.") from error
    return manifest


def _copy_files(storage: Storage, there: Iterable[About], target: Path) -> tuple[dict[str, Kept], int, int]:
    """Every file by its key; those that were copied now, and their bytes."""
    former = backups(target)
    known = _manifest(former[-1])["files"] if former else {}
    found: dict[str, Kept] = {}
    copied = copied_bytes = 0
    for about in there:
        before = Kept(**known[about.key]) if about.key in known else None
        if before and (before.size, before.version) == (about.size, about.version):
            place = _place(target, before.sha256)
            if place.exists() and place.stat().st_size == before.size:
                found[about.key] = before
                continue
        try:
            digest, size, is_new = _take(storage, about.key, target)
        except StoredFileMissing:  # deleted meanwhile
            continue
        found[about.key] = Kept(digest, size, about.version)
        copied += is_new
        copied_bytes += size * is_new
    return found, copied, copied_bytes


def _take(storage: Storage, key: str, target: Path) -> tuple[str, int, bool]:
    """Copy a file under its digest; digest, size, and whether it was not there yet."""
    (target / FILES).mkdir(exist_ok=True, mode=0o700)
    with (
        storage.open(key) as source,
        tempfile.NamedTemporaryFile(dir=target / FILES, prefix=UNFINISHED, delete=False) as copy,
    ):
        try:
            digest = hashlib.sha256()
            while block := source.read(BLOCK):
                digest.update(block)
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
        except BaseException:
            Path(copy.name).unlink()
            raise
    place = _place(target, digest.hexdigest())
    is_new = not place.exists()
    place.parent.mkdir(exist_ok=True, mode=0o700)
    Path(copy.name).replace(place)
    return place.name, place.stat().st_size, is_new


def _place(target: Path, digest: str) -> Path:
    return target / FILES / digest[:2] / digest


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
