"""Tables of Kaggle: images are named by their ids, which are their names without the ending."""

from pathlib import Path

import pytest

from clarinet.files.label_files import load_labels
from tests.app.datasets.files import picture, zip_of
from tests.cases.taking import places, taken

A, B, C = (picture(mode="L", shade=shade) for shade in range(3))


@pytest.mark.parametrize(
    ("files", "table", "expected"),
    [
        (
            {"train/1.png": A, "train/2.png": B, "test/1.png": C},  # the test images count from 1, too
            "id,label\n1,frog\n2,\n",
            {"train/1.png": ("train", "frog"), "train/2.png": ("train", None), "test/1.png": ("test", None)},
        ),
        (
            {"train/a.png": A, "val/b.png": B, "test/c.png": C},
            "image_id,label\na.png,x\nb.png,y\n",
            {"train/a.png": ("train", "x"), "val/b.png": ("train", "y"), "test/c.png": ("test", None)},
        ),
        (  # where there is a name, an id is none
            {"1.png": A, "2.png": B},
            "id,filename,label\n2,1.png,x\n1,2.png,y\n",
            {"1.png": ("train", "x"), "2.png": ("train", "y")},
        ),
    ],
)
def test_a_table_beside_a_zip_finds_images_by_their_ids(
    tmp_path: Path, files: dict[str, bytes], table: str, expected: dict[str, tuple[str, str | None]]
) -> None:
    assert places(taken(tmp_path, zip_of(files), table=table.encode())) == expected


@pytest.mark.parametrize(
    ("files", "table", "said"),
    [
        (
            {"train/1.png": A, "train/2.png": B},
            "id,label\n1,frog\n",
            '"train/2.png" is in upload.zip but not',
        ),
        ({"train/1.png": A, "test/9.png": B}, "id,label\n9,frog\n1,cat\n1,dog\n", "is named twice"),
        ({"train/1.png": A, "test/1.png": B}, "id,label\n1,frog\n7,cat\n", '"7" is named in line 3'),
        ({"1.png": A, "1.bmp": B}, "id,label\n1,frog\n", "could be several files"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, files: dict[str, bytes], table: str, said: str) -> None:
    assert said in taken(tmp_path, zip_of(files), table=table.encode())["refused"]


def test_a_table_in_the_zip_whose_ids_are_of_other_things_is_left_out(tmp_path: Path) -> None:
    files = {"cat/1.png": A, "dog/2.png": B, "owners.csv": b"id,label\nann,x\n"}

    result = taken(tmp_path, zip_of(files))

    assert places(result) == {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")}
    assert '"owners.csv" names no images and was left out.' in result["notes"]


def test_the_library_reads_such_a_table_as_labels(tmp_path: Path) -> None:
    (table := tmp_path / "trainLabels.csv").write_text("id,label\n2,truck\n1,frog\n")

    labels = load_labels(table, images=2, filenames=["train/1.png", "train/2.png"])

    assert labels.class_names == ["frog", "truck"]
    assert labels.positions is not None
    assert dict(zip(labels.positions.tolist(), labels.classes.tolist(), strict=True)) == {0: 0, 1: 1}
