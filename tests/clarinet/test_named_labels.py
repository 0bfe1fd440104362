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
    text = "position,filename,kind,class,weight,num_classes\n0,x/train/dog/1.png,true,1,1,2\n2,,true,1,1,2\n"
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
        ("filename,label\n1.png,cat\n", "'1.png', which could be several images here; write the folders"),
        ("id,label\n1,cat\n", "label 1 of .*'1', which could be several images here; write the folders"),
        ("id,label\n9,cat\n", "'9', which is no image here"),
        ("filename,label\n2.png,emu\n", "'emu', which is none of cat and dog"),
        ("filename,size\n2.png,3\n", "lacks a column label"),
        ("filename,label,kind\n2.png,cat,maybe\n", "kind 'maybe'; expected complementary or true"),
        ("filename,label,weight\n2.png,cat,-1\n", "the weight '-1'"),
    ],
)
def test_what_is_not_understood_is_said(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        load_labels(written(tmp_path, text), images=3, filenames=FILES, class_names=["cat", "dog"])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["2.png,cat,true", "cat/1.png,cat,true", "cat/2.png,dog,true"],
            "line 4 .* is 'dog', but line 2 .* is 'cat'",
        ),
        (
            ["2.png,cat,true", "2.png,cat,complementary"],
            "line 3 .* is not 'cat', but line 2 says that it is 'cat'",
        ),
        (
            ["2.png,cat,complementary", "2.png,cat,true"],
            "line 3 .* is 'cat', but line 2 says that it is not 'cat'",
        ),
    ],
)
def test_two_labels_of_an_image_that_cannot_both_be_true_are_refused_with_their_lines(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, "\n".join(["filename,label,kind", *lines]))

    with pytest.raises(DataError, match=words):
        load_labels(path, images=3, filenames=FILES, class_names=["cat", "dog"])


@pytest.mark.parametrize("by", ["position", "json"])
def test_they_are_refused_by_position_too(by: str, tmp_path: Path) -> None:
    if by == "position":
        path = written(tmp_path, "position,kind,class,weight\n0,true,0,1\n1,true,0,1\n0,true,1,1\n")
    else:
        line = '{"position": 0, "kind": "%s", "classes": [1], "weight": 1}\n'
        path = written(tmp_path, line % "complementary" + line % "true", "labels.jsonl")

    with pytest.raises(
        DataError, match=r"label . of .* image 0 is '1', but label 1 says that it is .*keep the one"
    ):
        load_labels(path, images=3, num_classes=2)


def test_a_line_that_is_there_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    head, line = "filename,label,answer,weight\n", "2.png,cat,yes,1\n"
    beside = "2.png,dog,no,1\ncat/1.png,cat,no,1\ncat/1.png,dog,no,1\n"

    with pytest.warns(ColumnsLeftOut, match="1 line that says what an earlier one says counted once"):
        found = load_labels(
            written(tmp_path, f"{head}{line}{beside}cat/2.png,cat,ja,1\n"), images=3, filenames=FILES
        )

    assert found.positions is not None
    assert found.positions.tolist() == [1, 1, 0, 0]
    with pytest.raises(DataError, match=r"line 3 of .* says what line 2 says, with another weight"):
        load_labels(written(tmp_path, f"{head}{line}2.png,cat,yes,0.5\n"), images=3, filenames=FILES)


@pytest.mark.parametrize(
    ("class_names", "cells", "expected"),
    [(["07", "08", "09"], ["7", "9"], [0, 2]), (["0", "2", "4"], ["2", "4"], [1, 2])],
)
def test_a_number_is_the_name_of_a_class_that_is_called_so(
    class_names: list[str], cells: list[str], expected: list[int], tmp_path: Path
) -> None:
    rows = [f"{file},{cell}" for file, cell in zip(FILES, cells, strict=False)]
    path = written(tmp_path, "\n".join(["filename,label", *rows]))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = load_labels(path, images=3, filenames=FILES, class_names=class_names)

    assert found.true.tolist() == expected


def test_a_number_that_is_no_name_makes_no_places_of_the_others(tmp_path: Path) -> None:
    path = written(tmp_path, "filename,label\n2.png,0\ncat/1.png,2\ndog/1.png,1\n")

    with pytest.raises(DataError, match=r"label 3 .* '1', which is none of 0, 2 and 4; .* class_index"):
        load_labels(path, images=3, filenames=FILES, class_names=["0", "2", "4"])


def test_numbers_with_two_readings_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "filename,label\n2.png,1\n")

    with pytest.raises(DataError, match="can be read in two ways"):
        load_labels(path, images=3, filenames=FILES, class_names=["1", "2"])
