"""Running sums of answers, so that pages of a campaign with many answers need not count them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import statements
from app.annotation.models import AnswerValue
from app.annotation.turns import Turn


@dataclass(frozen=True, slots=True)
class Change:
    """What one answer adds; as `statements.ADD_TO_TALLIES` takes it."""

    candidate_class: int
    value: AnswerValue | None  # None: nobody's answer
    is_first: bool  # on the question's first slot: before any confirmation
    response_ms: int | None
    finished: int  # 1: the question stopped waiting, -1: it waits again


def take_out_of_tallies(
    session: Session, turn: Turn, changes: Sequence[Change], *, by: User, now: datetime
) -> None:
    """Take what this person's undone answers added out of the sums again."""
    rows = [asdict(change) for change in changes]
    if rows:
        statements.ADD_TO_TALLIES.run(session, rows, campaign=turn.id, me=by.id, now=now, sign=-1)


def take_back_finished(
    session: Session, turn: Turn, classes: Sequence[int], *, by: User, now: datetime
) -> None:
    """Note that questions about these classes wait again, though nobody took back an answer."""
    changes = [
        Change(class_, value=None, is_first=False, response_ms=None, finished=count)
        for class_, count in Counter(classes).items()
    ]
    take_out_of_tallies(session, turn, changes, by=by, now=now)
