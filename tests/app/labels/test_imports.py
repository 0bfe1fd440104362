"""Labels from elsewhere."""

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Answer, AnswerValue
from app.campaigns.models import Campaign
from app.labels import service as labelling
from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES, MAX_ROWS, AnswerInFile, read_answers
from app.labels.models import ImportedAnswer, LabelImport
from app.quality import service as quality
from app.runs.labels import collect
from clarinet.files.label_table import TRUE, LabelKind, LabelRow
from clarinet.files.tables import guarded
from tests.factories import NOW, answer, make_campaign, questions_of

YES, NO, UNSURE = AnswerValue.YES, AnswerValue.NO, AnswerValue.UNSURE


def answers_in(data: bytes) -> list[AnswerInFile]:
    """What a file says, in its order."""
    return read_answers(data).answers


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

    def test_label_studio_choices_are_classes_that_it_is_or_is_not_or_answers(self) -> None:
        def task(control: str, chosen: list[str], **data: object) -> dict[str, object]:
            region = {"type": "choices", "from_name": control, "value": {"choices": chosen}}
            by = {"completed_by": {"id": 3, "email": "ann@example.org"}}
            return {"data": data, "annotations": [{"result": [region]} | by]}

        tasks = [
            task("animal", ["cat"], image="https://x/api/v1/datasets/d/examples/17/image"),
            task("not_class", ["dog", "owl"], position=2),
            task("answer", ["unsure"], example_id=5, class_name="owl"),
            {"data": {"position": 1}, "annotations": [{"was_cancelled": True}]},
            {"data": {"position": 1}},
        ]

        found = answers_in(json.dumps(tasks).encode())

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
        with pytest.raises(BadImport) as refused:
            answers_in(data)

        assert words in refused.value.detail
        assert len(refused.value.detail) < 300

    def test_two_classes_at_once_are_refused(self) -> None:
        region = {"type": "choices", "from_name": "class", "value": {"choices": ["a", "b"]}}
        task = {"data": {"position": 1}, "annotations": [{"result": [region]}]}

        with pytest.raises(BadImport, match="chooses 2 classes at once"):
            answers_in(json.dumps([task]).encode())

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


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """An open campaign of six pictures of cats, dogs and owls."""
    campaign = make_campaign(session, examples=6)
    session.commit()
    return campaign


def bring(session: Session, campaign: Campaign, table: str, by: User) -> LabelImport:
    """Import a CSV."""
    prepared = labelling.prepare_import(session, campaign, table.encode(), filename="a/b\\old.csv", by=by)
    return labelling.store_import(session, prepared, by=by, now=NOW)


def known(session: Session, campaign: Campaign, *, imported: bool) -> dict[int, tuple[object, ...]]:
    """Kind, classes and imported classes by position."""
    found: dict[int, list[LabelRow]] = {}
    for label in labelling.labels(session, campaign, imported=imported):
        found.setdefault(label.position, []).append(label)
    return {
        position: (
            rows[0].kind,
            tuple(row.class_ for row in rows),
            tuple(row.class_ for row in rows if row.imported),
        )
        for position, rows in found.items()
    }


