"""Writing down who did what. It leans on no feature, so that accounts write, too."""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy.orm import Session

from app.db import LOG_LINES
from app.journal.models import Action, Entry

ADDRESS = "address"  # in a session's `info`: from where its request came


class Somebody(Protocol):
    """Who acts: all that the journal needs of a person."""

    @property
    def id(self) -> UUID: ...


def write(
    session: Session,
    action: Action,
    *,
    by: Somebody | None,
    campaign_id: UUID | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write down what is being done, in its own transaction: what does not happen is not in the journal.

    Where a request asked for it, a line of the log says the same once the transaction has committed.

    Args:
        session: of what is done; its `info` may say from where it was asked for.
        action: what.
        by: who; None where a rule of the program did it.
        campaign_id: where, if in a campaign.
        details: what else a reader needs, as JSON. No e-mail addresses, tokens or secrets.
    """
    address = session.info.get(ADDRESS, "")
    by_id = by.id if by else None
    entry = Entry(
        action=action, by_id=by_id, campaign_id=campaign_id, details=dict(details or {}), address=address
    )
    session.add(entry)
    if ADDRESS not in session.info:
        return
    facts = {name: str(value) for name, value in (("user", by_id), ("campaign", campaign_id)) if value}
    session.info.setdefault(LOG_LINES, []).append((f"journal.{action}", facts | {"address": address}))
