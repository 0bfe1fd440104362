"""The command that finds what no row names."""

import json

import typer

from app.clock import utc_now
from app.database_clock import know_time
from app.db import connect
from app.disk.leftovers import Leftover, delete_leftovers, leftovers
from app.settings import Settings
from app.stores.chosen import storage_of


def run_leftovers(*, delete: bool, as_json: bool) -> None:
    """List them, or delete them and say which."""
    settings = Settings()
    database, storage = connect(settings.sqlalchemy_url), storage_of(settings)
    try:
        know_time(database.engine)
        found: list[Leftover] = []
        if delete:
            delete_leftovers(database, storage, now=utc_now(), on_deleted=found.append)
        else:
            found = leftovers(database, storage, now=utc_now())
    finally:
        database.dispose()
    if as_json:
        rows = [{"key": each.key, "files": each.files, "size_bytes": each.size_bytes} for each in found]
        typer.echo(json.dumps({"deleted": delete, "items": rows}))
        return
    for each in found:
        typer.echo(f"{each.size_bytes / 1024**2:>10,.1f} MB  {each.key}  ({each.changed_at:%Y-%m-%d})")
    size = f"{sum(each.size_bytes for each in found) / 1024**2:,.1f} MB"
    if not found:
        typer.echo(f"Every file in {storage.words} is known to the database, or younger than a day.")
    elif delete:
        typer.echo(f"Deleted {len(found)} things that no row names: {size}.")
    else:
        typer.echo(
            f"No row of this database names these {len(found)}: {size}. Where no other installation keeps "
            f"files in {storage.words}, delete them: clarinet leftovers --delete"
        )