class TestImports:
    def test_are_labels_only_where_they_are_asked_for(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        made = bring(
            session, campaign, "position,class,answer\n0,dog,yes\n1,owl,no\n1,cat,no\n2,cat,unsure\n", admin
        )

        assert (made.yes, made.no, made.unsure, made.filename) == (1, 2, 1, "old.csv")
        assert known(session, campaign, imported=False) == {}
        assert known(session, campaign, imported=True) == {
            0: (LabelKind.TRUE, (1,), (1,)),
            1: (LabelKind.COMPLEMENTARY, (0, 2), (0, 2)),
        }

    def test_find_a_class_however_its_name_is_written(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        bring(session, campaign, "position,class\n0, DOG\n1,o\u200bwl\n", admin)

        assert known(session, campaign, imported=True) == {
            0: (LabelKind.TRUE, (1,), (1,)),
            1: (LabelKind.TRUE, (2,), (2,)),
        }

    def test_leave_draws_answers_progress_and_audit_alone(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        before = quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True)

        bring(session, campaign, "position,class\n" + "".join(f"{i},0\n" for i in range(6)), admin)

        assert quality.audit(session, campaign, now=NOW, has_seed=True, recompute=True) == before
        assert session.scalar(select(func.count()).select_from(Answer)) == 0
        assert service.progress(session, campaign, now=NOW).counts.total == 0

    def test_join_what_answers_say(self, session: Session, campaign: Campaign, admin: User) -> None:
        by_position = {q.example_id: q for q in questions_of(session, campaign)}
        asked = [by_position[example_id] for example_id in sorted(by_position)]
        for question in asked[:4]:
            answer(session, campaign, question.id, "no")
        said_no = [question.candidate_class for question in asked]
        other = [(class_ + 1) % 3 for class_ in said_no]
        table = [
            (0, said_no[0], "no"),  # the same
            (1, said_no[1], "yes"),  # denies it
            (2, other[2], "yes"),  # settles the picture
            (3, other[3], "no"),  # one class more
            (4, 0, "yes"),  # two classes at once
            (4, 1, "yes"),
            (5, 0, "yes"),  # a tie
            (5, 0, "no"),
        ]
        bring(
            session,
            campaign,
            "position,class,answer\n" + "".join(f"{p},{c},{v}\n" for p, c, v in table),
            admin,
        )

        assert known(session, campaign, imported=True) == {
            0: (LabelKind.COMPLEMENTARY, (said_no[0],), ()),
            2: (LabelKind.TRUE, (other[2],), (other[2],)),
            3: (LabelKind.COMPLEMENTARY, tuple(sorted((said_no[3], other[3]))), (other[3],)),
        }

    def test_weigh_one_whatever_was_asked_here(
        self, session: Session, campaign: Campaign, admin: User
    ) -> None:
        question = questions_of(session, campaign)[0]
        answer(session, campaign, question.id, "no")
        other = (question.candidate_class + 1) % 3
        bring(session, campaign, f"example_id,class,answer\n{question.example_id},{other},no\n", admin)

        found = labelling.derive(session, campaign.id, imported=True)
        rows = labelling.weighted(
            labelling.labels(session, campaign, imported=True), labelling.class_factors(session, campaign.id)
        )

        drawn = labelling.drawn_per_class(session, campaign.id)[question.candidate_class]
        weights = dict(zip(found.labels.classes.tolist(), found.labels.weights.tolist(), strict=True))
        assert weights[other] == 1
        assert weights[question.candidate_class] == pytest.approx(drawn, rel=0.2)  # times the consensus' own
        assert found.imported_count == 1
        assert {row.class_: row.weight for row in rows} == pytest.approx(weights)

    def test_enter_a_run_only_if_asked_for(self, session: Session, campaign: Campaign, admin: User) -> None:
        bring(session, campaign, "position,class\n0,dog\n", admin)

        without, _ = collect(session, campaign)
        with_them, facts = collect(session, campaign, imported=True)

        assert len(without) == 0
        assert with_them.positions is not None
        assert (with_them.positions.tolist(), with_them.kinds.tolist()) == ([0], [TRUE])
        assert facts["imported"] == 1

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("6,,cat", "position 6, where this campaign has no picture"),
            (f"{2**40},,cat", "where this campaign has no picture"),
            (",7777777,cat", "picture 7777777, which is none of this campaign's"),
            (",,cat", "does not say which picture"),
            ("0,,wolf", "about the class 'wolf'"),
            ("0,,3", "about the class '3'"),
        ],
    )
    def test_pictures_and_classes_must_be_the_campaigns(
        self, session: Session, campaign: Campaign, admin: User, line: str, words: str
    ) -> None:
        with pytest.raises(BadImport) as refused:
            bring(session, campaign, f"position,example_id,class\n1,,dog\n{line}\n", admin)

        assert words in refused.value.detail
        assert refused.value.detail.startswith("Line 3")


def send(client: TestClient, campaign: Campaign, data: bytes, name: str = "old.csv") -> dict[str, object]:
    """Import over the API."""
    response = client.post(f"/api/v1/campaigns/{campaign.id}/imports", files={"file": (name, data)})
    body: dict[str, object] = response.json()
    return body | {"status": response.status_code} if "status" not in body else body


