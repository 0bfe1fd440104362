"""Two models whose predictions people judged on the same images."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.evaluations.estimating import Difference, compare
from app.evaluations.judging import images_judged, is_unasked, verdict_of
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

    Only once nothing is left to ask in either: the images that both models take for the same class are known
    first, and on these no model is better.
    """
    others = session.scalars(
        select(Evaluation)
        .where(Evaluation.dataset_id == evaluation.dataset_id, Evaluation.model_id != evaluation.model_id)
        .order_by(Evaluation.created_at.desc(), Evaluation.id)
        .limit(MOST)
    ).all()
    own = _verdicts(session, evaluation)
    found: dict[object, Comparison] = {}
    for other in others:
        if other.model_id in found:
            continue
        theirs = _verdicts(session, other)
        both = own.keys() & theirs.keys()
        if both:
            only_this = sum(own[id_] and not theirs[id_] for id_ in both)
            only_other = sum(theirs[id_] and not own[id_] for id_ in both)
            difference = compare(only_this, only_other, len(both))
            found[other.model_id] = Comparison(other, len(both), only_this, only_other, difference)
    return list(found.values())


def _verdicts(session: Session, evaluation: Evaluation) -> dict[int, bool]:
    """Of the images that people judged, by example; none while some are still to be asked about."""
    rows = session.execute(images_judged(evaluation.id)).all()
    if any(map(is_unasked, rows)):
        return {}
    verdicts = ((row.example_id, verdict_of(row)) for row in rows)
    return {example_id: found for example_id, found in verdicts if found is not None}
