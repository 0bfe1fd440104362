"""Labels as callers give them."""

from typing import Any

import numpy as np
import pytest
import torch

from clarinet.data.given_labels import numbers_for, table_for, table_of
from clarinet.files.label_table import COMPLEMENTARY, TRUE
from clarinet.recipes.errors import DataError

NAN = float("nan")


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([2, -1, 0, 1], [0, 1, 2]),
        (torch.tensor([2, -1, 0, 1]), [0, 1, 2]),
        (np.array([2.0, NAN, 0.0, 1.0]), [0, 1, 2]),
        ([2, None, 0, 1], [0, 1, 2]),
        (["dog", None, "cat", "cow"], ["cat", "cow", "dog"]),
        (np.array(["dog", "", "cat", "cow"]), ["cat", "cow", "dog"]),
        (["12", NAN, "2", "9"], ["2", "9", "12"]),
    ],
)
def test_numbers_and_names_are_counted_and_gaps_left_out(y: Any, classes: list[Any]) -> None:
    table, found = table_of(y, None, images=4)

    assert found.tolist() == classes
    assert table.positions is not None
    assert table.positions.tolist() == [0, 2, 3]
    assert found[table.classes].tolist() == [y[0], y[2], y[3]]
    assert set(table.kinds) == {COMPLEMENTARY}
    assert table.class_names == [str(name) for name in classes]


def test_columns_of_pandas_with_its_own_none() -> None:
    pandas = pytest.importorskip("pandas")

    for kind in (object, "string", "category"):
        table, found = table_of(pandas.Series(["dog", None, "cat"], dtype=kind), None, images=3)
        assert found[table.classes].tolist() == ["dog", "cat"]
    table, found = table_of(pandas.Series([2, pandas.NA, 1], dtype="Int64"), None, images=3)
    assert found[table.classes].tolist() == [2, 1]


def test_an_image_may_have_several_and_another_a_true_one() -> None:
    no = [["a", "b"], ["c", ""], ["", ""], ["", ""]]
    yes = [None, None, None, "b"]

    table, _ = table_of(no, yes, images=4, weights=[1, 0.5, 1, 2])

    assert table.positions is not None
    assert table.positions.tolist() == [0, 0, 1, 3]
    assert table.classes.tolist() == [0, 1, 2, 1]
    assert table.kinds.tolist() == [COMPLEMENTARY] * 3 + [TRUE]
    assert table.weights.tolist() == [1, 1, 0.5, 2]


def test_classes_are_counted_as_they_are_listed() -> None:
    table, found = table_of(["Dog ", "cat"], None, images=2, classes=["dog", "cat", "cow"])

    assert table.num_classes == 3
    assert found[table.classes].tolist() == ["dog", "cat"]
    assert table_of([5, 3], None, images=2, classes=[5, 3])[0].classes.tolist() == [0, 1]


def test_labels_that_score_find_their_class() -> None:
    classes = np.array(["cat", "Dog"])

    assert numbers_for(["dog", "cat", "DOG"], classes, images=3).tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="y has 'cow', but the classes are cat, Dog"):
        numbers_for(["cow"], classes, images=1)
    with pytest.raises(DataError, match="y has 1, but the classes are cat, Dog"):
        numbers_for([1], classes, images=1)
    with pytest.raises(DataError, match="labels of 1 of 2 images"):
        numbers_for(["cat", None], classes, images=2)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": [0, 1]}, r"y has shape \(2,\) for 3 images; expected \(3,\) or \(3, M\)"),
        ({"y": [0, 1, 1.5]}, "y has 1.5; labels are whole numbers from 0 on, and -1"),
        ({"y": [0, 1, -2]}, "y has -2"),
        ({"y": [0, 1, 3]}, r"no label names class 2.*classes=range\(4\)"),
        ({"y": [0, 0, -1]}, "the labels name 1 classes; at least 2"),
        ({"y": [-1, -1, -1]}, "the labels name 0 classes"),
        ({"y": ["a", "A", "b"]}, "is the same class name as"),
        ({"y": ["a", 1, None]}, "labels are whole numbers or names, all of one kind"),
        ({"y": [True, False, True]}, "labels are whole numbers or names"),
        ({"y": ["a", "b", ""], "true": [-1, -1, 1]}, "some labels are names and others are numbers"),
        ({"y": [0, 1, -1], "true": [-1, 1, 1]}, "image 1 has a label in y and one in true"),
        ({"y": [0, 1, -1], "classes": [0, 0]}, "expected distinct whole numbers or distinct names"),
        ({"y": [0, 1, -1], "classes": [-1, 1]}, "numbers count from 0 on, and -1 is no class"),
        ({"y": [0, 7, -1], "classes": [0, 1]}, "y has 7, but the classes are 0, 1"),
        ({"y": [0, 1, -1], "weights": [1]}, r"sample_weight has shape \(1,\); expected \(3,\)"),
        ({"y": None}, "there are no labels: give y"),
    ],
)
def test_labels_that_say_nothing_clear_are_refused_in_words(arguments: dict[str, Any], told: str) -> None:
    usual = {"true": None, "classes": None, "weights": None}
    with pytest.raises(DataError, match=told):
        table_for(**usual | arguments, images=3)


def test_a_table_stands_for_itself() -> None:
    table, names = table_of(["a", "b"], None, images=2)

    assert table_for(table, None, images=2, classes=None, weights=None)[0] is table
    assert table_for(table, None, images=2, classes=None, weights=None)[1].tolist() == names.tolist()
    with pytest.raises(DataError, match="has its own classes, weights and true labels"):
        table_for(table, ["a", "b"], images=2, classes=None, weights=None)