class TestApi:
    def test_imports_lists_and_takes_back(
        self, client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        made = send(client, campaign, b"position,class\n0,dog\n")

        assert (made["status"], made["yes"], made["filename"]) == (201, 1, "old.csv")
        (listed,) = client.get(f"/api/v1/campaigns/{campaign.id}/imports").json()["items"]
        assert listed["id"] == made["id"]
        url = f"/api/v1/campaigns/{campaign.id}/imports/{made['id']}"
        other = make_campaign(session)
        session.commit()
        assert client.delete(url.replace(str(campaign.id), str(other.id))).status_code == 404
        assert client.delete(url).status_code == 204
        assert client.delete(url).json()["type"] == "/problems/import-not-found"
        assert session.scalar(select(func.count()).select_from(ImportedAnswer)) == 0

    def test_the_same_file_twice_is_a_conflict(self, client: TestClient, campaign: Campaign) -> None:
        send(client, campaign, b"position,class\n0,dog\n")

        again = send(client, campaign, b"position,class\n0,dog\n", name="renamed.csv")

        assert (again["status"], again["type"]) == (409, "/problems/already-imported")

    def test_a_bad_file_stores_nothing(
        self, client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        refused = send(client, campaign, b"position,class\n0,dog\n0,wolf\n")
        response = client.post(f"/api/v1/campaigns/{campaign.id}/imports", data={"file": "no file"})

        assert (refused["status"], refused["type"]) == (422, "/problems/bad-import")
        assert response.status_code == 422
        assert session.scalar(select(func.count()).select_from(LabelImport)) == 0

    def test_a_draft_takes_none(self, client: TestClient, session: Session) -> None:
        draft = make_campaign(session, state="draft")
        session.commit()

        assert send(client, draft, b"position,class\n0,dog\n")["type"] == "/problems/wrong-campaign-state"

    def test_annotators_may_not(self, annotator_client: TestClient, campaign: Campaign) -> None:
        assert send(annotator_client, campaign, b"position,class\n0,dog\n")["status"] == 403
        assert annotator_client.get(f"/api/v1/campaigns/{campaign.id}/imports").status_code == 403

    @pytest.mark.parametrize("kind", ["csv", "label-studio"])
    @pytest.mark.parametrize("what", ["labels", "answers"])
    def test_what_one_campaign_hands_out_another_takes_in(
        self, client: TestClient, session: Session, campaign: Campaign, what: str, kind: str
    ) -> None:
        questions = questions_of(session, campaign)
        for question, value in zip(questions, ["yes", "no", "no", "yes"], strict=False):
            answer(session, campaign, question.id, value)
        session.commit()
        given = client.get(f"/api/v1/campaigns/{campaign.id}/{what}", params={"format": kind})
        copy = make_campaign(session, dataset=None, examples=6, name=f"Copy {uuid4()}")
        copy.dataset_id = campaign.dataset_id  # the same pictures
        session.commit()

        made = send(client, copy, given.content)

        assert (made["status"], made["yes"], made["no"]) == (201, 2, 2)
        theirs = known(session, campaign, imported=False)
        assert {position: label[:2] for position, label in known(session, copy, imported=True).items()} == {
            position: label[:2] for position, label in theirs.items()
        }


def test_the_page_imports_says_what_is_wrong_and_takes_back(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    page = {"Accept": "text/html"}
    url = f"/campaigns/{campaign.id}/imports"

    empty = client.get(url, headers=page)
    wrong = client.post(url, files={"file": ("bad.csv", b"position,class\n0,wolf\n")}, headers=page)
    done = client.post(url, files={"file": ("<b>.csv", b"position,class\n0,dog\n")}, headers=page)
    shown = client.get(url, headers=page)

    assert "<table" not in empty.text
    assert (wrong.status_code, "about the class &#39;wolf&#39;" in wrong.text) == (422, True)
    assert (done.status_code, done.headers["location"]) == (303, url)
    assert "&lt;b&gt;.csv" in shown.text
    import_id = session.scalars(select(LabelImport.id)).one()
    assert client.post(f"{url}/{import_id}/delete", headers=page).status_code == 303
    assert "<table" not in client.get(url, headers=page).text
    assert url in client.get(f"/campaigns/{campaign.id}", headers=page).text
