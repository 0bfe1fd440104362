"""Writing down who did what, and reading it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Integer, Uuid, column, select, table
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal.models import Action, Entry
from app.journal.writing import PERSON_ID, naming, write

__all__ = ["ShownEntry", "entries", "naming", "runs_named", "write"]

# Features write here, and none of them may be imported.
RUN = table("run", column("id", Uuid), column("number", Integer))


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One line of the journal."""

    id: int
    at: datetime
    action: Action
    by_name: str | None  # None: the program itself
    campaign_id: UUID | None
    details: Mapping[str, Any]
    address: str  # from where; "" where no request asked for it


def entries(
    session: Session, *, by: User, campaign_id: UUID | None = None, before: int | None = None, limit: int
) -> Sequence[ShownEntry]:
    """The newest lines, older than `before`; of one campaign, if given.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    columns = (Entry.id, Entry.at, Entry.action, User.name, Entry.campaign_id, Entry.details, Entry.address)
    query = select(*columns).outerjoin(User, User.id == Entry.by_id)
    if campaign_id is not None:
        query = query.where(Entry.campaign_id == campaign_id)
    if before is not None:
        query = query.where(Entry.id < before)
    rows = session.execute(query.order_by(Entry.id.desc()).limit(limit))
    shown = [ShownEntry(*row) for row in rows]
    return [replace(entry, details=_without_id(entry.details)) for entry in shown]


def runs_named(session: Session, lines: Sequence[ShownEntry]) -> dict[int, UUID]:
    """Ids of the runs that lines name by their numbers; those that are gone have none."""
    numbers = {line.details["run"] for line in lines if isinstance(line.details.get("run"), int)}
    rows = session.execute(select(RUN.c.number, RUN.c.id).where(RUN.c.number.in_(numbers)))
    return dict(rows.all())


def _without_id(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != PERSON_ID}
