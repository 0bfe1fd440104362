"""Which of a target's images measure the accuracy on it: those whose class is one of the campaign's."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.datasets.models import Holding, Split
from clarinet.files.names import NO_LABEL, are_numbers, in_a_row, numbers_among, strangers
from clarinet.recipes.counting import is_or_are, many
from clarinet.recipes.scoring import ScoredOn


def scored_images(target: Holding, classes: Sequence[str]) -> ScoredOn:
    """The images of a ready target that score a run: test images, else those that it trains on.

    Args:
        target: the dataset, or a version of it.
        classes: names in the campaign's order.
    """
    numbers = numbers_among(classes, target.class_names or [])
    test = _among(Split.TEST, target.test_per_class, numbers, of=target.test_count)
    return (
        test if test.images else _among(Split.TRAIN, target.train_per_class, numbers, of=target.train_count)
    )


def scored_of(facts: Mapping[str, Any]) -> ScoredOn | None:
    """What a trial's result or a model's card says, of any version; earlier ones scored test images alone."""
    if "scored" in facts:
        return ScoredOn.from_dict(facts["scored"])
    count = facts.get("scored_on")
    return None if count is None else ScoredOn(split="test", images=count, of=count)


def _among(split: Split, per_class: Sequence[int] | None, numbers: Sequence[int], *, of: int) -> ScoredOn:
    counts = zip(numbers, per_class or [0] * len(numbers), strict=True)
    return ScoredOn(
        split=split.value, images=sum(count for number, count in counts if number != NO_LABEL), of=of
    )


def unscored_of(target: Holding, classes: Sequence[str]) -> str:
    """Which images of a ready target do not score, and why, in words that continue a sentence; "" if all do.

    Those of the split that scores; where no image does, all.
    """
    scored = scored_images(target, classes)
    own = target.class_names or []
    if not own and target.train_count:
        return "its images came without classes; once a run has ended, people can judge its predictions"
    if not scored.images and are_numbers(own) and not are_numbers(classes):
        return (
            f"its classes are numbers ({in_a_row(own)}), and the campaign's have names; name them on the "
            "page of the dataset, so that its images can score"
        )
    told = []
    for split, per_class, total in (
        ("test", target.test_per_class, target.test_count),
        ("train", target.train_per_class, target.train_count),
    ):
        if not total or (scored.images and split != scored.split):
            continue
        counts = per_class or [0] * len(own)
        image = f"{'test' if split == 'test' else 'training'} image"
        told.append(strangers(classes, own, counts, total=total, image=image))
        if unknown := total - sum(counts):
            told.append(f"{unknown:,} of {many(total, image)} {is_or_are(unknown)} of no known class")
    return "; ".join(filter(None, told))
