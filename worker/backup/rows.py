"""Rows as lines of JSON, the same for each database: so a backup of one can be restored into the other."""

import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, Enum, MetaData, Table, Uuid, bindparam, func, insert, select, text, update
from sqlalchemy.orm import Session

import app.models  # noqa: F401  (fills Base.metadata)
from app.db import Base, UtcDateTime

AT_ONCE = 2000  # rows that are in memory


def tables() -> list[Table]:
    """All tables, each behind those that it refers to."""
    return list(Base.metadata.sorted_tables)


def write(session: Session, table: Table, path: Path) -> int:
    """Write all rows of a table, as the session's transaction sees them; how many there were."""
    count = 0
    query = select(table).order_by(*table.primary_key.columns)
    found = session.execute(query, execution_options={"yield_per": AT_ONCE})
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
        for row in found:
            file.write(json.dumps(list(row), default=_plain, separators=(",", ":")) + "\n")
            count += 1
    return count


def read(session: Session, table: Table, path: Path) -> int:
    """Insert the rows of a file into an empty table; how many there were."""
    kinds = list(table.columns)
    # A JSON column that is empty holds NULL; SQLAlchemy would write the word null.
    copy = table.to_metadata(MetaData())
    for column in copy.columns:
        if isinstance(column.type, JSON):
            column.type = JSON(none_as_null=True)
    # Rows that name others of their own table do so once all are there.
    own = [key.parent.name for key in table.foreign_keys if key.column.table is table]
    later: list[dict[str, Any]] = []
    count = 0
    for lines in _blocks(path):
        rows = [
            {kind.name: _typed(kind.type, value) for kind, value in zip(kinds, line, strict=True)}
            for line in lines
        ]
        for row in rows:
            if any(row[name] is not None for name in own):
                later.append({f"own_{name}": row[name] for name in own} | {"own_id": row["id"]})
                row.update(dict.fromkeys(own))
        session.execute(insert(copy), rows)
        count += len(rows)
    if later:
        named: dict[str, Any] = {name: bindparam(f"own_{name}") for name in own}
        session.connection().execute(
            update(copy).where(copy.c.id == bindparam("own_id")).values(**named), later
        )
    _count_on(session, table)
    return count


def _count_on(session: Session, table: Table) -> None:
    """New rows are numbered behind those that were inserted with their numbers; SQLite does so by itself."""
    number = table.autoincrement_column
    if number is None or session.get_bind().dialect.name != "postgresql":
        return
    last = session.scalar(select(func.max(number)))
    if last is not None:
        place = {"table": f'"{table.name}"', "column": number.name, "last": last}
        session.execute(text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)"), place)


def _blocks(path: Path) -> Iterator[list[list[Any]]]:
    block: list[list[Any]] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            block.append(json.loads(line))
            if len(block) == AT_ONCE:
                yield block
                block = []
    if block:
        yield block


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return value.hex
    raise TypeError(f"no JSON for {type(value).__name__}")


def _typed(kind: object, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, UtcDateTime):
        return datetime.fromisoformat(value)
    if isinstance(kind, Uuid):
        return UUID(value)
    if isinstance(kind, Enum) and kind.enum_class is not None:
        return kind.enum_class(value)
    return value
