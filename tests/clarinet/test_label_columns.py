"""Columns of the library's label files: each is understood, warned of, or refused."""

import warnings
from pathlib import Path

import pytest

from clarinet import ColumnsLeftOut, load_labels
from clarinet.recipes.errors import DataError

FILES, CLASSES = ["1.png", "2.png", "3.png"], ["cat", "dog"]
PLACED = "position,kind,class,weight"
LINE = '{"position": 0, "kind": "true", "classes": [0], "weight": 1'

REFUSED = {
    "correct y and n": (
        "l.csv",
        "filename,label,correct\n1.png,cat,y\n2.png,dog,n\n",
        "in the column 'correct'; call it",
    ),
    "antwort": ("l.csv", "filename,label,antwort\n1.png,cat,nein\n", "says 'nein' in the column 'antwort'"),
    "by position": ("l.csv", f"{PLACED},richtig\n0,true,0,1,ja\n", "in the column 'richtig'; call it answer"),
    "answers": (
        "l.csv",
        "filename,label,answers\n1.png,cat,no\n",
        "says 'no' in the column 'answers'; call it",
    ),
    "no answers": (
        "l.csv",
        "filename,label,answers\n1.png,cat,0\n",
        "says '0' in the column 'answers'; call it",
    ),
    "imported": ("l.csv", "filename,label,imported\n1.png,cat,no\n", "in the column 'imported'; call it"),
    "excluded": (
        "l.csv",
        "filename,label,excluded\n1.png,cat,no\n2.png,cat,yes\n",
        "column 'excluded'; call",
    ),
    "answers by position": (
        "l.csv",
        f"{PLACED},answers\n0,true,0,1,no\n",
        "in the column 'answers'; call it",
    ),
    "answers as a key": ("l.jsonl", f'{LINE}, "answers": "no"}}\n', "in the key 'answers'; call it"),
    "one line": ("l.csv", "filename,label,correct\n1.png,cat,0\n", "says '0' in the column 'correct'; call"),
    "not so": (
        "l.csv",
        "filename,label,state\n1.png,cat,not so\n2.png,cat,so\n",
        "says 'not so' in the column",
    ),
    "two values": (
        "l.csv",
        "filename,label,state\n1.png,cat,hit\n2.png,dog,miss\n",
        "'hit' and 'miss' in the column 'state'.* call it answer",
    ),
    "image and path": ("l.csv", "image,path,label\n1.png,2.png,cat\n", "image and path, which could both be"),
    "an empty kind": (
        "l.csv",
        "filename,label,kind\n1.png,cat,\n",
        "label 1 of .* says nothing in the column kind",
    ),
    "a key": ("l.jsonl", f'{LINE}, "ok": false}}\n{LINE}, "ok": true}}\n', "in the key 'ok'"),
    "a key twice": ("l.jsonl", f'{LINE}, "kind": "complementary"}}\n', "key 'kind' twice"),
    "more names than classes": (
        "l.jsonl",
        f'{LINE}, "class_names": ["a", "b"]}}\n',
        "1 class and 2 names of classes",
    ),
    "label and class": (
        "l.csv",
        "filename,label,class\n1.png,cat,pet\n",
        "columns label and class, which could both",
    ),
    "name and place apart": (
        "l.csv",
        "filename,class_name,class_index\n1.png,cat,1\n",
        "'cat' in class_name and '1' in",
    ),
    "the same twice": (
        "l.csv",
        "filename,label,Label\n1.png,cat,dog\n",
        "same column twice: 'label' and 'Label'",
    ),
    "answer and kind": (
        "l.csv",
        "filename,label,kind,answer\n1.png,cat,true,no\n",
        "could both be the answer",
    ),
    "a place beyond": (
        "l.csv",
        "filename,class_index\n1.png,2\n",
        "The numbers of classes are all 2, and there are 2 classes",
    ),
    "a decimal comma": ("l.csv", "filename;label;weight\n1.png;cat;0,5\n", "the decimals behind a point"),
    "an old encoding": (
        "l.csv",
        "filename,label\n1.png,K\u00e4fer\n".encode("cp1252"),
        "save it as “CSV UTF-8”",
    ),
}


