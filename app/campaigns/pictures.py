"""Pictures to choose from when a class is to be shown to annotators by example."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign, CampaignClass
from app.datasets.models import Dataset, Example, Split
from clarinet.files.names import NO_LABEL, numbers_among

OFFERED = 12  # pictures per class at once


@dataclass(frozen=True, slots=True)
class PicturesOfClass:
    """Pictures for one class: those chosen so far, then others."""

    position: int
    name: str
    description: str
    chosen: tuple[int, ...]  # ids of examples
    others: tuple[int, ...]


def pictures_to_choose(
    session: Session,
    campaign: Campaign,
    classes: Sequence[CampaignClass],
    *,
    batch: int,
    chosen: Mapping[int, tuple[int, ...]],
) -> list[PicturesOfClass]:
    """Training images for each of `classes`: of that true class where the dataset knows one of the same name,
    otherwise images spread over the whole dataset.

    Args:
        session: any.
        campaign: with its classes.
        classes: some of them.
        batch: 0 for the first OFFERED images of a class, 1 for the next, and so on.
        chosen: ids of examples by position of the class; they come first.
    """
    dataset = session.get_one(Dataset, campaign.dataset_id)
    labels = numbers_among(dataset.class_names or (), [item.name for item in classes])
    wanted = [label for label in labels if label != NO_LABEL]
    by_label = _of_true_classes(session, dataset, wanted, batch=batch) if wanted else {}
    spread = _spread(session, dataset, batch=batch) if len(wanted) < len(classes) else []
    result = []
    for item, label in zip(classes, labels, strict=True):
        found = spread if label == NO_LABEL else by_label.get(label, [])
        mine = chosen.get(item.position, ())
        others = tuple(example_id for example_id in found if example_id not in mine)
        result.append(PicturesOfClass(item.position, item.name, item.description, mine, others))
    return result


def _of_true_classes(
    session: Session, dataset: Dataset, labels: Sequence[int], *, batch: int
) -> dict[int, list[int]]:
    """Ids of the examples of one batch, by true class, in position order; read in one go."""
    place = func.row_number().over(partition_by=Example.true_class, order_by=Example.position)
    ranked = (
        select(Example.id, Example.true_class, place.label("place"))
        .where(Example.dataset_id == dataset.id, Example.split == Split.TRAIN, Example.true_class.in_(labels))
        .subquery()
    )
    rows = session.execute(
        select(ranked.c.id, ranked.c.true_class)
        .where(ranked.c.place > batch * OFFERED, ranked.c.place <= (batch + 1) * OFFERED)
        .order_by(ranked.c.place)
    )
    found: dict[int, list[int]] = defaultdict(list)
    for example_id, label in rows:
        found[label].append(example_id)
    return found


def _spread(session: Session, dataset: Dataset, *, batch: int) -> list[int]:
    """Ids of evenly spread training images; each batch has others, and all batches have all."""
    stride = -(-dataset.train_count // OFFERED)
    if batch >= stride:
        return []
    positions = range(batch, dataset.image_count, stride)  # training images lie among test ones, too
    query = (
        select(Example.id)
        .where(
            Example.dataset_id == dataset.id,
            Example.split == Split.TRAIN,
            Example.position.in_(positions),
        )
        .order_by(Example.position)
    )
    return list(session.scalars(query))
