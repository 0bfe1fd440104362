"""Work that one process at a time may do, decided by its row: claim, renew, write while it is still ours.

A claim number rises with each claim. Every later write of the claimed work names the number it was given. A
write with an old number changes no row. So a process that was believed dead cannot undo its successor.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, CursorResult, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Mapped, Session, mapped_column

LEASE = timedelta(seconds=30)
BEAT_S = 5.0
MAX_ATTEMPTS = 3
WAITING_AT_ONCE = 20  # that are looked for; more follow when these are done


class Claimable:
    """Columns of work that is claimed; mixed into a mapped class that has a UUID `id`."""

    id: Mapped[UUID]
    claim_number: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    claimed_until: Mapped[datetime | None] = mapped_column(default=None)
    claimed_by: Mapped[str | None] = mapped_column(default=None)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one row until somebody else takes it."""

    model: type[Claimable]
    id: UUID
    number: int


class ClaimLost(Exception):
    """Somebody else has taken the work over, or it was ended; stop without writing."""


def unclaimed(model: type[Claimable], now: datetime) -> ColumnElement[bool]:
    """Whether a row is free to be claimed: never held, given back, or its holder went silent."""
    return or_(model.claimed_until.is_(None), model.claimed_until < now)


def waiting_ids(
    session: Session,
    model: type[Claimable],
    *waiting: ColumnElement[bool],
    order: InstrumentedAttribute[datetime],
    now: datetime,
) -> list[UUID]:
    """Ids of work that nobody does, and that was not tried too often, in this order."""
    free = select(model.id).where(*waiting, unclaimed(model, now), model.attempts < MAX_ATTEMPTS)
    return list(session.scalars(free.order_by(order).limit(WAITING_AT_ONCE)))


def claim(
    session: Session,
    model: type[Claimable],
    row_id: UUID,
    *waiting: ColumnElement[bool],
    by: str,
    now: datetime,
    **values: Any,
) -> Claim | None:
    """Take the work for `by`; None if somebody holds it or a condition of `waiting` does not hold.

    `values` are further columns to set in the same statement.
    """
    taken = _update(
        session,
        update(model)
        .where(model.id == row_id, unclaimed(model, now), *waiting)
        .values(
            claim_number=model.claim_number + 1,
            attempts=model.attempts + 1,
            claimed_until=now + LEASE,
            claimed_by=by,
            **values,
        ),
    )
    if not taken:
        return None
    number = session.scalar(select(model.claim_number).where(model.id == row_id))
    assert number is not None  # the row was updated a statement ago, in this transaction
    return Claim(model, row_id, number)


def write(session: Session, claim: Claim, **values: Any) -> None:
    """Change columns of the claimed row.

    Raises:
        ClaimLost: the claim is not ours any more; nothing was written.
    """
    held = claim.model.claim_number == claim.number, claim.model.claimed_until.is_not(None)
    if not _update(session, update(claim.model).where(claim.model.id == claim.id, *held).values(**values)):
        raise ClaimLost


def renew(session: Session, claim: Claim, *, now: datetime, **values: Any) -> None:
    """Hold the claim for another lease; raises ClaimLost like `write`."""
    write(session, claim, claimed_until=now + LEASE, **values)


def release(session: Session, claim: Claim, **values: Any) -> None:
    """Write a last time and give the row back; raises ClaimLost like `write`."""
    write(session, claim, claimed_until=None, claimed_by=None, **values)


def hand_back(session: Session, claim: Claim, **values: Any) -> None:
    """Give the row back for another, where the attempt is nobody's failure; raises ClaimLost like `write`."""
    release(session, claim, attempts=claim.model.attempts - 1, **values)


def is_last_attempt(session: Session, claim: Claim) -> bool:
    """Whether nobody tries this work again where this attempt counts as a failed one."""
    attempts = session.scalar(select(claim.model.attempts).where(claim.model.id == claim.id))
    return attempts is not None and attempts >= MAX_ATTEMPTS


def give_up(
    session: Session, model: type[Claimable], *waiting: ColumnElement[bool], now: datetime, **values: Any
) -> list[UUID]:
    """End work whose holder went silent MAX_ATTEMPTS times, with these values; gives its rows' ids."""
    ended = (
        update(model)
        .where(*waiting, unclaimed(model, now), model.attempts >= MAX_ATTEMPTS)
        .values(claimed_until=None, claimed_by=None, **values)
        .returning(model.id)
    )
    return list(session.scalars(ended, execution_options={"synchronize_session": False}))


def _update(session: Session, statement: Any) -> bool:
    result = session.execute(statement, execution_options={"synchronize_session": False})
    assert isinstance(result, CursorResult)
    return result.rowcount == 1
