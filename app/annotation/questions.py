"""Putting a campaign's drawn questions into the table, as fast as the database takes them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg import Cursor
from sqlalchemy import delete, insert, update
from sqlalchemy.orm import Session

from app.annotation.models import Purpose, Question
from app.campaigns.draws import Draws
from app.campaigns.sampling import EVALUATED

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
    "drawing",
    "is_waiting",
)


def forget_questions(session: Session, campaign_id: UUID, *, since: int = 1) -> None:
    """Delete what drawings from the number `since` on have left that were cut off; nobody has seen it."""
    session.execute(delete(Question).where(Question.campaign_id == campaign_id, Question.drawing >= since))


def show_questions(session: Session, campaign_id: UUID, drawing: int) -> None:
    """Put the questions of a further drawing into the queue."""
    session.execute(
        update(Question)
        .where(Question.campaign_id == campaign_id, Question.drawing == drawing)
        .values(is_waiting=True),
        execution_options={"synchronize_session": False},
    )


def add_questions(
    session: Session,
    campaign_id: UUID,
    draws: Draws,
    *,
    example_ids: Mapping[int, int],
    probability: float | Sequence[float],
    overlap: int,
    start: int,
    stop: int,
    drawing: int = 1,
    first_rank: int = 0,
    evaluates: bool = False,
) -> None:
    """Insert the questions `start` to `stop` (exclusive) of the asking order.

    Args:
        session: a writing one.
        campaign_id: whose questions they are.
        draws: all of them.
        example_ids: id of the example at each position.
        probability: with which each class was drawn; or of each question, in the asking order.
        overlap: yes/no answers that each question needs at least.
        start: the first one's place in the asking order.
        stop: one after the last one's.
        drawing: their number among the campaign's drawings. Further ones wait for `show_questions`: people
            are at work.
        first_rank: in the queue, of the drawing.
        evaluates: they are an evaluation's, none of which trains; those of the round EVALUATED are about the
            predicted class, which is sure.
    """
    purpose = Purpose.EVALUATION if evaluates else Purpose.LABELLING
    part = slice(start, stop)
    count = len(draws.ranks[part])
    chances = [probability] * count if isinstance(probability, float) else probability[part]
    drawn = zip(
        draws.positions[part].tolist(),
        draws.rounds[part].tolist(),
        draws.classes[part].tolist(),
        draws.ranks[part].tolist(),
        chances,
        strict=True,
    )
    rows = [
        (
            campaign_id,
            example_ids[position],
            round_,
            class_,
            1.0 if evaluates and round_ == EVALUATED else chance,
            purpose,
            first_rank + rank,
            overlap,
            overlap,
            drawing,
            drawing == 1,
        )
        for position, round_, class_, rank, chance in drawn
    ]
    if session.get_bind().dialect.name == "postgresql":
        _copy(session, rows)
    else:
        session.execute(insert(Question), [dict(zip(COLUMNS, row, strict=True)) for row in rows])


def _copy(session: Session, rows: Sequence[tuple[object, ...]]) -> None:
    cursor = session.connection().connection.cursor()
    assert isinstance(cursor, Cursor)  # psycopg is the one driver we support
    names = ", ".join(COLUMNS)
    with cursor.copy(f"COPY question ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
