"""Writing down who did what, and reading it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal.models import Action, Entry
from app.journal.writing import PERSON_ID, naming, write

__all__ = ["ShownEntry", "entries", "naming", "write"]


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


def _without_id(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != PERSON_ID}
