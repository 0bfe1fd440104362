"""What lies in storage and no row names: its writer died before the row was there, or its row was lost.

Upkeep leaves it alone, since it may be another database's. An operator who knows better deletes it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, select

from app.datasets.models import Dataset, DatasetVersion
from app.db import Database
from app.errors import AppError
from app.labels.models import LabelImport
from app.migrate import Schema, schema_of
from app.registry import service as registry
from app.runs import labels, trials
from app.runs.models import DeletedRun, Run, Trial
from app.storage import About, Storage

REST = timedelta(days=1)  # an upload, a launch or a training writes files before a row names them


@dataclass(slots=True)
class Leftover:
    """One thing that no row names: a key, or what all its keys begin with."""

    key: str
    files: int
    size_bytes: int
    changed_at: datetime


class NotItsFiles(AppError):
    """Whoever asks has named another database, or another place of files, than belong together."""

    def __init__(self, storage: Storage, strange: int, lying: int) -> None:
        super().__init__(
            f"The database knows {lying - strange} of {lying} things in {storage.words}. Set a database and "
            "a place of files that belong together, CLARINET_DATABASE_URL and CLARINET_DATA_DIR or "
            "CLARINET_S3_BUCKET."
        )


class AnotherVersion(AppError):
    """The database may name files in a way that this version does not know."""

    def __init__(self) -> None:
        super().__init__(
            "The database has the schema of another version; use that one, or: clarinet db upgrade"
        )


@dataclass(frozen=True, slots=True)
class _Kind:
    """A folder of storage, whose names are ids or digests, and the rows that know them."""

    folder: str
    rows: tuple[Select[Any], ...]  # of one column: ids, or digests
    ending: str = ""

    def key_of(self, key: str) -> str | None:
        """What is named as a whole, of a key in it; None: it is none of ours."""
        if not key.startswith(f"{self.folder}/"):
            return None
        name = key.removeprefix(f"{self.folder}/").partition("/")[0]
        return f"{self.folder}/{name}" if name.endswith(self.ending) else None


# In this order: uploads of labels lie in the folder of uploads.
KINDS = (
    _Kind("datasets", (select(Dataset.id),)),
    _Kind("uploads/labels", (select(LabelImport.id),)),
    _Kind("uploads", (select(Dataset.id), select(DatasetVersion.id))),
    _Kind(trials.FOLDER, (select(Trial.id),)),
    _Kind(registry.FOLDER, (select(Trial.id),)),
    _Kind(
        labels.FOLDER,
        (
            select(Run.snapshot_digest),
            select(DeletedRun.snapshot_digest).where(DeletedRun.snapshot_digest.is_not(None)),
        ),
        ending=".npz",
    ),
)


def leftovers(database: Database, storage: Storage, *, now: datetime) -> list[Leftover]:
    """What no row names and nobody has written to for a day, by key.

    Files are looked at before rows: a row that comes meanwhile is seen.

    Raises:
        NotItsFiles: the database knows less than half of what lies there.
        AnotherVersion: it has not the schema that this code knows.
    """
    found = _lying(storage.listed())
    named = _named(database)
    strange = found.keys() - named
    if strange and len(strange) > len(found) / 2:
        raise NotItsFiles(storage, len(strange), len(found))
    old = (each for key, each in found.items() if key not in named and each.changed_at <= now - REST)
    return sorted(old, key=lambda each: each.key)


def delete_leftovers(
    database: Database, storage: Storage, *, now: datetime, on_deleted: Callable[[Leftover], None]
) -> None:
    """Delete them; each is looked at again just before, and tells that it is gone."""
    for each in leftovers(database, storage, now=now):
        about = storage.about(each.key)
        there = _lying(iter([about]) if about else storage.listed(each.key))
        still = there.get(each.key)
        if still is None or still.changed_at > now - REST or each.key in _named(database):
            continue
        if about:
            storage.delete(each.key)
        else:
            storage.delete_tree(each.key)
        on_deleted(each)


def _lying(files: Iterator[About]) -> dict[str, Leftover]:
    """What lies there, named or not, by its key."""
    found: dict[str, Leftover] = {}
    for about in files:
        key = next(filter(None, (kind.key_of(about.key) for kind in KINDS)), None)
        if key is None:
            continue
        each = found.setdefault(key, Leftover(key, 0, 0, about.changed_at))
        each.files += 1
        each.size_bytes += about.size
        each.changed_at = max(each.changed_at, about.changed_at)
    return found


def _named(database: Database) -> set[str]:
    with database.read.begin() as session:
        if schema_of(session.connection()) is not Schema.CURRENT:
            raise AnotherVersion
        return {
            f"{kind.folder}/{name}{kind.ending}"
            for kind in KINDS
            for rows in kind.rows
            for name in session.scalars(rows)
        }
