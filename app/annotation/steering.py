"""From which block somebody gets first questions: one behind which much may return to them.

What returns stands behind first questions about the same class. Whoever is slow, or gets whole pages, meets a
class so seldom that much of it would be left when first questions run out. So they get the block of the turn
about the class of which most returns to them. Blocks stay whole, and a class is ahead by one block at most.

Among many people nobody is steered: what returns to one returns to all the others, and a look at it takes
longer than leasing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Integer, bindparam
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.left_to_ask import people_at_work
from app.annotation.locking import LockedCampaign
from app.annotation.models import Question
from app.annotation.queue import FREE, RETURNING_FOR_ME, Block, Head, end_of_block, mine
from app.campaigns.draws import block_size

LOOKED_AT = 64  # that return to somebody, the first ones
FEWEST = 3  # of one class; fewer can wait
MOST_CLASSES = 3  # that are looked for
MOST_PEOPLE = 8  # at work; among more nobody is steered
# So long a count of people holds: of few, whose rows are soon counted, and of many. A crowd may come at once.
FEW_HOLDS, MANY_HOLDS = timedelta(milliseconds=250), timedelta(seconds=10)
MOST_KEPT = 1_000  # campaigns whose counts are remembered

_COUNTED: dict[UUID, tuple[datetime, int]] = {}  # people at work, and when they were counted

_FREE_OF_CLASS = FREE.where(
    Question.candidate_class == bindparam("class_", type_=Integer()),
    Question.rank < bindparam("before", type_=Integer()),
)


def steers(session: Session, campaign: LockedCampaign, *, now: datetime) -> bool:
    """Whether anything returns here, to so few people that it may pile up before one of them."""
    if not campaign.confirm_yes and campaign.overlap == 1:
        return False
    counted = _COUNTED.get(campaign.id)
    if counted is None or abs(now - counted[0]) >= (FEW_HOLDS if counted[1] <= MOST_PEOPLE else MANY_HOLDS):
        if len(_COUNTED) >= MOST_KEPT:
            _COUNTED.clear()
        counted = _COUNTED[campaign.id] = now, len(people_at_work(session, campaign.id))
    return counted[1] <= MOST_PEOPLE


def steered_block(session: Session, campaign: LockedCampaign, *, by: User, now: datetime) -> Head | None:
    """What is left of the block of which most returns to this person; None where little does.

    Its first question is locked, as that of `queue.first_block`.
    """
    if not steers(session, campaign, now=now):
        return None
    returning = session.scalars(RETURNING_FOR_ME, mine(campaign, by, now) | {"room": LOOKED_AT})
    return block_about(session, campaign, most_frequent(returning), by=by, now=now)


def most_frequent(returning: Iterable[int]) -> list[int]:
    """The classes of which most returns, by those of what does."""
    counted = Counter(returning).most_common(MOST_CLASSES)
    return [class_ for class_, count in counted if count >= FEWEST]


def block_about(
    session: Session, campaign: LockedCampaign, classes: Sequence[int], *, by: User, now: datetime
) -> Head | None:
    """The same about the first of these classes that this turn still has."""
    if not classes:
        return None
    values = mine(campaign, by, now) | {"room": 1}
    first = session.execute(FREE, values).one_or_none()
    if first is None:
        return None
    turn = campaign.num_classes * block_size(campaign.question_count, campaign.num_classes)
    for class_ in classes:
        of_class = {"class_": class_, "before": first.rank + turn}
        row = session.execute(_FREE_OF_CLASS, values | of_class).one_or_none()
        if row is not None:
            block = Block(class_, row.rank, end_of_block(campaign, row.rank))
            return Head(block, row.probability)
    return None
