"""Archives as people make them, and what an import makes of each."""

import time
from pathlib import Path

import numpy as np
import pytest

from app.datasets.intake.shards import Record, read_records
from app.datasets.intake.tables import read_table
from app.stores.folder import FolderStorage
from tests.app.datasets.files import npz_of, picture, zip_of
from tests.cases.taking import PREFIX, as_finder_packs, packed_as, places, taken

A, B, C, D = (picture(mode="L", shade=shade) for shade in range(4))
TWO = {"1.png": A, "2.png": B}
TWO_PLACES = {"1.png": ("train", "cat"), "2.png": ("train", "dog")}
THREE_SPLITS = {
    f"{s}/{c}/{n}.png": A for s in ("train", "valid", "test") for n, c in enumerate(("cat", "dog"))
}

ZIPS: dict[str, tuple[dict[str, bytes], dict[str, tuple[str, str | None]], list[str]]] = {
    "litter of editors and disk stations": (
        {
            "cat/1.png": A,
            "dog/2.png": B,
            ".ipynb_checkpoints/1-checkpoint.png": A,
            "cat/@eaDir/1.png/SYNOPHOTO_THUMB_M.jpg": C,
            ".thumbnails/a/b/c.png": C,
            "$RECYCLE.BIN/x.png": C,
        },
        {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")},
        [],
    ),
    "three splits": (
        {"README.roboflow.txt": b"x", **THREE_SPLITS},
        {path: ("test" if path.startswith("test") else "train", path.split("/")[1]) for path in THREE_SPLITS},
        [
            '"valid" joins the training images, because there is a test split, too.',
            "1 file is no picture and was left out: 1 .txt.",
        ],
    ),
    "train and validation alone": (
        {"train/cat/1.png": A, "validation/cat/2.png": B},
        {"train/cat/1.png": ("train", "cat"), "validation/cat/2.png": ("test", "cat")},
        ['"validation" is taken for the test split.'],
    ),
    "the natural target": (
        {"train/1.png": A, "train/2.png": B, "test/cat/3.png": C, "test/dog/4.png": D},
        {
            "train/1.png": ("train", None),
            "train/2.png": ("train", None),
            "test/cat/3.png": ("test", "cat"),
            "test/dog/4.png": ("test", "dog"),
        },
        [],
    ),
    "a class called train": (
        {"bus/1.png": A, "car/2.png": B, "train/3.png": C},
        {"bus/1.png": ("train", "bus"), "car/2.png": ("train", "car"), "train/3.png": ("train", "train")},
        [],
    ),
    "classes called test and train below splits": (
        {"train/test/1.png": A, "test/train/2.png": B},
        {"train/test/1.png": ("train", "test"), "test/train/2.png": ("test", "train")},
        ["The training images are of test, the test images of train: no class is in both."],
    ),
    "a dot in front": (
        {"./cat/1.png": A, "./dog/2.png": B},
        {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")},
        [],
    ),
    "metadata of Hugging Face": (
        {
            "train/1.png": A,
            "train/2.png": B,
            "train/metadata.csv": b"file_name,label,width\n1.png,cat,6\n2.png,dog,6\n",
            "test/3.png": C,
            "test/metadata.csv": b"file_name,label\n3.png,dog\n",
        },
        {"train/1.png": ("train", "cat"), "train/2.png": ("train", "dog"), "test/3.png": ("test", "dog")},
        ["Of train/metadata.csv the columns width were left out."],
    ),
    "metadata without classes beside class folders": (
        {"cat/1.png": A, "dog/2.png": B, "metadata.csv": b"file_name,text\ncat/1.png,x\ndog/2.png,y\n"},
        {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")},
        ["Of metadata.csv the columns text were left out."],
    ),
    "a table of other things beside class folders": (
        {"cat/1.png": A, "dog/2.png": B, "notes.csv": b"a,b\n1,2\n"},
        {"cat/1.png": ("train", "cat"), "dog/2.png": ("train", "dog")},
        ['"notes.csv" names no images and was left out.'],
    ),
}


@pytest.mark.parametrize(("files", "expected", "notes"), ZIPS.values(), ids=ZIPS.keys())
def test_a_zip_as_people_make_it(
    files: dict[str, bytes], expected: dict[str, tuple[str, str | None]], notes: list[str], tmp_path: Path
) -> None:
    result = taken(tmp_path, zip_of(files))

    assert places(result) == expected
    assert result["notes"] == notes


TABLES = {
    "semicolons": b"filename;class\n1.png;cat\n2.png;dog\n",
    "tabs": b"filename\tclass\n1.png\tcat\n2.png\tdog\n",
    "as a spreadsheet writes Unicode": "filename\tclass\n1.png\tcat\n2.png\tdog\n".encode("utf-16"),
    "a mark, line ends, capitals, spaces": (
        "\ufeffFilename , Class\r\n1.png , cat\r\n2.png, dog\r\n\r\n".encode()
    ),
    "blank rows": b"filename,class\n1.png,cat\n2.png,dog\n,,\n",
    "a comma too many": b"filename,class,\n1.png,cat,\n2.png,dog,\n",
    "another order": b"class,filename\ncat,1.png\ndog,2.png\n",
    "a dot in front": b"filename,class\n./1.png,cat\n./2.png,dog\n",
    "folders in front": b"file,label\nphotos/1.png,cat\nphotos/2.png,dog\n",
    "capitals": b"filename,class\n1.PNG,cat\n2.Png,dog\n",
    "names nobody sees": "filename,class\n1.png,cat\u200b\n2.png, dog\u00a0\n".encode(),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_table_as_people_make_it(table: bytes, tmp_path: Path) -> None:
    assert places(taken(tmp_path, zip_of(TWO), table=table)) == TWO_PLACES


def test_a_long_table_with_an_index_without_a_name_is_judged_once() -> None:
    lines = "".join(f"{number},{number}.png,cat\n" for number in range(20_000))
    start = time.monotonic()

    table = read_table(f",filename,class\n{lines}".encode(), "labels.csv")

    assert len(table.rows) == 20_000
    assert time.monotonic() - start < 60  # judged at each of its lines anew it takes half an hour


def test_a_table_finds_a_name_whose_accents_are_apart(tmp_path: Path) -> None:
    table = "filename,class\ncaf\u00e9.png,cat\n2.png,dog\n".encode()

    result = taken(tmp_path, zip_of({"cafe\u0301.png": A, "2.png": B}), table=table)

    assert places(result) == {"cafe\u0301.png": ("train", "cat"), "2.png": ("train", "dog")}


def test_a_tables_splits_and_places_go_together(tmp_path: Path) -> None:
    files = zip_of({"train/1.png": A, "test/2.png": B, "3.png": C})
    by_place = taken(tmp_path / "a", files, table=b"filename,class\n1.png,cat\n2.png,dog\n3.png,cat\n")
    said = taken(tmp_path / "b", files, table=b"filename,split\n1.png,validation\n2.png,\n3.png,train\n")

    assert {name: split for name, (split, _) in places(by_place).items()} == {
        "train/1.png": "train",
        "test/2.png": "test",
        "3.png": "train",
    }
    assert said["counts"] == {"train": 2, "test": 1}
    assert "The validation split of table.csv counts as training images." in said["notes"]


def test_a_list_gives_the_order_of_classes_and_those_without_images(tmp_path: Path) -> None:
    files = {"dog/1.png": A, "cat/2.png": B}
    listed = taken(tmp_path / "a", zip_of({**files, "classes.txt": b"dog\nowl\n Cat \n"}))
    other = taken(tmp_path / "b", zip_of({**files, "classes.txt": b"dog\nowl\n"}))

    assert listed["class_names"] == ["dog", "owl", "Cat"]
    assert places(listed)["cat/2.png"] == ("train", "Cat")
    assert other["class_names"] == ["cat", "dog"]
    assert other["notes"] == ['"classes.txt" does not list the classes of the images; left out.']


def test_names_in_utf8_without_a_flag(tmp_path: Path) -> None:
    files = {"cafe\u0301/1.png": A, "na\u00efve/2.png": B}

    result = taken(tmp_path, as_finder_packs(zip_of(files)))

    assert result["class_names"] == ["caf\u00e9", "na\u00efve"]
    assert result["notes"] == ["The names in upload.zip were read as UTF-8."]


NAMES = {
    "gbk": [
        "\u52a8\u7269\u7167\u7247/\u767d\u8272\u7684\u732b.png",
        "\u5c0f\u72d7/\u4e00\u53ea\u9ed1\u72d7.png",
    ],
    "cp932": ["\u3044\u306c/\u5199\u771f.png", "\u732b/\u4e00\u679a\u76ee.png"],
    "cp437": ["caf\u00e9/1.png", "K\u00e4se/2.png"],
    "cp866": ["\u043a\u043e\u0448\u043a\u0430/1.png", "\u0444\u043e\u0442\u043e/2.png"],
    "cp1252": ["\u00d6l/1.png", "na\u00efve/2.png"],
}


@pytest.mark.parametrize("encoding", NAMES)
def test_names_of_other_systems_are_read_where_they_are_certain(encoding: str, tmp_path: Path) -> None:
    result = taken(tmp_path, packed_as(encoding, dict.fromkeys(NAMES[encoding], A)))

    assert sorted(result["records"]) == sorted(NAMES[encoding])


def test_where_they_are_not_the_admin_is_asked(tmp_path: Path) -> None:
    data = packed_as("gbk", {"\u732b/1.png": A, "\u72d7/2.png": B})

    asked = taken(tmp_path / "a", data)
    said = taken(tmp_path / "b", data, encoding="gb18030")

    assert asked["refused"].startswith(
        '"upload.zip" does not say in which encoding its names are; one of them could be read as '
        'GBK, Chinese: "\u732b/1.png"; '
    )
    assert asked["refused"].endswith("Say which.")
    assert sorted(said["class_names"]) == ["\u72d7", "\u732b"]
    assert "not in the encoding" in taken(tmp_path / "c", data, encoding="utf-8")["refused"]


def test_labels_that_count_from_1_are_told(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (10, 8, 8), dtype=np.uint8)

    data = npz_of(x_train=images, y_train=np.arange(1, 11))

    refused = taken(tmp_path, data)["refused"]
    from_1 = taken(tmp_path, data, first_class="1")
    from_0 = taken(tmp_path, data, first_class="0")
    some = taken(tmp_path, npz_of(x_train=images, y_train=np.repeat([1, 4], 5)))

    assert (
        "numbers its classes from 1 to 10, and none is 0: counted from 1 there are 10 classes; counted"
        in refused
    )
    assert "say first_class=1 or first_class=0" in refused
    assert (from_1["class_names"], from_0["class_names"]) == (
        [str(number) for number in range(1, 11)],
        [str(number) for number in range(11)],
    )
    joins_0 = taken(tmp_path, data, class_names=["0", "1"])
    joins_1 = taken(tmp_path, data, class_names=["1", "2"])
    assert (joins_0["class_names"], joins_1["class_names"]) == (from_0["class_names"], from_1["class_names"])
    assert some["notes"][0].startswith("No image is of the class 0; if the labels count from 1")


def test_names_tell_from_where_labels_count(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (3, 8, 8), dtype=np.uint8)
    named = npz_of(x_train=images, y_train=np.array([1, 2, 3]), class_names=np.array(["cat", "dog", "owl"]))
    zero = npz_of(x_train=images, y_train=np.array([0, 2, 1]), class_names=np.array(["cat", "dog", "owl"]))

    refused = taken(tmp_path, named)["refused"]
    result = taken(tmp_path, named, first_class="1")

    assert "counted from 1, 1 is 'cat'; counted from 0, it is 'dog', and a name is missing" in refused
    assert result["class_names"] == ["cat", "dog", "owl"]
    assert [record.true_class for record in all_records(tmp_path)] == [0, 1, 2]
    assert "cannot count from 1" in taken(tmp_path, zero, first_class="1")["refused"]


def all_records(root: Path) -> list[Record]:
    """The last import's, in order; arrays have no file names."""
    return [record for some in read_records(FolderStorage(root), PREFIX, chunk=100) for record in some]


def test_all_bad_files_are_named_at_once_and_the_others_can_go_on(tmp_path: Path) -> None:
    bad = {f"cat/{number:03}.png": A if number % 10 else b"broken" for number in range(1, 60)}
    files = {**bad, "cat/deep/er/1.png": A}

    refused = taken(tmp_path / "a", zip_of(files))
    went_on = taken(tmp_path / "b", zip_of(files), skip_bad=True)

    assert refused["refused"].startswith(
        '6 files cannot be taken in. The first: "cat/deep/er/1.png" lies too'
    )
    assert [fault["file"] for fault in went_on["faults"]] == [
        "cat/deep/er/1.png",
        *(f"cat/{number:03}.png" for number in range(10, 60, 10)),
    ]
    assert went_on["counts"] == {"train": 54, "test": 0}
    assert went_on["notes"] == ["6 files were left out."]
    assert (
        "More than 100 files"
        in taken(tmp_path / "c", zip_of({f"{number}.png": b"x" for number in range(300)} | {"a.png": A}))[
            "refused"
        ]
    )
