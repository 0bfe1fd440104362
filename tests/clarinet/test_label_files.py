"""Label files: what the application writes is read back; what is broken is refused in a sentence."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.labels.exports.formats import ExportFormat
from app.labels.exports.labels import pieces
from app.labels.importing.reading import read_answers
from app.runs.labels import freeze
from app.stores.folder import FolderStorage
from clarinet.files.label_files import load_labels
from clarinet.files.label_table import COMPLEMENTARY, TRUE, LabelRow, Labels
from clarinet.recipes.errors import ClassesNotCounted, ColumnsLeftOut, DataError

# Image 4 is not class 2 and not class 0; image 1 is class 2.
GIVEN = [
    LabelRow(1, "true", 2, 1.0, example_id=91, answers=2),
    LabelRow(4, "complementary", 0, 0.5, example_id=94, answers=2),
    LabelRow(4, "complementary", 2, 0.5, example_id=94, answers=2),
]
NAMES = ("cat", "=dog", "owl, grey")


def write(kind: str, folder: Path, names: tuple[str, ...] = NAMES) -> Path:
    """A file of the application with these labels."""
    if kind == "snapshot":
        storage = FolderStorage(folder)
        labels = Labels(
            example_ids=np.array([91, 94, 94]),
            positions=np.array([1, 4, 4]),
            kinds=np.array([TRUE, COMPLEMENTARY, COMPLEMENTARY], np.uint8),
            classes=np.array([2, 0, 2]),
            weights=np.array([1, 0.5, 0.5], np.float32),
            num_classes=3,
        )
        return storage.path(f"snapshots/{freeze(storage, labels)}.npz")
    path = folder / f"labels.{kind}"
    path.write_bytes(
        b"".join(pieces(GIVEN, ExportFormat(kind), class_names=names, num_images=5, image_url=""))
    )
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "npz", "snapshot"])
class TestFiles:
    def test_what_the_application_writes_is_read_back(self, kind: str, tmp_path: Path) -> None:
        labels = load_labels(str(write(kind, tmp_path)), images=5, num_classes=3)

        assert labels.positions is not None
        assert labels.positions.tolist() == [1, 4, 4]
        assert labels.true.tolist() == [2, -1, -1]
        assert labels.complementary.tolist() == [-1, 0, 2]
        assert labels.weights.tolist() == [1, 0.5, 0.5]
        assert labels.probabilities is None
        assert labels.weights.dtype == np.float32
        assert labels.positions.dtype == labels.true.dtype == np.int64

    def test_labels_of_other_images_or_classes_are_refused(self, kind: str, tmp_path: Path) -> None:
        path = write(kind, tmp_path)

        with pytest.raises(
            DataError, match=r"label 2 of .* is about image 4, but there are 4|belongs to 5 images"
        ):
            load_labels(path, images=4, num_classes=3)
        with pytest.raises(DataError, match=r"label 1 of .* names class 2; there are 2 classes|is about 3"):
            load_labels(path, images=5, num_classes=2)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "npz"])
def test_the_classes_have_the_campaigns_names_and_order(kind: str, tmp_path: Path) -> None:
    """Also those that a spreadsheet would take for a formula."""
    given = [LabelRow(k, "true", k, 1.0, example_id=91 + k, answers=1) for k in (2, 0, 1)]
    path = tmp_path / f"labels.{kind}"
    path.write_bytes(
        b"".join(pieces(given, ExportFormat(kind), class_names=NAMES, num_images=5, image_url=""))
    )

    labels = load_labels(path, images=5)

    assert labels.class_names == list(NAMES)
    assert labels.num_classes == 3
    with pytest.raises(DataError, match="is about 3 classes, but there should be 2"):
        load_labels(path, images=5, num_classes=2)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "npz"])
def test_an_image_more_or_less_is_refused(kind: str, tmp_path: Path) -> None:
    """The labels of all images after it would be those of others."""
    path = write(kind, tmp_path)

    with pytest.raises(
        DataError, match=r"belongs to 5 images, but here are 6,.* give the images as they were"
    ):
        load_labels(path, images=6)
    assert len(load_labels(path, images=5).true) == 3


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "npz"])
def test_a_campaign_has_its_classes_also_where_nothing_is_known_of_the_last(
    kind: str, tmp_path: Path
) -> None:
    labels = load_labels(write(kind, tmp_path, (*NAMES, "fox")), images=5)

    assert labels.num_classes == 4
    assert labels.class_names == ([*NAMES, "fox"] if kind == "npz" else None)
    assert labels.named.items() >= {0: "cat", 2: "owl, grey"}.items()


def test_names_alone_do_not_tell_how_many_classes_there_are(tmp_path: Path) -> None:
    """The last ones may have no label yet."""
    rows = [f"{k},true,{k},1,{name}" for k, name in enumerate(("cat", "dog"))]
    (tmp_path / "l.csv").write_text("\n".join(["position,kind,class,weight,class_name", *rows]))

    with pytest.raises(ClassesNotCounted, match="num_classes"):
        load_labels(tmp_path / "l.csv", images=3)
    assert load_labels(tmp_path / "l.csv", images=3, num_classes=2).class_names == ["cat", "dog"]
    assert load_labels(tmp_path / "l.csv", images=3, num_classes=3).class_names is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,true,0,1,cat,2\n1,true,1,1,cat,2", "two names for one class, or one name for two"),
        ("0,true,0,1,cat,2\n1,true,0,1,dog,2", "two names for one class, or one name for two"),
        ("0,true,0,1,cat,2\n1,true,1,1,dog,3", "about 2, 3 classes, but there should be one number"),
    ],
)
def test_classes_that_contradict_each_other_are_refused(rows: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(f"position,kind,class,weight,class_name,num_classes\n{rows}")

    with pytest.raises(DataError, match=words):
        load_labels(tmp_path / "l.csv", images=2)


def test_both_sides_read_a_table_that_somebody_wrote_by_hand(tmp_path: Path) -> None:
    """The library as labels, the application as labels from elsewhere."""
    text = "Position, Kind ,Class,Weight,Class_Name\n0,True,1,1,dog\n1, complementary,0,1,'=cat\n"
    (tmp_path / "l.csv").write_text(text)

    labels = load_labels(tmp_path / "l.csv", images=2, num_classes=2)
    answers = read_answers(text.encode()).answers

    assert labels.named == {0: "=cat", 1: "dog"}
    assert (labels.true.tolist(), labels.complementary.tolist()) == ([1, -1], [-1, 0])
    assert [(said.position, said.class_name, said.value) for said in answers] == [
        (0, "dog", "yes"),
        (1, "=cat", "no"),
    ]


HEADER = "position,kind,class,weight,probability"


class TestProbabilities:
    def test_they_are_read_where_all_labels_have_one(self, tmp_path: Path) -> None:
        path = tmp_path / "l.csv"

        path.write_text(f"{HEADER},excluded\n0,true,1,1,0.25,\n1,complementary,0,1,0.5,\n")
        complete = load_labels(path, images=2, num_classes=2).probabilities
        path.write_text(f"{HEADER}\n0,true,1,1,0.25\n1,complementary,0,1,\n")
        partial = load_labels(path, images=2, num_classes=2).probabilities

        assert complete is not None
        assert complete.tolist() == [0.25, 0.5]
        assert partial is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("l.txt", "", "must end in .csv, .tsv, .jsonl, .npz"),
        ("l.csv", "", "lacks position"),
        ("l.csv", HEADER, "has no labels"),
        ("l.csv", "position,kind,class\n0,true,1", "lacks weight"),
        ("l.csv", f"{HEADER}\n0,maybe,1,1,", "kind 'maybe'"),
        ("l.csv", f"{HEADER}\n0,true,1,1,\n0,true,1.5,1,", r"^line 3 of .*l\.csv: class is '1\.5'; .* whole"),
        ("l.csv", f'{HEADER},note\n0,true,1,1,,"a\nb"\nx,true,1,1,', "^line 4 of .*: position is 'x'"),
        ("l.csv", f"{HEADER}\n0,true", "^line 2 of .*: class is ''; expected a whole number"),
        ("l.csv", f"{HEADER}\n0,true,1", "^line 2 of .*: weight is ''; expected a number of at least 0"),
        ("l.csv", f"{HEADER}\n0,true,1,heavy,", "^line 2 of .*: weight is 'heavy'"),
        ("l.csv", f"{HEADER}\n0,true,1,-1,", "^line 2 of .*: weight is '-1'"),
        ("l.csv", f"{HEADER}\n0,true,1,nan,", "^line 2 of .*: weight is 'nan'"),
        ("l.csv", f"{HEADER}\n0,true,1,inf,", "^line 2 of .*: weight is 'inf'"),
        ("l.csv", f"{HEADER}\n0,true,1,1,often", "^line 2 of .*: probability is 'often'"),
        ("l.csv", f"{HEADER},num_classes\n0,true,1,1,,two", "^line 2 of .*: num_classes is 'two'"),
        ("l.csv", f"{HEADER},num_images\n0,true,1,1,,2.0", "^line 2 of .*: num_images is '2.0'"),
        ("l.csv", f"{HEADER}\n-1,true,1,1,", "about image -1"),
        ("l.jsonl", "{", "cannot be read as labels"),
        ("l.jsonl", "[1]", "no JSON object"),
        ("l.jsonl", "[" * 100_000, r"l\.jsonl cannot be read as labels: its JSON is nested too deeply"),
        (
            "l.jsonl",
            json.dumps({"position": 0, "kind": "true", "classes": [True], "weight": 1}),
            r"^line 1 of .*l\.jsonl: class is True; expected a whole number",
        ),
        ("l.jsonl", json.dumps({"position": 0, "kind": "true", "classes": 1, "weight": 1}), "no list"),
        ("l.jsonl", json.dumps({"position": 0, "kind": "true", "classes": "1", "weight": 1}), "no list"),
        ("l.npz", "not a zip", r'l\.npz" is text and no zip file at all'),
        ("l.npz", "", "no zip file at all"),
        ("l.npz", "PK\x03\x04 and no more", "no zip file at all"),
    ],
)
def test_what_is_no_label_file_is_a_sentence(name: str, content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)

    with pytest.raises(DataError, match=words):
        load_labels(path, images=2, num_classes=2)


def test_a_missing_file_and_arrays_of_unequal_length_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_labels(tmp_path / "none.csv", images=2, num_classes=2)
    path = tmp_path / "l.npz"
    np.savez(path, positions=np.arange(2), kinds=np.zeros(3), classes=np.zeros(2), weights=np.ones(2))
    with pytest.raises(DataError, match="one length for all"):
        load_labels(path, images=2, num_classes=2)
    ones = np.ones(2, np.int64)
    np.savez(path, positions=ones, kinds=ones, classes=ones, weights=ones, probabilities=np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"label 1 of .*: probability is 'a'"):
        load_labels(path, images=2, num_classes=2)
    np.savez(path, positions=ones, kinds=ones, classes=ones, weights=[1, -1])
    with pytest.raises(DataError, match=r"label 2 of .*: weight is -1"):
        load_labels(path, images=2, num_classes=2)


def test_an_npz_may_say_that_nobody_knows_a_probability(tmp_path: Path) -> None:
    path = tmp_path / "l.npz"
    one: dict[str, Any] = {
        "positions": np.arange(2),
        "kinds": np.zeros(2, int),
        "classes": np.zeros(2, int),
        "weights": np.ones(2),
    }

    np.savez(path, **one, probabilities=np.array([0.5, np.nan]))
    labels = load_labels(path, images=2, num_classes=2)

    assert (len(labels), labels.probabilities) == (2, None)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "npz"])
def test_unequal_probabilities_without_a_word_on_excluded_classes_are_said(
    tmp_path: Path, ending: str
) -> None:
    def written(chances: list[float], *, says: bool) -> Path:
        path = tmp_path / f"l.{ending}"
        if ending == "npz":
            more: dict[str, Any] = {"excluded": np.full((2, 1), -1)} if says else {}
            about: dict[str, Any] = {
                "positions": [0, 1],
                "kinds": [1, 1],
                "classes": [0, 1],
                "weights": [1.0, 1.0],
            }
            np.savez(path, **about, probabilities=chances, **more)
        elif ending == "csv":
            lines = [f"{n},complementary,{n},1,{chance}" for n, chance in enumerate(chances)]
            head = "position,kind,class,weight,probability" + ",excluded" * says
            path.write_text("\n".join([head, *(line + "," * says for line in lines)]) + "\n")
        else:
            entry: dict[str, Any] = {"kind": "complementary", "weight": 1}
            entry |= {"excluded": []} if says else {}
            lines = [
                json.dumps(entry | {"position": n, "classes": [n], "probability": chance})
                for n, chance in enumerate(chances)
            ]
            path.write_text("\n".join(lines) + "\n")
        return path

    with pytest.warns(ColumnsLeftOut, match="nothing says which classes were excluded"):
        load_labels(written([0.25, 0.5], says=False), images=2, num_classes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_labels(written([0.25, 0.5], says=True), images=2, num_classes=2)
        load_labels(written([0.5, 0.5], says=False), images=2, num_classes=2)


def test_what_earlier_answers_had_ruled_out_is_read_and_must_be_classes(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text(
        "position,kind,class,weight,probability,excluded\n0,true,2,1,0.6,0 1\n0,complementary,0,1,0.25,\n"
    )

    read = load_labels(path, images=2, num_classes=4)
    path.write_text("position,kind,class,weight,probability,excluded\n0,true,2,1,0.6,0 4\n")

    assert read.excluded is not None
    assert read.excluded.tolist() == [[0, 1], [-1, -1]]
    assert read.true_alone().classes.tolist() == [2]
    with pytest.raises(DataError, match=r"label 1 of .* excludes 0, 4; there are 4 classes"):
        load_labels(path, images=2, num_classes=4)
