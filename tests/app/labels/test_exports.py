"""Labels and answers as files."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import Question
from app.campaigns.models import Campaign
from app.journal import service as journal
from app.journal.models import Action
from app.labels.deriving import weighted
from app.labels.exports import answers, formats, labels
from app.labels.exports.formats import ExportFormat
from clarinet.files.label_files import load_labels
from clarinet.files.label_table import LabelRow
from clarinet.files.tables import FORMULA_STARTS, guarded
from clarinet.recipes.errors import DataError
from tests import annotators
from tests.factories import NOW, answer, make_campaign, make_user, questions_of

HOSTILE = ["=1+1", 'cat, "wild"', "+cmd|'/c calc'!A0"]
GIVEN = [
    LabelRow(0, "true", 1, 1.0, example_id=7, answers=2, filename="=a/ö.png"),
    LabelRow(4, "complementary", 0, 1.0, example_id=9, answers=2),
    LabelRow(4, "complementary", 1, 1.0, example_id=9, answers=2),
]


def label_file(kind: str, names: list[str], *, factors: tuple[float, ...] = (1, 1, 1)) -> bytes:
    """GIVEN in a format."""
    rows = weighted(GIVEN, np.array([factors, (9, 9, 9)]))  # the second are of questions by a belief
    url = "https://x/{example_id}/image"
    facts = {"class_names": names, "num_images": 6, "image_url": url, "longest_filename": 40}
    return b"".join(labels.pieces(rows, ExportFormat(kind), **facts))  # type: ignore[arg-type]


class TestLabels:
    def test_csv_has_a_row_per_class_and_no_formula(self) -> None:
        assert label_file("csv", HOSTILE).decode().split("\r\n") == [
            "example_id,position,filename,kind,class,class_name,answers,weight,imported,num_classes,num_images",
            "7,0,'=a/ö.png,true,1," + '"cat, ""wild""",2,1.0,False,3,6',
            "9,4,,complementary,0,'=1+1,2,1.0,False,3,6",
            '9,4,,complementary,1,"cat, ""wild""",2,1.0,False,3,6',
            "",
        ]

    def test_tsv_has_the_same_cells_between_tabs(self) -> None:
        names = ["\tcat", 'dog\t"wild"', "+cmd|'/c calc'!A0"]

        rows = list(csv.reader(io.StringIO(label_file("tsv", names).decode(), newline=""), "excel-tab"))

        assert rows == [
            list(labels.ARROW),
            ["7", "0", "'=a/ö.png", "true", "1", 'dog\t"wild"', "2", "1.0", "False", "3", "6"],
            ["9", "4", "", "complementary", "0", "'\tcat", "2", "1.0", "False", "3", "6"],
            ["9", "4", "", "complementary", "1", 'dog\t"wild"', "2", "1.0", "False", "3", "6"],
        ]

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
    def test_cells_that_could_start_a_formula_are_quoted(self, start: str) -> None:
        assert guarded(f"{start}cmd") == f"'{start}cmd"
        assert guarded(f"x{start}") == f"x{start}"

    def test_json_lines_have_an_object_per_example(self) -> None:
        lines = label_file("jsonl", ["=a", "ö", "b"]).decode().splitlines()

        common = {"answers": 2, "weight": 1.0, "imported": False, "num_classes": 3, "num_images": 6}
        assert [json.loads(line) for line in lines] == [
            {"example_id": 7, "position": 0, "filename": "=a/ö.png", "kind": "true"}
            | {"classes": [1], "class_names": ["ö"]}
            | common,
            {"example_id": 9, "position": 4, "filename": None, "kind": "complementary"}
            | {"classes": [0, 1], "class_names": ["=a", "ö"]}
            | common,
        ]

    def test_json_lines_part_classes_of_different_weight(self) -> None:
        lines = label_file("jsonl", HOSTILE, factors=(2.0, 3.0, 1.0)).decode().splitlines()

        found = [json.loads(line) for line in lines]
        assert [(row["classes"], row["weight"]) for row in found] == [([1], 3.0), ([0], 2.0), ([1], 3.0)]

    def test_parquet_has_typed_columns(self) -> None:
        table = parquet.read_table(io.BytesIO(label_file("parquet", HOSTILE)))

        assert table.column_names == list(labels.ARROW)
        assert table.to_pylist()[1] == {
            "example_id": 9,
            "position": 4,
            "filename": None,
            "kind": "complementary",
            "class": 0,
            "class_name": "=1+1",
            "answers": 2,
            "weight": 1.0,
            "imported": False,
            "num_classes": 3,
            "num_images": 6,
        }

    def test_npz_has_the_arrays_of_a_snapshot(self) -> None:
        with np.load(io.BytesIO(label_file("npz", HOSTILE, factors=(2.0, 1.0, 1.0)))) as arrays:
            found = {name: arrays[name].tolist() for name in arrays.files}
        found["filenames"] = [name.decode() for name in found["filenames"]]

        assert found == {
            "example_ids": [7, 9, 9],
            "positions": [0, 4, 4],
            "kinds": [1, 0, 0],
            "classes": [1, 0, 1],
            "answers": [2, 2, 2],
            "weights": [1, 2, 1],
            "imported": [False, False, False],
            "filenames": ["=a/ö.png", "", ""],
            "class_names": HOSTILE,
            "num_images": 6,
        }

    def test_label_studio_has_a_task_per_example(self) -> None:
        first, second = json.loads(label_file("label-studio", HOSTILE))

        assert first["data"] == {
            "image": "https://x/7/image",
            "example_id": 7,
            "position": 0,
            "filename": "=a/ö.png",
        }
        region = first["annotations"][0]["result"][0]
        assert region == {
            "from_name": "class",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": ['cat, "wild"']},
        }
        region = second["annotations"][0]["result"][0]
        assert (region["from_name"], region["value"]["choices"]) == ("not_class", HOSTILE[:2])

    @pytest.mark.parametrize("kind", list(ExportFormat))
    def test_a_file_without_labels_is_whole(self, kind: ExportFormat) -> None:
        data = b"".join(labels.pieces([], kind, class_names=["a"], num_images=6, image_url=""))

        match kind:
            case ExportFormat.NPZ:
                assert np.load(io.BytesIO(data))["weights"].shape == (0,)
            case ExportFormat.PARQUET:
                assert parquet.read_table(io.BytesIO(data)).num_rows == 0
            case ExportFormat.LABEL_STUDIO:
                assert json.loads(data) == []
            case _:
                assert len(data.splitlines()) == kind.is_for_spreadsheets

    @pytest.mark.parametrize("kind", list(ExportFormat))
    def test_long_files_come_in_pieces(self, kind: ExportFormat) -> None:
        def many() -> Iterator[LabelRow]:
            for i in range(2 * formats.ROW_GROUP + 1):
                yield LabelRow(i, "true", 0, 1.0, example_id=i, answers=1)

        pieces = list(labels.pieces(many(), kind, class_names=["a"], num_images=1, image_url=""))

        assert len(list(filter(None, pieces))) >= 3
        assert max(map(len, pieces)) < 1_500_000


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """A campaign whose classes look like formulas, with three answers of two people."""
    campaign = make_campaign(session, examples=3, class_names=HOSTILE, confirm_yes=True)
    session.commit()
    return campaign