def written(folder: Path, name: str, text: str | bytes) -> Path:
    """A file of labels."""
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / name


@pytest.mark.parametrize(("name", "text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_be_read_otherwise_is_refused(
    name: str, text: str | bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words):
        load_labels(
            written(tmp_path, name, text), images=3, num_classes=2, filenames=FILES, class_names=CLASSES
        )


TAKEN = {
    "answers": ("l.csv", "filename,label,answer\n1.png,cat,no\n2.png,dog,oui\n", [0, -1], [-1, 1], ""),
    "unsure": (
        "l.csv",
        "filename,label,answer\n1.png,cat,no\n2.png,dog,unsure\n",
        [0],
        [-1],
        "1 line that answers",
    ),
    "a column": (
        "l.csv",
        "filename,label,camera\n1.png,cat,Nikon\n",
        [-1],
        [0],
        "the column is not read: camera",
    ),
    "a key": ("l.jsonl", f'{LINE}, "camera": "Nikon"}}\n', [-1], [0], "the column is not read: camera"),
    "of ours": (
        "l.csv",
        "example_id,filename,answers,imported,excluded,probability,label\n7,1.png,2,False,0 1,0.5,cat\n",
        [-1],
        [0],
        "",
    ),
    "keys of ours": (
        "l.jsonl",
        f'{LINE}, "answers": 2, "imported": false, "example_id": 7}}\n',
        [-1],
        [0],
        "",
    ),
    "an image": ("l.csv", "image,label\n1.png,dog\n", [-1], [1], ""),
    "a path": ("l.csv", "path,label\nx/1.png,dog\n", [-1], [1], ""),
    "an image beside": (
        "l.csv",
        "filename,image,label\n1.png,aGk=,dog\n",
        [-1],
        [1],
        "the column is not read: image",
    ),
    "UTF-16": ("l.tsv", "filename\tlabel\n1.png\tcat\n".encode("utf-16"), [-1], [0], ""),
    "semicolons by position": ("l.csv", PLACED.replace(",", ";") + "\n0;true;0;1\n", [-1], [0], ""),
    "row numbers of R": ("l.csv", '"","filename","label"\n"1","1.png","cat"\n', [-1], [0], ""),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_what_is_understood(case: tuple[str, str | bytes, list[int], list[int], str], tmp_path: Path) -> None:
    name, text, noes, yes, told = case
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = load_labels(
            written(tmp_path, name, text), images=3, num_classes=2, filenames=FILES, class_names=CLASSES
        )

    assert (found.complementary.tolist(), found.true.tolist()) == (noes, yes)
    assert [one.category for one in said] == ([ColumnsLeftOut] if told else [])
    assert all(told in str(one.message) for one in said)


LEFT_OUT = {
    "yes and no": ("l.csv", "filename,label,chk\n1.png,cat,y\n2.png,dog,n\n", "chk"),
    "two of one meaning": ("l.csv", "filename,label,class\n1.png,cat,pet\n2.png,dog,pet\n", "class"),
    "by position": ("l.csv", f"{PLACED},ok\n0,true,0,1,y\n1,true,1,1,n\n", "ok"),
    "a key": ("l.jsonl", f'{LINE}, "ok": false}}\n{LINE.replace("0", "1")}, "ok": true}}\n', "ok"),
}


@pytest.mark.parametrize(("name", "text", "column"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_columns_are_left_out_where_somebody_says_so(
    name: str, text: str, column: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    of = {"images": 3, "num_classes": 2, "filenames": FILES, "class_names": CLASSES}

    with pytest.raises(DataError):
        load_labels(path, **of)  # type: ignore[arg-type] # one dictionary for several calls
    labels = load_labels(path, **of, ignore_columns=[column])  # type: ignore[arg-type]

    assert labels.classes.tolist() == [0, 1]
    with pytest.raises(DataError, match="'okay' that could be left out"):
        load_labels(path, **of, ignore_columns=[column, "okay"])  # type: ignore[arg-type]


def test_a_number_that_may_stand_for_no_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("filename,label\n1.png,0\n2.png,1\n3.png,255\n")

    with pytest.raises(DataError, match='labels of "255", which may mean that nobody knows the class'):
        load_labels(path, images=3, filenames=FILES)
