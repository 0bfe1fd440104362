"""Two models whose predictions people judged on the same images."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.evaluations.estimating import Difference
from app.evaluations.judging import Image, images_judged, is_unasked, verdict_of
from app.evaluations.models import Evaluation
from app.evaluations.weighted import Alike, compare_weighted, weight_of

MOST = 20  # evaluations that another is compared with

Verdicts = dict[int, tuple[bool, int]]
"""By example whether the prediction is right, and which class it is."""


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

    Both draw from one random order, so that what they share is a random part: of all pictures, or where a
    class was drawn from by itself of the pictures that it has, which then count by their weights. Only once
    nothing is left to ask in either: the images that both models take for the same class are known first, and
    on these no model is better.
    """
    own = _verdicts(session, [evaluation.id]).get(evaluation.id)
    if not own:
        return []  # looked at each few seconds while people are asked
    others = session.scalars(
        select(Evaluation)
        .where(
            Evaluation.dataset_id == evaluation.dataset_id,
            Evaluation.model_id != evaluation.model_id,
        )
        .order_by(Evaluation.created_at.desc(), Evaluation.id)
        .limit(MOST)
    ).all()
    verdicts = _verdicts(session, [other.id for other in others])
    found: dict[UUID, Comparison] = {}
    for other in others:
        if other.model_id in found:
            continue
        if compared := _compared(evaluation, other, own, verdicts.get(other.id, {})):
            found[other.model_id] = compared
    return list(found.values())


def compare_two(session: Session, evaluation_id: UUID, other_id: UUID) -> Comparison | None:
    """One beside another; None while something is left to ask, and where they share no random part.

    They share none where one draws by class and the dataset has grown between them."""
    one = session.get_one(Evaluation, evaluation_id)
    verdicts = _verdicts(session, [evaluation_id, other_id])
    other = session.get_one(Evaluation, other_id)
    return _compared(one, other, verdicts.get(evaluation_id, {}), verdicts.get(other_id, {}))


def _compared(one: Evaluation, other: Evaluation, own: Verdicts, theirs: Verdicts) -> Comparison | None:
    both = own.keys() & theirs.keys()
    by_class = one.strata is not None or other.strata is not None
    if not both or (by_class and not _have_one_order(one, other)):
        return None
    first, second = _strata_of(one), _strata_of(other)
    counts: dict[float, list[int]] = defaultdict(lambda: [0, 0, 0])
    for id_ in both:
        (is_right, class_), (is_other_right, other_class) = own[id_], theirs[id_]
        weight = weight_of(first, second, (class_, other_class)) if by_class else 1.0
        shares = (is_right and not is_other_right, is_other_right and not is_right, True)
        counts[weight] = [count + share for count, share in zip(counts[weight], shares, strict=True)]
    parts = [Alike(weight, *counts[weight]) for weight in sorted(counts)]
    only_this, only_other = sum(part.only_first for part in parts), sum(part.only_second for part in parts)
    return Comparison(other, len(both), only_this, only_other, compare_weighted(parts))


def _have_one_order(one: Evaluation, other: Evaluation) -> bool:
    """Whether places in the random order of one mean the same in that of the other."""
    return (one.sample_seed, one.dataset_version, one.population) == (
        other.sample_seed,
        other.dataset_version,
        other.population,
    )


def _strata_of(evaluation: Evaluation) -> list[tuple[int, int, int]]:
    """Population, sampled and end of each predicted class; the same for all where each picture had the same
    chance."""
    if evaluation.strata is not None:
        return [(population, sampled, end) for population, sampled, end in evaluation.strata]
    size = evaluation.sample_size
    return [(evaluation.population, size, size)] * len(evaluation.class_names)


def _verdicts(session: Session, evaluation_ids: Collection[UUID]) -> dict[UUID, Verdicts]:
    """Of the images that people judged; none while some are still to be asked."""
    rows: dict[UUID, list[Image]] = {}
    for row in session.execute(images_judged(evaluation_ids)):
        rows.setdefault(row.evaluation_id, []).append(row)
    return {
        evaluation_id: {
            row.example_id: (told, row.class_) for row in own if (told := verdict_of(row)) is not None
        }
        for evaluation_id, own in rows.items()
        if not any(map(is_unasked, own))
    }
