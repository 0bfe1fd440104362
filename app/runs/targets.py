"""Whether the accuracy on a target can be measured: its test images whose class is one of the campaign's."""

from collections.abc import Sequence

from app.datasets.models import Dataset
from clarinet.files.names import NO_LABEL, numbers_among


def scored_images(target: Dataset, classes: Sequence[str]) -> int:
    """How many images of a ready target score a run; 0 where its accuracy on the target stays unmeasured.

    Args:
        target: the dataset.
        classes: names in the campaign's order.
    """
    if not target.class_names or not target.test_per_class:
        return 0
    numbers = numbers_among(classes, target.class_names)
    counts = zip(numbers, target.test_per_class, strict=True)
    return sum(count for number, count in counts if number != NO_LABEL)
