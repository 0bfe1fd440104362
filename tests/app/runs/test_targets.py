"""What is told of a target's test images that do not score a run."""

from app.datasets.models import Dataset
from app.runs.targets import scoring_of


def target(names: list[str] | None, *, counts: list[int], test: int) -> Dataset:
    """A dataset with so many test images of each class, and further ones of none."""
    return Dataset(name="Streets", class_names=names, test_per_class=counts, test_count=test)


def test_a_class_matches_whatever_its_case_and_what_is_left_over_is_named() -> None:
    found = scoring_of(target(["Cat", "dog ", "owls"], counts=[14, 13, 13], test=40), ["cat", "dog", "owl"])

    assert found.images == 27
    assert found.unscored == "13 of 40 test images are of owls, which is no class of this campaign"


def test_what_has_no_class_is_counted_apart() -> None:
    found = scoring_of(target(["cat", "emu"], counts=[2, 1], test=5), ["cat", "dog"])

    assert found.images == 2
    assert found.unscored == (
        "1 of 5 test images is of emu, which is no class of this campaign; "
        "2 of 5 test images are of no known class"
    )


def test_a_target_without_a_word_left_over() -> None:
    everything = scoring_of(target(["cat", "dog", "emu"], counts=[2, 3, 0], test=5), ["dog", "cat"])
    nothing = scoring_of(target(None, counts=[], test=0), ["dog", "cat"])

    assert (everything.images, everything.unscored) == (5, "")
    assert (nothing.images, nothing.unscored) == (0, "it has no test images")
