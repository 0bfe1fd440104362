"""Running sums of answers, so that pages of a campaign with many answers need not count them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import AnswerValue, Tally
from app.campaigns.models import Campaign

COUNTS = ("yes", "no", "unsure", "first_yes", "first_no", "finished", "timed", "active_ms")
KEYS = ("campaign_id", "user_id", "candidate_class")


@dataclass(frozen=True, slots=True)
class Change:
    """What one answer adds."""

    candidate_class: int
    value: AnswerValue
    is_first: bool  # on the question's first slot: before any confirmation
    response_ms: int | None
    finished: int  # 1: the question stopped waiting, -1: it waits again


def add_to_tallies(
    session: Session,
    campaign: Campaign,
    changes: Sequence[Change],
    *,
    by: User,
    now: datetime,
    sign: int = 1,
) -> None:
    """Add what this person's answers change; `sign` -1 takes an undone answer out again."""
    sums: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for change in changes:
        row = sums[change.candidate_class]
        row[change.value] += sign
        if change.is_first and change.value is not AnswerValue.UNSURE:
            row[f"first_{change.value}"] += sign
        if change.response_ms is not None:
            row["timed"] += sign
            row["active_ms"] += sign * change.response_ms
        row["finished"] += sign * change.finished
    fixed = {"campaign_id": campaign.id, "user_id": by.id, "last_at": now}
    rows = [fixed | {"candidate_class": class_} | row for class_, row in sums.items()]
    dialect_insert = postgresql_insert if session.get_bind().dialect.name == "postgresql" else sqlite_insert
    statement = dialect_insert(Tally).values(rows)
    added = {name: getattr(Tally, name) + statement.excluded[name] for name in COUNTS}
    session.execute(
        statement.on_conflict_do_update(
            index_elements=KEYS, set_=added | {"last_at": statement.excluded.last_at}
        )
    )
