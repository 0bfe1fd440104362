"""Columns of tables of labels: each is understood, named as left out, or refused; none is guessed."""

import json
import re
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import AnswerValue
from app.labels.errors import BadImport
from app.labels.importing.__main__ import take_in
from app.labels.importing.rows import read_rows
from app.stores.folder import FolderStorage
from tests.app.labels.taking import bring, make_named_campaign
from tests.factories import make_campaign

CLASSES = ("cat", "dog", "owl")


def judged(
    text: str, folder: Path, **choices: object
) -> tuple[str, list[tuple[str, AnswerValue, int]], list[str]]:
    """What an import makes of a file, before its pictures are looked for: a refusal, or rows and notes."""
    storage = FolderStorage(folder)
    storage.put("data", text.encode())
    request = {"data": "data", "name": "l.csv", "class_names": list(CLASSES), "rows": "rows", **choices}
    try:
        result = take_in(storage, request)
    except BadImport as refusal:
        return refusal.detail, [], []
    told = "; ".join(f"{result['noun'].capitalize()} {number} {why}" for number, why in result["faults"])
    rows = [row for some in read_rows(storage, "rows", chunk=10) for row in some]
    return told, [(row.filename, row.value, row.candidate_class) for row in rows], result["notes"]


WORDS = {
    AnswerValue.NO: ("nein", "NON", "no", "\u5426", "faux", "F", "0", "n"),
    AnswerValue.YES: ("ja", "Oui", "S\u00ed", "si", "\u662f", "WAHR", "y", "1"),
    AnswerValue.UNSURE: ("unsure", "unsicher", "no s\u00e9", "\u4e0d\u786e\u5b9a"),
}


@pytest.mark.parametrize(("value", "words"), WORDS.items())
def test_answers_in_the_products_languages(
    value: AnswerValue, words: tuple[str, ...], tmp_path: Path
) -> None:
    lines = "".join(f"{word}.png,cat,{word}\n" for word in words)

    told, rows, _ = judged(f"filename,label,answer\n{lines}", tmp_path)

    assert (told, rows) == ("", [(f"{word}.png", value, 0) for word in words])


