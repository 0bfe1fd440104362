"""Which of a target's images score a run."""

import pytest
from sqlalchemy.orm import Session

from app.datasets.models import Dataset
from app.runs.targets import scored_images, scored_of, unscored_of
from app.stores.folder import FolderStorage
from clarinet.recipes.scoring import ScoredOn
from tests.factories import make_dataset


def dataset(test: list[int], train: list[int], *, test_count: int = 10, train_count: int = 20) -> Dataset:
    """A dataset of cats and owls, so many of each."""
    return Dataset(
        class_names=["cat", "owl"],
        test_per_class=test,
        train_per_class=train,
        test_count=test_count,
        train_count=train_count,
    )


@pytest.mark.parametrize(
    ("target", "scored"),
    [
        (dataset([6, 4], [9, 9]), ("test", 6, 10)),  # nobody is asked about owls
        (dataset([0, 10], [9, 11]), ("train", 9, 20)),  # of its test images none scores
        (dataset([0, 0], [20, 0], test_count=0), ("train", 20, 20)),
        (dataset([0, 0], [12, 3], test_count=0), ("train", 12, 20)),  # the class of five is not known
        (dataset([0, 0], [0, 20], test_count=0), ("train", 0, 20)),
        (Dataset(class_names=None, test_per_class=[], train_per_class=[], test_count=3, train_count=4), ()),
    ],
)
def test_test_images_score_else_those_that_it_trains_on(target: Dataset, scored: tuple[str, ...]) -> None:
    found = scored_images(target, ["dog", "Cat"])

    assert (found.split, found.images, found.of) == (scored or ("train", 0, 4))


def test_a_result_says_what_scored_it_and_an_earlier_one_knew_test_images_alone() -> None:
    now = ScoredOn(split="train", images=20, of=20)

    assert scored_of({}) is None
    assert scored_of({"scored_on": 20, "scored": now.to_dict()}) == now
    assert scored_of({"scored_on": 7}) == ScoredOn(split="test", images=7, of=7)


def test_an_imported_dataset_counts_what_a_trial_will_score(session: Session, storage: FolderStorage) -> None:
    """The other side is tests/worker/test_trial_data.py."""
    target = make_dataset(session, storage, class_names=("dog", "owl", "cat"), train=10, test=0)

    assert scored_images(target, ["cat", "dog"]) == ScoredOn(split="train", images=7, of=10)


def test_what_does_not_score_is_named_with_its_reason() -> None:
    target = Dataset(
        class_names=["Cat", "dog ", "owls"],
        test_per_class=[14, 13, 13],
        test_count=42,
        train_per_class=[0, 0, 9],
        train_count=10,
    )

    # Training images are not told of where test images score.
    assert unscored_of(target, ["cat", "dog", "owl"]) == (
        "13 of 42 test images are of owls, which is no class of this campaign; "
        "2 of 42 test images are of no known class"
    )
    assert unscored_of(target, ["emu", "dog", "cat", "owls"]).startswith("2 of 42 test images")
    # The other way round, and where nothing scores.
    assert unscored_of(dataset([0, 0], [12, 3], test_count=0), ["cat", "dog"]) == (
        "3 of 20 training images are of owl, which is no class of this campaign; "
        "5 of 20 training images are of no known class"
    )
    nothing = Dataset(class_names=None, test_per_class=[], train_per_class=[], test_count=1, train_count=4)
    assert unscored_of(nothing, ["cat", "dog"]) == (
        "its images came without classes; once a run has ended, people can judge its predictions"
    )
    assert unscored_of(dataset([6, 4], [9, 9]), ["owl", "cat"]) == ""


def test_a_target_with_numbers_says_that_they_can_be_named() -> None:
    target = Dataset(
        class_names=["0", "1"], test_per_class=[3, 4], test_count=7, train_per_class=[1, 1], train_count=2
    )

    assert "its classes are numbers (0 and 1)" in unscored_of(target, ["cat", "dog"])
    assert unscored_of(target, ["0", "1"]) == ""
