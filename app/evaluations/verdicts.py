"""What people's answers say of single predictions of a model."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.evaluations.judging import images_judged, verdict_of
from app.evaluations.models import Evaluation


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many people say that the model's prediction of a picture is right, and how many that it is not."""

    yes: int
    no: int
    is_right: bool | None  # as most of them say; None where they are divided, or the picture cannot be used


def verdicts_of(session: Session, model_id: UUID) -> dict[int, Verdict]:
    """By example: the pictures of all evaluations of a model that somebody has judged, as the newest says."""
    oldest_first = session.scalars(
        select(Evaluation.id)
        .where(Evaluation.model_id == model_id)
        .order_by(Evaluation.created_at, Evaluation.id)
    ).all()
    age = {evaluation_id: place for place, evaluation_id in enumerate(oldest_first)}
    rows = [row for row in session.execute(images_judged(oldest_first)) if row.yes or row.no]
    return {
        row.example_id: Verdict(row.yes, row.no, verdict_of(row))
        for row in sorted(rows, key=lambda row: age[row.evaluation_id])
    }
