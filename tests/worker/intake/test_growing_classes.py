"""No class of further images is lost in silence: a folder alone is a class that is known, or asked about."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets import growing
from app.datasets.models import Dataset, DatasetState, DatasetVersion
from app.datasets.uploads import Upload
from app.storage import Storage
from tests.app.datasets.files import images as pixels
from tests.app.datasets.files import npz_of, picture, zip_of
from tests.factories import NOW
from tests.worker.intake.conftest import examples_of
from worker import intake
from worker.context import Context

A, B, C, D = (picture(mode="L", shade=shade) for shade in range(4))
PETS = {"cat/1.png": A, "dog/2.png": B}
TWO_READINGS = (
    "two ways: as a new class, or as the folder around images without a class",
    "(train/{})",
    "cat and dog",
)


@pytest.fixture
def grown(
    context: Context, session: Session, storage: Storage, admin: User, upload: Callable[..., Dataset]
) -> Callable[..., tuple[Dataset, DatasetVersion]]:
    """A dataset to which further files were added."""

    def make(first: bytes, more: bytes, *, table: bytes | None = None) -> tuple[Dataset, DatasetVersion]:
        dataset = upload(first)
        intake.import_dataset(context, dataset.id)
        session.refresh(dataset)
        beside = None if table is None else io.BytesIO(table)
        sent = Upload(io.BytesIO(more), "more.zip", table=beside, table_name="t.csv")
        added = growing.add_images(session, storage, dataset, sent, by=admin, now=NOW)
        session.commit()
        intake.add_images(context, added.id)
        session.expire_all()
        return dataset, added

    return make


ALONE = {
    "a known class": ({"cat/9.png": C}, ["cat"]),
    "by the one rule of sameness": ({"Cat\u200b /9.png": C}, ["cat"]),
    "a known class in a folder around it": ({"more/of them/dog/9.png": C}, ["dog"]),
    "a known class and another folder": ({"cat/8.png": C, "owl/9.png": D}, ["cat", "owl"]),
    "a known class in a split": ({"test/cat/9.png": C}, ["cat"]),
    "a new class in a split": ({"train/owl/9.png": C}, ["owl"]),
    "in no folder": ({"9.png": C}, [None]),
}


@pytest.mark.parametrize(("more", "expected"), ALONE.values(), ids=ALONE.keys())
def test_a_folder_alone(
    session: Session,
    grown: Callable[..., tuple[Dataset, DatasetVersion]],
    more: dict[str, bytes],
    expected: list[str | None],
) -> None:
    dataset, added = grown(zip_of(PETS), zip_of(more))

    assert added.failure is None
    names = dataset.class_names or []
    joined = examples_of(session, dataset)[2:]
    assert [None if row.true_class is None else names[row.true_class] for row in joined] == expected
    assert ("came without a class" in " ".join(added.notes)) is (None in expected)
    is_new = "owl" in expected
    assert any("has a new class: owl" in note for note in added.notes) is is_new
    assert any("every such question deserves a no" in note for note in added.notes) is is_new


def test_a_folder_alone_that_could_be_a_class_is_refused_with_both_readings(
    grown: Callable[..., tuple[Dataset, DatasetVersion]],
) -> None:
    dataset, added = grown(zip_of(PETS), zip_of({"owl/9.png": C, "owl/8.png": D}))

    assert (added.state, dataset.class_names, dataset.image_count) == (DatasetState.FAILED, ["cat", "dog"], 2)
    assert all(words.format("owl") in (added.failure or "") for words in TWO_READINGS)


def test_a_table_tells_what_a_folder_alone_is(
    grown: Callable[..., tuple[Dataset, DatasetVersion]], session: Session
) -> None:
    dataset, added = grown(
        zip_of(PETS),
        zip_of({"photos/9.png": C, "photos/8.png": D}),
        table=b"filename,class\n9.png,owl\n8.png,cat\n",
    )

    assert added.failure is None
    assert [row.true_class for row in examples_of(session, dataset)[2:]] == [2, 0]


def test_a_dataset_without_classes_takes_a_folder_for_what_lies_around_and_says_so(
    grown: Callable[..., tuple[Dataset, DatasetVersion]],
) -> None:
    dataset, added = grown(zip_of({"1.png": A}), zip_of({"photos/9.png": C}))

    assert dataset.class_names is None
    assert any(
        '"photos" holds all images and is taken for the folder around them' in note for note in added.notes
    )


def test_known_classes_go_before_splits_of_the_same_name(
    grown: Callable[..., tuple[Dataset, DatasetVersion]],
) -> None:
    first = {"training/1.png": A, "testing/2.png": B, "resting/3.png": C}
    dataset, added = grown(zip_of(first), zip_of({"training/9.png": D}))
    both, more = grown(
        zip_of(first), zip_of({"training/9.png": D, "testing/8.png": picture(mode="L", shade=9)})
    )

    assert (added.failure, more.failure) == (None, None)
    assert (dataset.train_per_class, dataset.test_count) == ([1, 1, 2], 0)
    assert (both.train_per_class, both.test_count) == ([1, 2, 2], 0)


def test_first_classes_are_said(grown: Callable[..., tuple[Dataset, DatasetVersion]]) -> None:
    dataset, added = grown(zip_of({"1.png": A}), zip_of({"cat/2.png": B, "dog/3.png": C}))

    assert dataset.class_names == ["cat", "dog"]
    assert any("new classes: cat and dog. Of the images before nobody knows" in note for note in added.notes)


def test_arrays_of_one_new_class(grown: Callable[..., tuple[Dataset, DatasetVersion]]) -> None:
    names = {"class_names": np.array(["owl"])}
    dataset, added = grown(
        zip_of(PETS), npz_of(x_train=pixels(2, 5, 5), y_train=np.zeros(2, np.int64), **names)
    )

    assert (added.failure, dataset.class_names, dataset.train_per_class) == (
        None,
        ["cat", "dog", "owl"],
        [1, 1, 2],
    )