@pytest.fixture
def answered(session: Session, campaign: Campaign) -> list[Question]:
    """Its questions: the first is confirmed, the second a no."""
    rows = sorted(questions_of(session, campaign), key=lambda question: question.example_id)
    first, second = make_user(session), make_user(session)
    first.name, second.name = "=HYPERLINK(A1)", "Ann"
    answer(session, campaign, rows[0].id, "yes", by=first)
    answer(session, campaign, rows[0].id, "yes", by=second, response_ms=None)
    answer(session, campaign, rows[1].id, "no", by=first, response_ms=1200)
    undone = answer(session, campaign, rows[2].id, "no")
    annotators.undo(session, campaign, by=undone, now=NOW)
    session.commit()
    return rows


def download(client: TestClient, campaign: Campaign, what: str, **query: str) -> bytes:
    """A file."""
    response = client.get(f"/api/v1/campaigns/{campaign.id}/{what}", params=query)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    ending = {"label-studio": "json"}.get(query["format"], query["format"])
    assert response.headers["content-disposition"].endswith(f'{what}-{campaign.id}.{ending}"')
    return response.content


class TestAnswers:
    @pytest.mark.parametrize(("kind", "dialect"), [("csv", "excel"), ("tsv", "excel-tab")])
    def test_a_table_tells_what_when_how_fast_and_by_whom(
        self, client: TestClient, campaign: Campaign, answered: list[Question], kind: str, dialect: str
    ) -> None:
        table = download(client, campaign, "answers", format=kind, people="names").decode()

        rows = list(csv.DictReader(io.StringIO(table), dialect=dialect))
        assert [row["value"] for row in rows] == ["yes", "yes", "no"]
        assert [row["annotator_name"] for row in rows] == ["'=HYPERLINK(A1)", "Ann", "'=HYPERLINK(A1)"]
        assert [row["response_ms"] for row in rows] == ["900", "", "1200"]
        assert [int(row["question_id"]) for row in rows] == [answered[0].id, answered[0].id, answered[1].id]
        assert [row["position"] for row in rows] == ["0", "0", "1"]
        assert rows[0]["class_name"] == guarded(HOSTILE[answered[0].candidate_class])
        assert rows[0]["created_at"] == "2026-11-21T12:00:00.000000Z"
        assert (rows[0]["simulated"], rows[0]["purpose"]) == ("False", "labelling")
        assert [row["drawing"] for row in rows] == ["1", "1", "1"]
        assert float(rows[0]["probability"]) == pytest.approx(1 / 3)
        assert len({UUID(row["key"]) for row in rows}) == 3
        assert not [cell for row in rows for cell in row.values() if cell.startswith(FORMULA_STARTS)]

    @pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "npz", "label-studio"])
    def test_nobody_is_named_unless_asked_for(
        self, client: TestClient, session: Session, campaign: Campaign, answered: list[Question], kind: str
    ) -> None:
        assert answered

        data = download(client, campaign, "answers", format=kind)

        people = session.query(User).all()
        assert not [user for user in people if str(user.id).encode() in data or user.id.bytes in data]
        assert b"HYPERLINK" not in data
        assert b"Ann" not in data

    def test_pseudonyms_stand_for_one_person_of_one_campaign(self, session: Session) -> None:
        one, other, user, friend = uuid4(), uuid4(), make_user(session), make_user(session)

        def called(campaign_id: UUID, user_id: UUID, secret: bytes = b"s") -> str:
            return answers.People(session, campaign_id, secret).annotator(user_id).id

        assert called(one, user.id) == called(one, user.id)
        different = {called(one, user.id), called(one, friend.id), called(other, user.id)}
        assert len(different | {called(one, user.id, b"other secret")}) == 4

    def test_json_lines_parquet_and_npz_say_the_same(
        self, client: TestClient, campaign: Campaign, answered: list[Question]
    ) -> None:
        assert answered
        lines = download(client, campaign, "answers", format="jsonl").decode().splitlines()
        table = parquet.read_table(
            io.BytesIO(download(client, campaign, "answers", format="parquet"))
        ).to_pylist()
        with np.load(io.BytesIO(download(client, campaign, "answers", format="npz"))) as arrays:
            found: dict[str, Any] = {name: arrays[name] for name in arrays.files}

        objects = [json.loads(line) for line in lines]
        assert [row | {"created_at": datetime.fromisoformat(row["created_at"])} for row in objects] == table
        for name, plural in (
            ("answer_id", "answer_ids"),
            ("position", "positions"),
            ("class", "classes"),
            ("drawing", "drawings"),
        ):
            assert [row[name] for row in table] == found[plural].tolist()
        assert found["value_names"][found["values"]].tolist() == [row["value"] for row in table]
        assert found["purpose_names"][found["purposes"]].tolist() == [row["purpose"] for row in table]
        assert found["annotator_names"][found["annotators"]].tolist() == [row["annotator"] for row in table]
        assert [row["key"].encode() for row in table] == found["keys"].tolist()
        assert found["response_ms"].tolist() == [900, -1, 1200]
        assert found["created_at"][0] == np.datetime64(NOW.replace(tzinfo=None))

    def test_label_studio_has_a_task_per_question_and_an_annotation_per_answer(
        self, client: TestClient, campaign: Campaign, answered: list[Question]
    ) -> None:
        first, second = json.loads(download(client, campaign, "answers", format="label-studio"))

        assert first["data"]["class_name"] == HOSTILE[answered[0].candidate_class]
        assert first["data"]["image"].endswith(f"/examples/{answered[0].example_id}/image")
        assert [item["result"][0]["value"] for item in first["annotations"]] == 2 * [{"choices": ["yes"]}]
        assert [item["lead_time"] for item in second["annotations"]] == [1.2]