REFUSED = {
    "correct y and n": (
        "position,label,correct\n0,cat,y\n1,dog,n\n",
        "says 'y' in the column 'correct'; call it",
    ),
    "antwort": ("position,label,antwort\n0,cat,ja\n1,dog,nein\n", "in the column 'antwort'; call it answer"),
    "reponse": ("position,label,r\u00e9ponse\n0,cat,oui\n1,dog,non\n", "in the column 'r\u00e9ponse'"),
    "respuesta": ("position,label,respuesta\n0,cat,s\u00ed\n1,dog,no\n", "in the column 'respuesta'"),
    "\u7b54\u6848": (
        "position,label,\u7b54\u6848\n0,cat,\u662f\n1,dog,\u5426\n",
        "in the column '\u7b54\u6848'",
    ),
    "0 and 1": ("position,label,ok\n0,cat,1\n1,dog,0\n2,owl,0\n", "in the column 'ok'"),
    **{
        f"{said} as {column}": (
            f"position,label,{column}\n"
            + "".join(f"{at},cat,{one}\n" for at, one in enumerate(said.split("/"))),
            f"in the column '{column}'; call it answer",
        )
        for column, said in (
            ("answers", "no/no/yes"),
            ("answers", "1/0/0"),
            ("answers", "perhaps/1"),
            ("imported", "no/yes"),
            ("num_images", "nein"),
            ("excluded", "no/yes"),
            ("key", "y/n"),
            ("weight", "no/yes"),
            ("relation", "is/isnt/is"),
            ("relation", "is/is not"),
            ("relation", "is/isn't"),
            ("relation", "not"),
            ("state", "Verified/Not verified/Verified"),
            ("state", "cat/not cat/dog"),
            ("state", "gepr\u00fcft/nicht gepr\u00fcft"),
            ("state", "ist/n'est pas"),
            ("state", "clear/unverified"),
            ("decision", "keep/drop"),
            ("decision", "blurry/drop"),
            ("result", "pass/fail/pass"),
            ("result", "sharp/fail"),
            ("correct", "0"),
            ("correct", "0/1"),
            ("correct", "1"),
        )
    },
    "ticks": ("position,label,q\n0,cat,\u2713\n1,dog,\u2717\n", "in the column 'q'"),
    "j and n": ("position,label,q\n0,cat,j\n1,dog,n\n", "in the column 'q'"),
    "a check box": ("position,label,seen\n0,cat,TRUE\n1,dog,FALSE\n", "in the column 'seen'"),
    "label and class": ("position,label,class\n0,cat,pet\n", "class and label could both be the class"),
    "two files": (
        "filename,file,label\n1.png,2.png,cat\n",
        "filename and file could both be the picture's file",
    ),
    "name and place apart": (
        "position,class_name,class_index\n0,cat,1\n",
        "names the class 'cat' and, in class_index, '1', which is another",
    ),
    "a name and another number": (
        "position,label,label_name\n0,0,owl\n",
        "names the class 'owl' and, in label, '0', which is another",
    ),
    "answer against value": (
        "position,label,answer,value\n0,cat,yes,no\n",
        "says 'yes' in answer and 'no' in value",
    ),
    "answer against kind": (
        "position,label,answer,kind\n0,cat,no,true\n",
        "'no' in answer and 'true' in kind",
    ),
    "no answer": ("position,label,answer\n0,cat,yes\n1,dog,\n", "Line 3 says nothing in the column answer"),
    "the same twice": ("position,label,label\n0,cat,dog\n", "has the same column twice: 'label'"),
    "twice but for case": (
        "position,label,Label \n0,cat,dog\n",
        "has the same column twice: 'label' and 'Label'",
    ),
    "twice but for a joint": (
        "File Name,file_name,label\n1.png,2.png,cat\n",
        "twice: 'File Name' and 'file_name'",
    ),
    "a column without a name": (
        "position,label,\n0,cat,7\n1,dog,9\n",
        "values in the column number 3 and no name",
    ),
    "a place beyond": ("position,class_index\n0,4\n", "about class 4 by class_index, .* from 0 to 2"),
    "places from 1": (
        "position,class_index\n0,1\n1,3\n",
        "numbers of classes run from 1 to 3, and there are 3 classes. Counted from 1, 1 is 'cat'; counted "
        "from 0, 1 is 'dog' and there is no class 3. Say first_class=1 or first_class=0",
    ),
    **{
        f"{column} without a 0": (
            f"position,{column}\n0,1\n1,2\n",
            "two ways: counted from 0, 1 is 'dog'; counted from 1, 1 is 'cat'. Say first_class=0 or",
        )
        for column in ("label", "class_index")
    },
    "a name as a place": (
        "position,class_index\n0,cat\n",
        "has 'cat' in class_index, which is no whole number",
    ),
    "a fraction as a place": ("position,class_index\n0,1.0\n", "has '1.0' in class_index, which is no whole"),
    "no class": ("position,label\n0,cat\n1,\n", "Line 3 names no class in the column label"),
    "more values": (
        "position,label\n0,cat,7\n",
        r"more or fewer values than the first line names \(3, not 2\)",
    ),
    "JSON lines": (
        '{"filename": "1.png", "label": "cat"}\n{"filename": "2.png"}\n',
        "JSON lines and other JSON are",
    ),
    "an npz": ("PK\x03\x04", "The file is no text, but an npz"),
    "a key twice": (
        '[{"data": {"position": 0, "position": 1}, "annotations": []}]',
        "the key 'position' twice",
    ),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_could_be_read_otherwise_is_refused(text: str, words: str, tmp_path: Path) -> None:
    told, _, _ = judged(text, tmp_path)

    assert re.search(words, told), told


TAKEN = {
    "named": ("position,label,camera\n0,cat,Nikon\n", "The column was not read: camera."),
    "weights": ("position,label,weight\n0,cat,0.5\n", "The column was not read: weight."),
    "of pandas": (",position,label\n0,0,cat\n1,1,cat\n", None),
    "of R": ('"","position","label"\n"1",0,"cat"\n"2",1,"cat"\n', None),
    "an index with a name": (
        "Unnamed: 0,position,label\n0,0,cat\n1,1,cat\n",
        "The column was not read: Unnamed: 0.",
    ),
    "row numbers with a name": (
        "index,position,label\n0,0,cat\n1,1,cat\n",
        "The column was not read: index.",
    ),
    "not specified": (
        "position,label,camera\n0,cat,Nikon\n1,cat,not specified\n2,cat,Canon\n3,cat,Sony\n",
        "The column was not read: camera.",
    ),
    "of our labels": (
        "example_id,position,filename,kind,class,class_name,answers,weight,imported,num_classes,num_images,"
        "probability,excluded\n5,0,,true,0,cat,1,1.0,True,3,9,0.5,0\n6,1,,true,0,cat,1,1.0,FALSE,3,9,1.0,1\n",
        "The columns were not read: answers, weight, imported, num_classes, num_images, probability, "
        "excluded.; "
        "The column example_id was read only where no position is given, and no file name or one of several "
        "pictures.",
    ),
    "columns and lines left empty": ("position,label,,\n0,cat,,\n,,,\n", None),
    "a line for the separator": ("sep=;\r\nposition;label\r\n0;cat\r\n", None),
    "both say the same": ("position,class,class_name\n0,0,cat\n", None),
    "a comma in quotes": ('position;label;remark\n0;cat;"a;\nb"\n', "The column was not read: remark."),
    "boxes": (
        "position,width,height,class\n0,9,9,cat\n",
        "The columns were not read: width, height.",
    ),
    "what a table says of pictures and people": (
        "position,label,split,width,annotator\n0,cat,train,640,Ada\n1,dog,test,480,Ben\n",
        "The columns were not read: split, width.",
    ),
    "four values": (
        "position,label,camera\n" + "".join(f"{at},cat,of {at}\n" for at in range(4)),
        "The column was not read: camera.",
    ),
    "one value": ("position,label,camera\n0,cat,Nikon\n1,dog,Nikon\n", "The column was not read: camera."),
    "in capitals": ("POSITION,Class Name\n0,CAT\n", None),
}


@pytest.mark.parametrize(("text", "note"), TAKEN.values(), ids=TAKEN.keys())
def test_what_is_not_read_is_named(text: str, note: str | None, tmp_path: Path) -> None:
    told, rows, notes = judged(text, tmp_path)

    assert (told, "; ".join(notes)) == ("", note or "")
    assert rows[0] == ("", AnswerValue.YES, 0)


JUDGING = (
    ("present", "absent"),
    ("TP", "FP"),
    ("hit", "miss"),
    ("checked", "unchecked"),
    ("1 - yes", "2 - no"),
    ("match", "no match"),
    ("tak", "nie"),
    ("1", "2"),
    ("0.98", "0.02"),
    ("true positive", "false positive"),
    ("sure", ""),
)


@pytest.mark.parametrize("said", JUDGING, ids="/".join)
def test_a_column_of_two_values_may_be_an_answer_in_any_words(said: tuple[str, str], tmp_path: Path) -> None:
    lines = "".join(f"{at},{CLASSES[at % 3]},{said[at % 2]}\n" for at in range(6))
    answers = "".join(f"{at},{CLASSES[at % 3]},{said[at % 2]},yes\n" for at in range(6))

    told, rows, _ = judged(f"position,label,v\n{lines}", tmp_path / "a")
    taken, _, _ = judged(f"position,label,v\n{lines}", tmp_path / "b", ignored=["v"])
    answered, _, _ = judged(f"position,label,v,answer\n{answers}", tmp_path / "c")

    assert not rows
    assert all(repr(one) in told for one in said if one), told
    assert re.search("in the column 'v'.* call it answer.* name it in ignore_columns", told), told
    assert taken == ""
    assert answered == "" or "says" in answered  # what another column answers, few values do not


# What is refused without a word on a column is taken once somebody names it.
LEFT_OUT = {
    "yes and no": ("position,label,chk\n0,cat,y\n1,dog,n\n", ["chk"], "'chk'"),
    "in another spelling": ("position,label,Is OK\n0,cat,y\n1,dog,n\n", ["is_ok"], "'Is OK'"),
    "two of one meaning": ("position,label,class\n0,cat,pet\n", ["class"], "'class'"),
    "a misspelling": ("position,label,postion\n0,cat,7\n", ["postion"], "'postion'"),
    "one of a pair": ("position,label,Label\n0,cat,pet\n", ["Label"], "'Label'"),
    "several": ("position,label,a,b\n0,cat,y,no\n1,dog,n,yes\n", ["b", "a"], "'a' and 'b'"),
    "answers": ("position,label,answer,value\n0,cat,yes,no\n", ["value"], "'value'"),
}


@pytest.mark.parametrize(("text", "names", "told"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_columns_are_left_out_where_somebody_says_so(
    text: str, names: list[str], told: str, tmp_path: Path
) -> None:
    refused, _, _ = judged(text, tmp_path / "a")
    fault, rows, notes = judged(text, tmp_path / "b", ignored=names)

    assert refused
    assert (fault, notes) == ("", [f"Left out, as was asked for: {told}."])
    assert rows[0] == ("", AnswerValue.YES, 0)


def test_what_is_to_be_left_out_must_be_there(tmp_path: Path) -> None:
    table, _, _ = judged("position,label,chk\n0,cat,y\n", tmp_path / "a", ignored=["check"])
    needed, _, _ = judged("position,label\n0,cat\n", tmp_path / "b", ignored=["label"])
    region = {"type": "choices", "from_name": "animal", "value": {"choices": ["cat"]}}
    task = {"data": {"position": 0}, "annotations": [{"result": [region]}]}
    tasks, _, _ = judged(json.dumps([task]), tmp_path / "c", ignored=["sure"])

    assert "has no column 'check' that could be left out; it has 'position', 'label' and 'chk'" in table
    assert needed.startswith("The first line must name the columns")
    assert "The file has no control 'sure' that could be left out" in tasks


def test_a_control_of_label_studio_is_left_out(tmp_path: Path) -> None:
    def region(control: str, said: str) -> dict[str, object]:
        return {"type": "choices", "from_name": control, "value": {"choices": [said]}}

    annotation = {"result": [region("animal", "cat"), region("is_not_sharp", "yes")]}
    text = json.dumps([{"data": {"position": 0}, "annotations": [annotation]}])

    refused, _, _ = judged(text, tmp_path / "a")
    fault, rows, notes = judged(text, tmp_path / "b", ignored=["is_not_sharp"])

    assert "sounds like a no" in refused
    assert "name it in ignore_columns" in refused
    assert (fault, rows) == ("", [("", AnswerValue.YES, 0)])
    assert notes == ["Left out, as was asked for: 1 choice in the control 'is_not_sharp'."]


@pytest.mark.parametrize("control", ["mistake", "error", "anti", "none_of"])
def test_a_second_control_of_label_studio_or_one_that_denies_is_no_yes(control: str, tmp_path: Path) -> None:
    def task(position: int, control: str) -> dict[str, object]:
        region = {"type": "choices", "from_name": control, "value": {"choices": ["cat"]}}
        return {"data": {"position": position}, "annotations": [{"result": [region]}]}

    denied, _, _ = judged(json.dumps([task(0, control)]), tmp_path / "a")
    second, _, _ = judged(json.dumps([task(0, "animal"), task(1, "beast")]), tmp_path / "b")
    text = json.dumps([task(0, "animal"), task(1, "beast"), task(1, "animal")])
    taken, rows, _ = judged(text, tmp_path / "c", ignored=["beast"])

    assert "sounds like a no" in denied
    assert "chooses in the control 'beast', and others in 'animal'; export one control" in second
    assert (taken, len(rows)) == ("", 2)


NO_LABELS = {
    "a number": ("position,label\n0,2\n1,255\n2,0\n", "255", 2),
    "a place": ("position,class_index\n0,2\n1,255\n2,0\n", "255", 2),
    "a word": ("position,label\n0,owl\n1,Unknown\n", "unknown", 2),
    "in a further column": ("position,class_name,class_index\n0,owl,2\n1,void,255\n", "255", 2),
    "of PyTorch": ("position,label\n0,2\n1,-100\n2,0\n", "-100", 2),
}


@pytest.mark.parametrize(("text", "no_label", "number"), NO_LABELS.values(), ids=NO_LABELS.keys())
def test_what_stands_for_no_class_is_left_out_where_somebody_says_so(
    text: str, no_label: str, number: int, tmp_path: Path
) -> None:
    refused, _, _ = judged(text, tmp_path / "a")
    fault, rows, notes = judged(text, tmp_path / "b", no_label=no_label)

    assert "3 " in refused  # the line
    assert (fault, rows[0]) == ("", ("", AnswerValue.YES, number))
    assert notes[-1] == f'Left out, because "{no_label}" stands for no class: 1 line.'


def test_a_class_that_may_be_none_is_refused_with_what_to_say(tmp_path: Path) -> None:
    told, _, _ = judged("position,label\n0,2\n1,255\n", tmp_path / "a")
    nothing, _, _ = judged("position,label\n0,255\n", tmp_path / "b", no_label="255")

    assert told.endswith("does not have; say no_label=255 if it means that nobody knows the class")
    assert nothing == 'The file has no label but "255". Nothing was stored.'


def test_a_file_name_and_a_position_must_be_one_picture(session: Session, admin: User) -> None:
    campaign = make_named_campaign(session, class_names=CLASSES, examples=3)

    bring(session, campaign, "filename,position,label\n1.png,1,cat\n", admin)
    with pytest.raises(BadImport, match=r"file '2\.png' and about position 0, which are two pictures; take"):
        bring(session, campaign, "filename,position,label\n2.png,0,cat\n", admin)


def test_label_studio_says_what_it_left_and_names_one_class(session: Session, admin: User) -> None:
    def task(*regions: tuple[str, str, str], **more: object) -> dict[str, object]:
        result = [
            {"type": kind, "from_name": control, "value": {"choices": [said]}}
            for kind, control, said in regions
        ]
        return {"data": {"position": 0}, "annotations": [{"result": result}], **more}

    campaign = make_campaign(session, class_names=CLASSES)
    tasks = [
        task(("choices", "animal", "cat"), ("rating", "sure", "5"), predictions=[{}]),
        {"data": {"position": 1}, "annotations": []},
    ]
    made = bring(session, campaign, json.dumps(tasks), admin)

    assert made.notes == [
        "1 prediction of a model not read.",
        "1 region of the type 'rating' not read.",
        "1 task without an annotation not read.",
    ]
    with pytest.raises(BadImport, match="says 'cat' in 'animal' and 'dog' in 'other'; export one control"):
        bring(
            session,
            campaign,
            json.dumps([task(("choices", "animal", "cat"), ("choices", "other", "dog"))]),
            admin,
        )
