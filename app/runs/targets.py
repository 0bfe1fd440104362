"""Whether the accuracy on a target can be measured: its test images whose class is one of the campaign's."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.datasets.models import Dataset
from clarinet.files.names import NO_LABEL, numbers_among, strangers
from clarinet.recipes.counting import is_or_are, many


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What scores a run on its target.

    Args:
        images: how many test images do; 0 where the accuracy on the target stays unmeasured.
        unscored: which do not, in words that continue a sentence; "" where all do.
    """

    images: int
    unscored: str


def scoring_of(target: Dataset, classes: Sequence[str]) -> Scoring:
    """What scores a run on a ready target; `classes` are names in the campaign's order."""
    if not target.test_count:
        return Scoring(images=0, unscored="it has no test images")
    own, counts = target.class_names or [], target.test_per_class or []
    numbers = numbers_among(classes, own)
    images = sum(count for number, count in zip(numbers, counts, strict=True) if number != NO_LABEL)
    told = [strangers(classes, own, counts, total=target.test_count)]
    if unknown := target.test_count - sum(counts):
        of_all = f"of {many(target.test_count, 'test image')} {is_or_are(unknown)} of no known class"
        told.append(f"{unknown:,} {of_all}")
    return Scoring(images=images, unscored="; ".join(filter(None, told)))
