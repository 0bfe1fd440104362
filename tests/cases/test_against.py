"""Archives whose tables and folders, or whose parts, say different things: somebody is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.datasets.intake.shards import read_records
from app.stores.folder import FolderStorage
from tests.app.datasets.files import npz_of, picture, zip_of
from tests.cases.taking import PREFIX, places, taken

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


IMAGES = np.arange(4 * 9 * 9, dtype=np.uint8).reshape(4, 9, 9)
PICTURES = {f"{place}.png": picture(mode="L", shade=place) for place in range(4)}


def byte_array(*labels: int, **arrays: np.ndarray) -> bytes:
    return npz_of(x_train=IMAGES, y_train=np.array(labels, np.uint8), **arrays)


def judged(root: Path, data: bytes, **choices: Any) -> tuple[str, list[str], list[str]]:
    """Why a file is refused; else the class of each image, "" of one that has none, and the notes."""
    said = taken(root, data, **choices)
    if "refused" in said:
        return said["refused"], [], []
    records = [one for some in read_records(FolderStorage(root), PREFIX, chunk=100) for one in some]
    names = said["class_names"]
    return "", ["" if one.true_class is None else names[one.true_class] for one in records], said["notes"]


def test_a_label_that_may_stand_for_none_is_refused_until_somebody_says_what_it_is(tmp_path: Path) -> None:
    names = np.array([f"c{number}" for number in range(256)])
    far = npz_of(x_train=IMAGES, y_train=np.array([0, 1, -100, 0]))

    told, _, _ = judged(tmp_path / "a", byte_array(0, 1, 255, 0))

    assert "has the label 255, and none is 254: if it means that nobody knows the class, write -1" in told
    assert "say no_label=255 where the application takes images in; if it is a class, name all 256" in told
    assert judged(tmp_path / "b", byte_array(0, 1, 255, 0), no_label="255") == (
        "",
        ["0", "1", "", "0"],
        ["1 image has the label 255, which stands for no class."],
    )
    as_class = judged(tmp_path / "c", byte_array(0, 1, 255, 0), no_label="-1")
    assert as_class == ("", ["0", "1", "255", "0"], [])
    _, several, notes = judged(tmp_path / "d", byte_array(0, 253, 254, 255))
    assert (several, notes) == (["0", "253", "254", "255"], [])
    _, named, _ = judged(tmp_path / "e", byte_array(0, 1, 255, 0, class_names=names))
    assert named[2] == "c255"
    assert judged(tmp_path / "f", far)[0]
    assert judged(tmp_path / "g", far, no_label="-100")[1] == ["0", "1", "", "0"]


def test_labels_counted_from_1_may_have_one_that_stands_for_none(tmp_path: Path) -> None:
    told, _, _ = judged(tmp_path / "a", byte_array(1, 2, 255, 1), first_class="1")
    _, classes, _ = judged(tmp_path / "b", byte_array(1, 2, 255, 1), first_class="1", no_label="255")

    assert "no_label=255" in told
    assert classes == ["1", "2", "", "1"]


def test_a_word_stands_for_no_label_of_numbers(tmp_path: Path) -> None:
    told, _, _ = judged(tmp_path, byte_array(0, 1, 0, 1), no_label="void")

    assert 'numbers its classes, and no_label "void" is no number' in told


BY_NUMBER: dict[str, tuple[dict[str, bytes], bytes | None]] = {
    "a table": (PICTURES, b"filename,label\n0.png,0\n1.png,1\n2.png,255\n3.png,1\n"),
    "a table with -1": (PICTURES, b"filename,label\n0.png,0\n1.png,1\n2.png,-1\n3.png,1\n"),
    "folders": ({"0/a.png": A, "1/b.png": B, "255/c.png": C}, None),
}


@pytest.mark.parametrize(("files", "table"), BY_NUMBER.values(), ids=BY_NUMBER)
def test_a_class_that_may_be_none_by_its_number_is_refused_until_somebody_says_so(
    files: dict[str, bytes], table: bytes | None, tmp_path: Path
) -> None:
    number = "-1" if table and b"-1" in table else "255"

    told, _, _ = judged(tmp_path / "a", zip_of(files), table=table)
    _, classes, _ = judged(tmp_path / "b", zip_of(files), table=table, no_label=number)

    assert f'has images of "{number}", and ' in told
    assert f"say no_label={number}; if it is a class, " in told
    assert sorted(classes)[:2] == ["", "0"]
    assert number not in classes


def test_images_may_join_a_class_that_is_called_255(tmp_path: Path) -> None:
    files = {"train/0/a.png": A, "train/255/c.png": C}
    words = {"cat/a.png": A, "dog/b.png": B, "unknown/c.png": C}

    _, joined, _ = judged(tmp_path / "a", zip_of(files), class_names=["0", "1", "255"])
    _, listed, _ = judged(tmp_path / "b", zip_of({**files, "classes.txt": b"0\n255\n"}))
    _, said, notes = judged(tmp_path / "c", zip_of(words), no_label="Unknown")

    assert sorted(joined) == sorted(listed) == ["0", "255"]
    assert sorted(said) == ["", "cat", "dog"]
    assert '1 image is of "Unknown", which stands for no class.' in notes


def test_a_table_names_images_of_its_own_folder_first(tmp_path: Path) -> None:
    table = b"filename,label\n1.png,cat\n"
    files = {"test/labels.csv": table, "test/images/1.png": A, "train/cat/1.png": B, "train/dog/2.png": C}

    said = taken(tmp_path, zip_of(files))

    assert places(said) == {
        "test/images/1.png": ("test", "cat"),
        "train/cat/1.png": ("train", "cat"),
        "train/dog/2.png": ("train", "dog"),
    }
