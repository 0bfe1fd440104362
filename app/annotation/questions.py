"""Putting a campaign's drawn questions into the table, as fast as the database takes them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg import Cursor
from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from app.annotation.models import Purpose, Question
from app.campaigns.draws import Draws

COLUMNS = (
    "campaign_id",
    "example_id",
    "round",
    "candidate_class",
    "probability",
    "purpose",
    "rank",
    "least",
    "slots",
)


def forget_questions(session: Session, campaign_id: UUID) -> None:
    """Delete what an opening that was cut off has left; nobody has seen it."""
    session.execute(delete(Question).where(Question.campaign_id == campaign_id))


def add_questions(
    session: Session,
    campaign_id: UUID,
    draws: Draws,
    *,
    example_ids: Mapping[int, int],
    probability: float,
    overlap: int,
    start: int,
    stop: int,
) -> None:
    """Insert the questions `start` to `stop` (exclusive) of the asking order.

    Args:
        session: a writing one.
        campaign_id: whose questions they are.
        draws: all of them.
        example_ids: id of the example at each position.
        probability: with which each class was drawn.
        overlap: yes/no answers that each question needs at least.
        start: first rank.
        stop: one after the last rank.
    """
    part = slice(start, stop)
    drawn = zip(
        draws.positions[part].tolist(),
        draws.rounds[part].tolist(),
        draws.classes[part].tolist(),
        draws.ranks[part].tolist(),
        strict=True,
    )
    rows = [
        (
            campaign_id,
            example_ids[position],
            round_,
            class_,
            probability,
            Purpose.LABELLING,
            rank,
            overlap,
            overlap,
        )
        for position, round_, class_, rank in drawn
    ]
    if session.get_bind().dialect.name == "postgresql":
        _copy(session, rows)
    else:
        session.execute(
            insert(Question), [dict(zip(COLUMNS, row, strict=True)) | {"is_waiting": True} for row in rows]
        )


def _copy(session: Session, rows: Sequence[tuple[object, ...]]) -> None:
    cursor = session.connection().connection.cursor()
    assert isinstance(cursor, Cursor)  # psycopg is the one driver we support
    names = ", ".join(COLUMNS)
    with cursor.copy(f"COPY question ({names}, is_waiting) FROM STDIN") as copy:
        for row in rows:
            copy.write_row((*row, True))
