"""Classes that are numbers: names come with them, are given beside them, or come later."""

import io
import zipfile

import numpy as np
import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.datasets import naming, versions
from app.datasets.errors import BadClassNames, ClassesNotNumbers
from tests.app.datasets.files import images, npz_of
from tests.worker.intake.conftest import PETS, Grow, Ready, examples_of, pets


class TestNumbers:
    def test_an_npz_may_name_its_classes(self, ready: Ready) -> None:
        named = npz_of(
            x_train=images(4, 5, 5),
            y_train=np.array([0, 1, 1, 0]),
            class_names=np.array(["Cat", "dog", "owl"]),
        )

        assert ready(named).class_names == ["Cat", "dog", "owl"]

    def test_a_list_may_lie_beside_the_arrays(self, ready: Ready) -> None:
        data = io.BytesIO(npz_of(x_train=images(2, 5, 5), y_train=np.array([0, 1])))
        with zipfile.ZipFile(data, "a") as archive:
            archive.writestr("classes.txt", "cat\ndog\n")

        assert ready(data.getvalue()).class_names == ["cat", "dog"]

    def test_names_that_are_given_go_first_and_join_by_sameness(
        self, session: Session, ready: Ready, grow: Grow
    ) -> None:
        dataset = ready(pets(PETS))
        numbered = npz_of(x_train=images(2, 6, 4), y_train=np.array([0, 1]))

        refused = grow(dataset, numbered)
        joined = grow(dataset, numbered, classes="DOG\ncat\n")
        short = grow(
            dataset, npz_of(x_train=images(2, 6, 4, seed=7), y_train=np.array([0, 1])), classes="dog"
        )

        assert "classes of these images are numbers" in (refused.failure or "")
        assert joined.failure is None
        assert dataset.class_names == ["cat", "dog"]
        assert [row.true_class for row in examples_of(session, dataset)][3:] == [1, 0]
        assert "only 1 of them" in (short.failure or "")

    def test_numbers_can_be_named_later_in_every_version(
        self, session: Session, admin: User, ready: Ready, grow: Grow
    ) -> None:
        dataset = ready(npz_of(x_train=images(2, 5, 5), y_train=np.array([0, 1])))
        grow(dataset, npz_of(x_train=images(3, 5, 5, seed=3), y_train=np.array([0, 1, 2])))
        assert dataset.class_names == ["0", "1", "2"]
        with pytest.raises(BadClassNames):
            naming.name_classes(session, dataset, ["cat", "dog"], by=admin)
        with pytest.raises(BadClassNames):
            naming.name_classes(session, dataset, ["cat", "dog", "CAT"], by=admin)

        naming.name_classes(session, dataset, ["cat", "dog", "owl"], by=admin)
        session.commit()

        found = [version.class_names for version in versions.versions_of(session, dataset.id)]
        assert found == [["cat", "dog"], ["cat", "dog", "owl"]]
        assert dataset.class_names == ["cat", "dog", "owl"]
        with pytest.raises(ClassesNotNumbers):
            naming.name_classes(session, dataset, ["a", "b", "c"], by=admin)
