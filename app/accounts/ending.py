"""What ends with somebody's way in: for good, whatever they become again."""

import enum
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import JSON, String, Uuid, column, select, table, update
from sqlalchemy.orm import Session

from app.accounts.credentials import end_credentials
from app.accounts.models import Invitation, User
from app.db import UtcDateTime
from app.journal import writing as journal
from app.journal.models import Action

# As much of them as is needed here: their features know accounts, not the other way round.
WORKER_LINK = table("worker_link", column("created_by_id", Uuid()), column("ended_at", UtcDateTime()))
SUBSCRIPTION = table(
    "subscription",
    column("created_by_id", Uuid()),
    column("url", String()),
    column("events", JSON()),
    column("ended_at", UtcDateTime()),
    column("ended_because", String()),
)


class Because(enum.StrEnum):
    """By what somebody's way in has ended."""

    ACCOUNT_DISABLED = "account-disabled"
    ROLE_CHANGED = "role-changed"
    PERSON_ERASED = "person-erased"
    TURNED_AWAY = "turned-away"  # by their organisation
    TAKEN_OVER = "taken-over"  # an organisation's account has the address


def end_all(session: Session, user: User, *, because: Because, by: User | None, now: datetime) -> None:
    """End a person's sessions, tokens, subscriptions, and the links that they made.

    `by`: who does what ends them; None where a rule does, or somebody who holds the database.
    """
    end_credentials(session, user.id, now=now)
    own = WORKER_LINK.c.created_by_id == user.id, WORKER_LINK.c.ended_at.is_(None)
    session.execute(update(WORKER_LINK).where(*own).values(ended_at=now))
    session.execute(
        update(Invitation)
        .where(
            Invitation.invited_by_id == user.id,
            Invitation.accepted_at.is_(None),
            Invitation.expires_at > now,
        )
        .values(expires_at=now)
    )
    _end_subscriptions(session, user, because=because, by=by, now=now)


def _end_subscriptions(
    session: Session, user: User, *, because: Because, by: User | None, now: datetime
) -> None:
    own = SUBSCRIPTION.c.created_by_id == user.id, SUBSCRIPTION.c.ended_at.is_(None)
    found = session.execute(select(SUBSCRIPTION.c.url, SUBSCRIPTION.c.events).where(*own)).all()
    if not found:
        return
    session.execute(update(SUBSCRIPTION).where(*own).values(ended_at=now, ended_because=because.value))
    for url, events in found:
        facts = subscription_facts(url, events)
        facts |= {**journal.naming(user), "because": because.value}
        journal.write(session, Action.SUBSCRIPTION_ENDED, by=by, details=facts)


def subscription_facts(url: str | None, events: list[str]) -> dict[str, Any]:
    """What the journal says of a subscription: the host alone, because an address may hold a secret."""
    return {"to": "mail" if url is None else urlsplit(url).hostname, "events": ", ".join(events)}
