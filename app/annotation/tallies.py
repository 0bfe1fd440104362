"""Running sums of answers, so that pages of a campaign with many answers need not count them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign


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
    sums: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(statements.COUNTS, 0))
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
    session.execute(statements.ADD_TO_TALLIES[session.get_bind().dialect.name], rows)


def take_back_finished(
    session: Session, campaign: Campaign, classes: Sequence[int], *, by: User, now: datetime
) -> None:
    """Note that questions about these classes wait again, though nobody took back an answer."""
    if not classes:
        return
    fixed = {"campaign_id": campaign.id, "user_id": by.id, "last_at": now}
    fixed |= dict.fromkeys(statements.COUNTS, 0)
    rows = [
        fixed | {"candidate_class": class_, "finished": -count} for class_, count in Counter(classes).items()
    ]
    session.execute(statements.ADD_TO_TALLIES[session.get_bind().dialect.name], rows)
