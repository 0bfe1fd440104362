"""Labels that find their images by file name: `filename,label`."""

import warnings
from pathlib import Path

import pytest

from clarinet import ColumnsLeftOut, load_labels
from clarinet.files.named_labels import is_by_filename
from clarinet.recipes.errors import DataError

FILES = ["train/cat/1.png", "train/cat/2.png", "train/dog/1.png"]


def written(folder: Path, text: str, name: str = "labels.csv") -> Path:
    """A table as a file."""
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    "text",
    [
        "filename,label\n2.png,dog\ncat/1.png,cat\n",
        "file_name;class_name;size\npets/train/cat/2.png;Dog;3\n./train/cat/1.PNG;cat;3\n",
        "label\tfile\n1\t2.png\n0\tcat/1.png\n",
    ],
)
def test_a_table_of_names_makes_true_labels(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnsLeftOut)  # of sizes
        found = load_labels(path, images=3, filenames=FILES, class_names=["cat", "dog"])

    assert is_by_filename(path)
    assert found.positions is not None
    assert dict(zip(found.positions.tolist(), found.true.tolist(), strict=True)) == {1: 1, 0: 0}
    assert found.class_names == ["cat", "dog"]
    assert found.weights.tolist() == [1, 1]


def test_classes_are_those_of_the_table_where_nobody_names_them(tmp_path: Path) -> None:
    text = "filename,label,kind,weight\n2.png,owl,complementary,0.5\ncat/1.png,cat,true,\n"

    found = load_labels(written(tmp_path, text), images=3, filenames=FILES)

    assert found.class_names == ["cat", "owl"]
    assert (found.complementary.tolist(), found.true.tolist()) == ([1, -1], [-1, 0])
    assert found.weights.tolist() == [0.5, 1]


def test_a_file_name_goes_before_a_position(tmp_path: Path) -> None:
    text = "position,filename,kind,class,weight,num_classes\n0,x/train/dog/1.png,true,1,1,2\n2,,true,0,1,2\n"
    path = written(tmp_path, text)

    with pytest.warns(ColumnsLeftOut, match="the files of 1 label lie at other places .* as in line 2"):
        found = load_labels(path, images=3, filenames=FILES)
    by_position = load_labels(path, images=3)

    assert found.positions is not None
    assert by_position.positions is not None
    assert (found.positions.tolist(), by_position.positions.tolist()) == ([2, 2], [0, 2])
    assert not is_by_filename(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("filename,label\n1.png,cat\n", "'1.png', which is no image here"),  # two are called so
        ("filename,label\n2.png,emu\n", "'emu', which is none of cat and dog"),
        ("filename,size\n2.png,3\n", "lacks a column label"),
        ("filename,label,kind\n2.png,cat,maybe\n", "kind 'maybe'; expected complementary or true"),
        ("filename,label,weight\n2.png,cat,-1\n", "the weight '-1'"),
    ],
)
def test_what_is_not_understood_is_said(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words.replace(".", r"\.")):
        load_labels(written(tmp_path, text), images=3, filenames=FILES, class_names=["cat", "dog"])


def test_numbers_with_two_readings_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "filename,label\n2.png,1\n")

    with pytest.raises(DataError, match="can be read in two ways"):
        load_labels(path, images=3, filenames=FILES, class_names=["1", "2"])
