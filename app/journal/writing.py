"""Writing down who did what. It leans on no feature, so that accounts write, too."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import and_, or_, select, update
from sqlalchemy.orm import Session

from app.db import LOG_LINES
from app.journal.models import Action, Entry

PERSON_ID = "person_id"  # in details beside a name: whose it is; for erasing, and shown to nobody
ADDRESS = "address"  # in a session's `info`: from where its request came


class Somebody(Protocol):
    """Who acts: all that the journal needs of a person."""

    @property
    def id(self) -> UUID: ...


class Named(Somebody, Protocol):
    """Whom an act is about."""

    @property
    def name(self) -> str: ...


def naming(person: Named) -> dict[str, Any]:
    """Details about a person, whom erasing finds again however they were called meanwhile."""
    return {"person": person.name, PERSON_ID: str(person.id)}


def forget(session: Session, person: Named, *, pseudonym: str, notes: Collection[str] = ()) -> None:
    """Take a person out of all lines: their name, how links called them, and from where they came.

    What was done, when and by whose account stays. The names of their tokens go, too.
    """
    details, is_own = Entry.details, Entry.by_id == person.id
    whose, named = details[PERSON_ID].as_string(), details["person"].as_string()
    about = or_(
        whose == str(person.id),
        and_(whose.is_(None), named == person.name),
        details["for"].as_string().in_(notes),
        and_(is_own, details["token"].as_string().is_not(None)),
    )
    for entry in session.scalars(select(Entry).where(about)):
        said = entry.details
        known = said.get(PERSON_ID)
        is_them = known == str(person.id) or (known is None and said.get("person") == person.name)
        hidden = {"person"} if is_them else set()
        hidden |= {"for"} if said.get("for") in notes else set()
        hidden |= {"token"} if entry.by_id == person.id else set()
        entry.details = said | dict.fromkeys(hidden & said.keys(), pseudonym)
        if entry.by_id is None:  # somebody who was not let in
            entry.address = ""
    session.flush()
    session.execute(update(Entry).where(is_own, Entry.address != "").values(address=""))


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
        details: what else a reader needs, as JSON. No tokens or secrets, and e-mail addresses only
            where `forget` finds them: in "for".
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
