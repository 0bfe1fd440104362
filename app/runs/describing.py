"""What people write beside runs, which no training follows from: name, note, tags, and what they put away."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import User
from app.campaigns import noting
from app.campaigns.models import Campaign
from app.journal.models import Action
from app.runs.models import Run


def describe(
    session: Session,
    run: Run,
    *,
    name: str | None = None,
    note: str | None = None,
    tags: Sequence[str] | None = None,
    by: User,
) -> None:
    """Write name, note and tags of a run in place of those that are there; what is None stays.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    given = {"name": name, "note": note, "tags": None if tags is None else list(dict.fromkeys(tags))}
    changed = {key: value for key, value in given.items() if value is not None and value != getattr(run, key)}
    for key, value in changed.items():
        setattr(run, key, value)
    if changed:
        told = {key: ", ".join(value) if isinstance(value, list) else value for key, value in changed.items()}
        _journal(session, run, told, by=by)


def put_away(session: Session, run: Run, *, away: bool, by: User, now: datetime) -> None:
    """Put a run into the archive, or take it out; doing so twice is doing so once.

    Raises:
        NotAllowed: `by` is no admin.
    """
    accounts.require_admin(by)
    if away == (run.archived_at is not None):
        return
    run.archived_at = now if away else None
    _journal(session, run, {"archived": "yes" if away else "no"}, by=by)


def _journal(session: Session, run: Run, facts: dict[str, str], *, by: User) -> None:
    campaign = session.get_one(Campaign, run.campaign_id)
    noting.note(session, Action.RUN_CHANGED, campaign, by=by, details={"run": run.number, **facts})
