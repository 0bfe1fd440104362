"""Files of labels, and what is wrong with them, before anybody knows the campaign."""

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime

import pytest

from app.annotation.models import AnswerValue
from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES, MAX_ROWS, read_answers
from app.labels.importing.said import AnswerInFile
from clarinet.files.tables import guarded

DATASET = "0f9a4a3e-2f64-4e53-9f6f-0c8f3f1f7a10"
YES, NO, UNSURE = AnswerValue.YES, AnswerValue.NO, AnswerValue.UNSURE


def answers_in(data: bytes) -> list[AnswerInFile]:
    """What a file says, in its order."""
    return read_answers(data).answers


def what_is_wrong(data: bytes) -> str:
    """With the file, or the first line of it."""
    try:
        found = read_answers(data)
    except BadImport as refusal:
        return refusal.detail
    return f"{found.noun.capitalize()} {found.bad[0].number} {found.bad[0].why}"


class TestReading:
    def test_class_labels_are_yes_answers(self) -> None:
        found = answers_in(b"position,class\n3,cat\n4,1\n")

        assert [(item.position, item.class_name, item.value) for item in found] == [
            (3, "cat", YES),
            (4, "1", YES),
        ]

    def test_answers_say_by_whom_and_when(self) -> None:
        (item,) = answers_in(
            b"\xef\xbb\xbfPosition,Class_Name,Answer,Annotator,Answered_At,remark\n"
            b"3,cat,NO,ann,2026-11-21T13:00+01:00,x\n"
        )

        assert (item.value, item.annotator) == (NO, "ann")
        assert item.answered_at == datetime(2026, 11, 21, 12, tzinfo=UTC)

    @pytest.mark.parametrize("name", ["=1+1", "+a", "plain", "'quoted"])
    def test_a_cell_that_was_made_safe_is_read_back(self, name: str) -> None:
        table = io.StringIO()
        csv.writer(table).writerows([("position", "class_name"), (0, guarded(name))])

        assert answers_in(table.getvalue().encode())[0].class_name == name

    @pytest.mark.parametrize("note", [["Bob"], "Bob", ["Bob", "by hand"]])
    def test_a_note_of_label_studio_names_the_annotator(self, note: object) -> None:
        region = {"type": "choices", "from_name": "class", "value": {"choices": ["cat"]}}
        task = {"data": {"position": 0}, "annotations": [{"result": [region | {"meta": {"text": note}}]}]}

        assert [item.annotator for item in answers_in(json.dumps([task]).encode())] == ["Bob"]

    def test_label_studio_choices_are_classes_that_it_is_or_is_not_or_answers(self) -> None:
        def task(control: str, chosen: list[str], **data: object) -> dict[str, object]:
            region = {"type": "choices", "from_name": control, "value": {"choices": chosen}}
            by = {"completed_by": {"id": 3, "email": "ann@example.org"}}
            return {"data": data, "annotations": [{"result": [region]} | by]}

        tasks = [
            task("animal", ["cat"], image=f"https://x/api/v1/datasets/{DATASET}/examples/17/image"),
            task("not_class", ["dog", "owl"], position=2),
            task("answer", ["unsure"], example_id=5, class_name="owl"),
            {"data": {"position": 1}, "annotations": [{"was_cancelled": True}]},
            {"data": {"position": 1}},
        ]

        found = read_answers(json.dumps(tasks).encode(), dataset=DATASET).answers

        assert [(item.position, item.example_id, item.class_name, item.value) for item in found] == [
            (None, 17, "cat", YES),
            (2, None, "dog", NO),
            (2, None, "owl", NO),
            (None, 5, "owl", UNSURE),
        ]
        assert {item.annotator for item in found} == {"ann@example.org"}

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "first line must name"),
            (b"a,b\n1,2", "first line must name"),
            (b"position,class\n", "no labels"),
            (b"position,class\n1", "Line 2 has more or fewer values"),
            (b"position,class\n1,cat,3", "Line 2 has more or fewer values"),
            (b"position,class,answer\n1,cat,maybe", "Line 2 answers 'maybe'"),
            (b"position,class,kind\n1,cat,maybe", "Line 2 is of the kind 'maybe'"),
            (b"position,class\n-1,cat", "Line 2 names the picture '-1'"),
            (b"position,class\n1e3,cat", "names the picture '1e3'"),
            (b"position,class\n" + b"9" * 30 + b",cat", "names the picture"),
            (b'position,class\n1,"cat', "follows line 1 is no CSV"),
            (b"position,class\n1," + b"x" * 1001, "more than 1000 characters"),
            (b"position,class\n1,\xff", "not in UTF-8"),
            (b"position,class,answered_at\n1,cat,yesterday", "the time 'yesterday'"),
            (b"position,class,answered_at\n1,cat,0001-01-01T00:00+10:00", "no calendar has"),
            (b"[1]", "Task 1 is not what Label Studio exports"),
            (b"[", "begins like JSON"),
            (b'[{"data": {}} {"data": {}}]', "begins like JSON"),
            (b'[{"data": {}},', "begins like JSON"),
            (b"[] and more", "begins like JSON"),
            (b"[" * 100_000, "begins like JSON"),
            (b"{}", "no list of Label Studio tasks"),
            (b'[{"data": {}, "annotations": [{"result": [{"type": "choices"}]}]}]', "Task 1 is not what"),
            (b" " * (MAX_BYTES + 1), "more than 16 MB"),
            pytest.param(
                b"position,class\n" + b"1,a\n" * (MAX_ROWS + 1),
                "more than 200000 things",
                marks=pytest.mark.long,
            ),
        ],
    )
    def test_what_is_not_understood_is_refused_with_its_place(self, data: bytes, words: str) -> None:
        told = what_is_wrong(data)

        assert words in told
        assert len(told) < 300

    def test_two_classes_at_once_are_refused(self) -> None:
        region = {"type": "choices", "from_name": "class", "value": {"choices": ["a", "b"]}}
        task = {"data": {"position": 1}, "annotations": [{"result": [region]}]}

        assert "Task 1 chooses 2 classes at once" in what_is_wrong(json.dumps([task]).encode())

    def test_answers_to_known_pictures_are_left_out(self) -> None:
        lines = answers_in(
            b"position,class,purpose\n1,cat,gold\n2,cat,labelling\n3,cat,\n4,cat,evaluation\n5,cat,train\n"
        )
        region = {"type": "choices", "from_name": "class", "value": {"choices": ["cat"]}}
        told: list[dict[str, object]] = [{}, {"purpose": "gold"}, {"purpose": "labelling"}]
        tasks: list[dict[str, object]] = [
            {"data": {"position": place, **about}, "annotations": [{"result": [region]}]}
            for place, about in enumerate(told)
        ]

        assert [item.position for item in lines] == [2, 3, 5]
        assert [item.position for item in answers_in(json.dumps(tasks).encode())] == [0, 2]

    def test_a_large_file_of_tasks_is_never_held_as_objects(self) -> None:
        region = {"type": "choices", "from_name": "class", "value": {"choices": ["cat"]}, "more": [{}] * 50}
        task = {"data": {"position": 1}, "annotations": [{"result": [region]}]}
        data = json.dumps([task] * 4000, indent=1).encode()

        tracemalloc.start()
        found = answers_in(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert len(found) == 4000
        assert peak < 2 * len(data)

    def test_names_have_no_control_characters(self) -> None:
        (item,) = answers_in(b"position,class,annotator\n1,cat,a\x00\x1bn\xe2\x80\xaen\n")

        assert item.annotator == "ann"