class TestLabelDownloads:
    @pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "npz", "label-studio"])
    def test_every_format_has_the_labels(
        self, client: TestClient, campaign: Campaign, answered: list[Question], kind: str, tmp_path: Path
    ) -> None:
        path = tmp_path / f"labels.{kind}"
        path.write_bytes(download(client, campaign, "labels", format=kind))

        match kind:
            case "csv" | "tsv":
                with path.open(newline="") as file:
                    rows = csv.DictReader(file, delimiter="," if kind == "csv" else "\t")
                    found = [int(row["class"]) for row in rows]
            case "jsonl":
                found = [json.loads(line)["classes"][0] for line in path.read_text().splitlines()]
            case "parquet":
                found = parquet.read_table(path)["class"].to_pylist()
            case "npz":
                found = np.load(path)["classes"].tolist()
            case _:
                regions = [task["annotations"][0]["result"][0] for task in json.loads(path.read_text())]
                found = [HOSTILE.index(region["value"]["choices"][0]) for region in regions]
        assert found == [question.candidate_class for question in answered[:2]]

    @pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "npz"])
    def test_labels_tell_how_many_images_the_dataset_has(
        self, client: TestClient, campaign: Campaign, answered: list[Question], kind: str, tmp_path: Path
    ) -> None:
        assert answered
        path = tmp_path / f"labels.{kind}"
        path.write_bytes(download(client, campaign, "labels", format=kind))

        assert load_labels(path, images=3).num_classes == 3
        with pytest.raises(DataError, match="belongs to 3 images, but here are 4"):
            load_labels(path, images=4)

    def test_the_journal_tells_who_took_what(
        self, client: TestClient, campaign: Campaign, admin: User, session: Session
    ) -> None:
        download(client, campaign, "labels", format="npz", imported="true")
        download(client, campaign, "answers", format="csv", people="names")

        lines = journal.entries(session, by=admin, campaign_id=campaign.id, limit=2)[::-1]

        assert [(line.action, line.by_name) for line in lines] == [
            (Action.LABELS_DOWNLOADED, admin.name),
            (Action.ANSWERS_DOWNLOADED, admin.name),
        ]
        assert lines[0].details["format"] == "npz"
        assert "imported" in lines[0].details
        assert (lines[1].details["format"], lines[1].details["people"]) == ("csv", "names")

    def test_an_unknown_format_is_malformed(self, client: TestClient, campaign: Campaign) -> None:
        response = client.get(f"/api/v1/campaigns/{campaign.id}/labels", params={"format": "xlsx"})

        assert response.status_code == 422
