"""Archives whose tables and folders, or whose parts, say different things: somebody is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.app.datasets.files import npz_of, picture, zip_of
from tests.cases.taking import places, taken

A, B, C, D = (picture(mode="L", shade=shade) for shade in range(4))
CAT_AND_DOG = {"cat/1.png": A, "dog/2.png": B}


def test_a_table_that_numbers_what_folders_name_is_told_with_the_images_apart(tmp_path: Path) -> None:
    said = taken(
        tmp_path,
        zip_of({**CAT_AND_DOG, "dog/3.png": C}),
        table=b"filename,label\n1.png,1\n2.png,0\n3.png,1\n",
    )

    assert said["class_names"] == ["0", "1"]
    assert said["notes"] == [
        "table.csv numbers classes which the folders name, and the table counts: the classes are called 0 "
        'and 1. In the order of the folders 0 is "cat" and 1 is "dog"; 2 images are numbered otherwise '
        "(cat/1.png)."
    ]
    assert said["contradictions"] == [
        {
            "file": "cat/1.png",
            "why": "lies in the folder of 'cat' and is '1' by line 2 of table.csv, which is not that "
            "folder's number; the table counts",
        },
        {
            "file": "dog/2.png",
            "why": "lies in the folder of 'dog' and is '0' by line 3 of table.csv, which is not that "
            "folder's number; the table counts",
        },
    ]


@pytest.mark.parametrize("numbers", [(0, 1), (1, 2)])
def test_numbers_in_the_order_of_the_folders_contradict_nothing(
    tmp_path: Path, numbers: tuple[int, int]
) -> None:
    table = "filename,label\n1.png,{}\n2.png,{}\n".format(*numbers)

    said = taken(tmp_path, zip_of(CAT_AND_DOG), table=table.encode())

    assert said["contradictions"] == []
    assert f'In the order of the folders {numbers[0]} is "cat" and {numbers[1]} is "dog".' in said["notes"][0]


def test_folders_that_mean_something_else_are_not_compared(tmp_path: Path) -> None:
    files = {"p1/1.png": A, "p2/2.png": B, "p3/3.png": C}

    said = taken(tmp_path, zip_of(files), table=b"filename,label\n1.png,1\n2.png,0\n3.png,1\n")

    assert (said["contradictions"], said["notes"]) == ([], [])


def test_a_split_of_the_table_against_the_folders_is_told(tmp_path: Path) -> None:
    files = {"train/cat/1.png": A, "train/dog/2.png": B, "valid/dog/3.png": C}
    table = b"filename,split\ntrain/cat/1.png,test\ntrain/dog/2.png,train\nvalid/dog/3.png,train\n"

    said = taken(tmp_path, zip_of(files), table=table)

    assert places(said)["train/cat/1.png"] == ("test", "cat")
    told = (
        '1 image is put into another split by table.csv than by the folder ("train/cat/1.png" into test); '
        "the table counts."
    )
    assert [note for note in said["notes"] if "another split" in note] == [told]


SPLIT_CLASSES: dict[str, tuple[dict[str, Any], str]] = {
    "numbers and words": (
        {"train/0/1.png": A, "train/1/2.png": B, "test/cat/3.png": C, "test/dog/4.png": D},
        "The training images are of 0 and 1, the test images of cat and dog: no class is in both.",
    ),
    "two domains": (
        {"trainA/1.png": A, "trainB/2.png": B, "testA/3.png": C, "testB/4.png": D},
        '"testA", "testB", "trainA" and "trainB" are taken for classes; if they are the splits of several '
        "domains, import each domain by itself, its folders called train and test.",
    ),
}


@pytest.mark.parametrize(("files", "note"), SPLIT_CLASSES.values(), ids=SPLIT_CLASSES)
def test_splits_that_share_no_class_are_told(files: dict[str, bytes], note: str, tmp_path: Path) -> None:
    said = taken(tmp_path, zip_of(files))

    assert said["notes"] == [note]


def test_classes_that_are_called_as_if_unknown_are_told_in_good_english(tmp_path: Path) -> None:
    files = {f"{place}.png": picture(mode="L", shade=place) for place in range(4)}
    two = taken(
        tmp_path / "a", zip_of(files), table=b"filename,label\n0.png,cat\n1.png,?\n2.png,-1\n3.png,cat\n"
    )
    one = taken(
        tmp_path / "b", zip_of(files), table=b"filename,label\n0.png,cat\n1.png,NA\n2.png,dog\n3.png,cat\n"
    )

    assert two["notes"][0].startswith('"-1" and "?" count as classes; where they mean that nobody knows')
    assert one["notes"][0].startswith('"NA" counts as a class; where it means that nobody knows')


def test_the_largest_number_of_a_byte_is_told(tmp_path: Path) -> None:
    images = np.arange(4 * 9 * 9, dtype=np.uint8).reshape(4, 9, 9)

    said = taken(tmp_path / "a", npz_of(x_train=images, y_train=np.array([0, 1, 255, 0], np.uint8)))
    many = taken(tmp_path / "b", npz_of(x_train=images, y_train=np.array([0, 253, 254, 255], np.uint8)))

    assert said["notes"] == [
        "The label 255 counts as a class, and no label is 254; if it means that nobody knows the class, "
        "write -1 in its place (in an array of int16) and import the file anew."
    ]
    assert many["notes"] == []


def test_a_table_names_images_of_its_own_folder_first(tmp_path: Path) -> None:
    table = b"filename,label\n1.png,cat\n"
    files = {"test/labels.csv": table, "test/images/1.png": A, "train/cat/1.png": B, "train/dog/2.png": C}

    said = taken(tmp_path, zip_of(files))

    assert places(said) == {
        "test/images/1.png": ("test", "cat"),
        "train/cat/1.png": ("train", "cat"),
        "train/dog/2.png": ("train", "dog"),
    }
