"""What the JSON API of the journal returns."""

from datetime import datetime
from typing import Any
from uuid import UUID

from app.journal.models import Action
from app.schemas import Output


class EntryRead(Output):
    """One thing that somebody did, and from which address; `by_name` null: a rule of the program."""

    id: int
    at: datetime
    action: Action
    by_name: str | None
    campaign_id: UUID | None
    details: dict[str, Any]
    address: str


class JournalPage(Output):
    """Some lines, newest first; `next` goes into `before` for the following ones."""

    items: list[EntryRead]
    next: int | None
