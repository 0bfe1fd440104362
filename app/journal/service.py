"""Writing down who did what, and reading it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.journal.models import Action, Entry


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One line of the journal."""

    id: int
    at: datetime
    action: Action
    by_name: str | None  # None: the program itself
    campaign_id: UUID | None
    details: Mapping[str, Any]


def write(
    session: Session,
    action: Action,
    *,
    by: User | None,
    campaign_id: UUID | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write down what is being done, in its own transaction: what does not happen is not in the journal.

    Args:
        session: of what is done.
        action: what.
        by: who; None where a rule of the program did it.
        campaign_id: where, if in a campaign.
        details: what else a reader needs, as JSON. No addresses, tokens or secrets.
    """
    entry = Entry(
        action=action, by_id=by.id if by else None, campaign_id=campaign_id, details=dict(details or {})
    )
    session.add(entry)


def entries(
    session: Session, *, by: User, campaign_id: UUID | None = None, before: int | None = None, limit: int
) -> Sequence[ShownEntry]:
    """The newest lines, older than `before`; of one campaign, if given.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    query = select(Entry.id, Entry.at, Entry.action, User.name, Entry.campaign_id, Entry.details).outerjoin(
        User, User.id == Entry.by_id
    )
    if campaign_id is not None:
        query = query.where(Entry.campaign_id == campaign_id)
    if before is not None:
        query = query.where(Entry.id < before)
    rows = session.execute(query.order_by(Entry.id.desc()).limit(limit))
    return [ShownEntry(*row) for row in rows]
