"""Two models whose predictions people judged on the same images."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.evaluations.estimating import Difference, compare
from app.evaluations.judging import Image, images_judged, is_unasked, verdict_of
from app.evaluations.models import Evaluation

MOST = 20  # evaluations that another is compared with


@dataclass(frozen=True, slots=True)
class Comparison:
    """An evaluation beside another one, on the images that both judged."""

    other: Evaluation
    images: int
    only_this: int  # images that only this one's model has right
    only_other: int
    difference: Difference  # of this one's accuracy less the other's


def comparisons_of(session: Session, evaluation: Evaluation) -> list[Comparison]:
    """With the newest evaluation of each other model on the same dataset, as far as they share images.

    Each picture had the same chance in both: where each class was drawn from by itself, the pictures that two
    evaluations share are no random part. Only once nothing is left to ask in either: the images that both
    models take for the same class are known first, and on these no model is better.
    """
    own = None if evaluation.strata else _verdicts(session, [evaluation.id]).get(evaluation.id)
    if not own:
        return []  # looked at each few seconds while people are asked
    others = session.scalars(
        select(Evaluation)
        .where(
            Evaluation.dataset_id == evaluation.dataset_id,
            Evaluation.model_id != evaluation.model_id,
            Evaluation.strata.is_(None),
        )
        .order_by(Evaluation.created_at.desc(), Evaluation.id)
        .limit(MOST)
    ).all()
    verdicts = _verdicts(session, [other.id for other in others])
    found: dict[UUID, Comparison] = {}
    for other in others:
        if other.model_id in found:
            continue
        if compared := _compared(other, own, verdicts.get(other.id, {})):
            found[other.model_id] = compared
    return list(found.values())


def compare_two(session: Session, evaluation_id: UUID, other_id: UUID) -> Comparison | None:
    """One beside another; None while something is left to ask, and where they share no random part."""
    one = session.get_one(Evaluation, evaluation_id)
    verdicts = _verdicts(session, [evaluation_id, other_id])
    other = session.get_one(Evaluation, other_id)
    if one.strata or other.strata:
        return None
    return _compared(other, verdicts.get(evaluation_id, {}), verdicts.get(other_id, {}))


def _compared(other: Evaluation, own: dict[int, bool], theirs: dict[int, bool]) -> Comparison | None:
    both = own.keys() & theirs.keys()
    if not both:
        return None
    only_this = sum(own[id_] and not theirs[id_] for id_ in both)
    only_other = sum(theirs[id_] and not own[id_] for id_ in both)
    return Comparison(other, len(both), only_this, only_other, compare(only_this, only_other, len(both)))


def _verdicts(session: Session, evaluation_ids: Collection[UUID]) -> dict[UUID, dict[int, bool]]:
    """Of the images that people judged, by evaluation and example; none while some are still to be asked."""
    rows: dict[UUID, list[Image]] = {}
    for row in session.execute(images_judged(evaluation_ids)):
        rows.setdefault(row.evaluation_id, []).append(row)
    return {
        evaluation_id: {row.example_id: told for row in own if (told := verdict_of(row)) is not None}
        for evaluation_id, own in rows.items()
        if not any(map(is_unasked, own))
    }
