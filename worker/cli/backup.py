"""The commands that copy an installation and bring it back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from app.db import Database, connect
from app.settings import Settings
from app.storage import Storage
from app.stores.chosen import storage_of
from worker.backup import copying


@contextmanager
def _installation() -> Iterator[tuple[Database, Storage]]:
    settings = Settings()
    database = connect(settings.sqlalchemy_url)
    try:
        yield database, storage_of(settings)
    finally:
        database.dispose()


def run_backup(target: Path, *, keep: int | None) -> None:
    """Make one and say what it holds."""
    with _installation() as (database, storage):
        made = copying.backup(database, storage, target, keep=keep)
    new = f"{made.copied:,} of them copied now ({made.copied_bytes / 1024**2:,.1f} MB)"
    gone = f" {made.gone:,} were deleted meanwhile and are not in it." if made.gone else ""
    typer.echo(f"{made.path}: {made.rows:,} rows, {made.files:,} files, {new}.{gone}")


def run_restore(source: Path) -> None:
    """Bring one back and say what it held."""
    with _installation() as (database, storage):
        found = copying.restore(database, storage, source)
    typer.echo(f"Restored {found.rows:,} rows and {found.files:,} files of {found.path.name}.")
