"""Tables of images as other programs write them: which column tells the class, and by which name."""

from pathlib import Path

import pytest

from app.datasets.intake.__main__ import take_in
from app.datasets.intake.tables import read_table
from app.stores.folder import FolderStorage
from clarinet.files.refusal import Refused
from tests.app.datasets.files import picture, zip_of

FILES = ("a.png", "b.png", "c.png", "d.png")


def table_of(header: str, *cells: str) -> bytes:
    """A line for each file."""
    lines = [f"{file},{cell}" for file, cell in zip(FILES, cells, strict=True)]
    return "\n".join([f"filename,{header}", *lines]).encode()


ANIMALS = ["cat", "dog", "cat", "dog"]
TOLD = {
    "True and False": ("cat,dog", ("True,False", "False,True", "True,False", "False,True")),
    "floats": ("cat,dog", ("1.0,0.0", "0.0,1.0", "1.0,0.0", "0.0,1.0")),
    "beside a split": ("cat,dog,split", ("1,0,train", "0,1,train", "1,0,test", "0,1,test")),
    "beside an id": ("id,cat,dog", ("1,1,0", "0,0,1", "1,1,0", "0,0,1")),
    "beside an index": ("index,cat,dog", ("0,1,0", "1,0,1", "2,1,0", "3,0,1")),
    "beside is_valid": ("cat,dog,is_valid", ("1,0,0", "0,1,0", "1,0,1", "0,1,1")),
    "beside measures": ("width,cat,dog", ("64,1,0", "32,0,1", "64,1,0", "48,0,1")),
    "number and name": ("label,label_name", ("1,cat", "0,dog", "1,cat", "0,dog")),
    "name and number": ("class_name,label", ("cat,1.0", "dog,0.0", "cat,1", "dog,0")),
}


@pytest.mark.parametrize(("header", "cells"), TOLD.values(), ids=TOLD)
def test_the_classes_are_found(header: str, cells: tuple[str, ...]) -> None:
    table = read_table(table_of(header, *cells), "t.csv")

    assert [row.class_name for row in table.rows] == ANIMALS
    assert sorted(table.classes) == ["cat", "dog"]
    if "label" in header:
        assert table.classes == ["dog", "cat"], "in the order of the numbers"


def test_numbers_with_a_point_are_whole() -> None:
    table = read_table(table_of("label", "0.0", "1.0", "", "1.0"), "t.csv")
    mixed = read_table(table_of("label", "0.0", "1.5", "0.0", "1.0"), "t.csv")

    assert [row.class_name for row in table.rows] == ["0", "1", None, "1"]
    assert [row.class_name for row in mixed.rows] == ["0.0", "1.5", "0.0", "1.0"]


def test_names_in_lines_of_json_go_before_numbers() -> None:
    lines = [
        f'{{"file_name": "{file}", "label": {number}, "label_name": "{name}"}}'
        for file, number, name in zip(FILES, (1, 0, 1, 0), ANIMALS, strict=True)
    ]

    table = read_table("\n".join(lines).encode(), "metadata.jsonl")

    assert [row.class_name for row in table.rows] == ANIMALS
    assert table.classes == ["dog", "cat"]


@pytest.mark.parametrize(
    "cells",
    [
        ("0,cat", "1,cat", "0,cat", "1,cat"),
        ("0,cat", "0,dog", "0,cat", "1,dog"),
        ("0,cat", "1,dog", "0,", "1,dog"),
    ],
)
def test_names_and_numbers_that_do_not_go_together_are_refused(cells: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="two columns that do not go together one to one"):
        read_table(table_of("label,label_name", *cells), "t.csv")


def test_attributes_beside_a_split_are_no_classes() -> None:
    table = read_table(table_of("split,blurry,night", "train,1,1", "train,0,0", "test,1,0", "test,0,1"), "t")

    assert not table.has_classes
    assert table.unread == ["blurry", "night"]


@pytest.mark.parametrize("where", ["beside", "inside", "folders"])
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"classes": "cat\ndog"}, "classes cannot be used"),
        ({"first_class": "1"}, "first_class cannot be used"),
        ({"classes": "cat\ndog", "first_class": "1"}, "classes and first_class cannot be used"),
    ],
)
def test_what_is_said_of_numbered_classes_is_refused_where_nothing_numbers_them(
    said: dict[str, str], told: str, where: str, tmp_path: Path
) -> None:
    storage, table = FolderStorage(tmp_path), table_of("label", "1", "2", "1", "2")
    files = {f"x/{file}" if where == "folders" else file: picture(shade=at) for at, file in enumerate(FILES)}
    storage.put("data", zip_of({**files, "labels.csv": table} if where == "inside" else files))
    storage.put("table", table)
    upload = {"kind": "auto", "name": "x.zip", "data": "data", **said}

    with pytest.raises(Refused, match=told):
        take_in(
            storage, "to", upload | ({"table": "table", "table_name": "t.csv"} if where == "beside" else {})
        )
