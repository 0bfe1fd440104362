"""Labels from elsewhere."""

from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import jobs
from app.accounts.models import User
from app.annotation import service
from app.annotation.models import Answer, AnswerValue
from app.campaigns.models import Campaign
from app.jobs import Job
from app.labels import service as labelling
from app.labels.errors import BadImport
from app.labels.importing.reading import MAX_BYTES
from app.labels.models import ImportedAnswer, LabelImport
from app.quality import service as quality
from app.runs.labels import collect
from clarinet.files.label_table import TRUE, LabelKind, LabelRow
from tests.app.labels.taking import bring, context_of, read_here, send, upload
from tests.factories import NOW, answer, make_campaign, questions_of
from worker.label_intake import import_labels

YES, NO, UNSURE = AnswerValue.YES, AnswerValue.NO, AnswerValue.UNSURE


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """An open campaign of six pictures of cats, dogs and owls."""
    campaign = make_campaign(session, examples=6)
    session.commit()
    return campaign


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

    @pytest.mark.parametrize(
        ("table", "told"),
        [
            ("position,class,answr\n0,cat,no\n", "no column 'answr' here. Did you mean 'answer'?"),
            ("position,class,anotator\n0,cat,Ada\n", "Did you mean 'annotator'?"),
            ("position,class,verdict\n0,cat,no\n", "says 'no' in the column 'verdict'; call it answer"),
            ("position,class,is it\n0,cat,False\n", "says 'False' in the column 'is it'"),
        ],
    )
    def test_an_answer_under_another_name_is_no_yes(
        self, session: Session, campaign: Campaign, admin: User, table: str, told: str
    ) -> None:
        with pytest.raises(BadImport) as refused:
            bring(session, campaign, table, admin)

        assert told in refused.value.detail
        made = bring(session, campaign, "position,class,remark,answer\n0,cat,no tail,no\n", admin)
        assert (made.yes, made.no) == (0, 1)

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
            (0, said_no[0], "no", "Ada"),  # the same
            (1, said_no[1], "yes", "Ada"),  # denies it
            (2, other[2], "yes", "Ada"),  # settles the picture
            (3, other[3], "no", "Ada"),  # one class more
            (4, 0, "yes", "Ada"),  # two classes at once
            (4, 1, "yes", "Ben"),
            (5, 0, "yes", "Ada"),  # a tie
            (5, 0, "no", "Ben"),
        ]
        bring(
            session,
            campaign,
            "position,class,answer,annotator\n" + "".join(f"{p},{c},{v},{who}\n" for p, c, v, who in table),
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
        bring(
            session,
            campaign,
            f"example_id,class,answer\n{question.example_id},{campaign.class_names[other]},no\n",
            admin,
        )

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
            bring(session, campaign, f"position,example_id,class\n0,,dog\n{line}\n", admin)

        assert words in refused.value.detail
        assert refused.value.detail.startswith("Line 3")


class TestApi:
    def test_imports_lists_and_takes_back(
        self, client: TestClient, session: Session, campaign: Campaign
    ) -> None:
        made = send(client, campaign, b"position,class\n0,dog\n")

        assert (made["state"], made["yes"], made["filename"]) == ("ready", 1, "old.csv")
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

        assert (refused["state"], refused["yes"]) == ("failed", 0)
        assert refused["failure"].startswith("Line 3 is about the class 'wolf'")
        assert (response.status_code, response.json()["type"]) == (422, "/problems/malformed-request")
        assert session.scalar(select(func.count()).select_from(ImportedAnswer)) == 0

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

        assert (made["state"], made["yes"], made["no"]) == ("ready", 2, 2)
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
    nothing = client.post(url, headers=page)
    sent = client.post(url, files={"file": ("<b>.csv", b"position,class\n0,dog\n")}, headers=page)
    waits = client.get(url, headers=page)
    again = client.post(url, files={"file": ("<b>.csv", b"position,class\n0,dog\n")}, headers=page)

    assert "<table" not in empty.text
    assert (nothing.status_code, "Choose a file" in nothing.text) == (422, True)
    assert (sent.status_code, sent.headers["location"]) == (303, url)
    assert 'hx-trigger="every 1s"' in waits.text
    assert "&lt;b&gt;.csv" in waits.text
    assert (again.status_code, "imported before" in again.text) == (422, True)
    send(client, campaign, b"position,class\n0,wolf\n1,wolf\n", name="bad.csv")
    import_id = session.scalars(select(LabelImport.id).where(LabelImport.filename == "<b>.csv")).one()
    import_labels(context_of(client), import_id, read=read_here)
    shown = client.get(url, headers=page)
    assert 'hx-trigger="every 1s"' not in shown.text
    assert "2 lines cannot be taken in. The first: Line 2 is about the class &#39;wolf&#39;" in shown.text
    assert "<li>Line 3 is about the class &#39;wolf&#39;" in shown.text
    for found in session.scalars(select(LabelImport.id)).all():
        assert client.post(f"{url}/{found}/delete", headers=page).status_code == 303
    assert "<table" not in client.get(url, headers=page).text
    assert url in client.get(f"/campaigns/{campaign.id}", headers=page).text


def test_the_answer_comes_before_the_file_is_read(
    client: TestClient, session: Session, campaign: Campaign, published: list[Job]
) -> None:
    sent = upload(client, campaign, b"position,class\n0,dog\n")
    made = sent.json()

    assert (sent.status_code, made["state"], made["yes"]) == (202, "importing", 0)
    assert sent.headers["location"] == f"/api/v1/campaigns/{campaign.id}/imports/{made['id']}"
    assert published[-1] == Job(jobs.IMPORT_LABELS, (made["id"],))
    assert known(session, campaign, imported=True) == {}
    assert client.delete(sent.headers["location"]).status_code == 204
    assert client.get(sent.headers["location"]).json()["type"] == "/problems/import-not-found"
    state = context_of(client)
    assert not list(state.storage.listed())


def test_every_bad_line_is_told_up_to_a_hundred(client: TestClient, campaign: Campaign) -> None:
    lines = ["0,dog", "0,wolf", "x,dog", "99,dog", "99,wolf", "1,dog,3"]
    some = send(client, campaign, ("position,class\n" + "\n".join(lines)).encode())
    many = send(client, campaign, b"position,class\n" + b"0,wolf\n" * 150)
    places = send(client, campaign, b"position,class\n" + b"99,dog\n" * 150)

    assert some["failure"] == (
        "5 lines cannot be taken in. The first: Line 3 is about the class 'wolf', which this campaign does "
        "not have. Nothing was stored."
    )
    assert [(one["where"], one["why"][:18]) for one in some["faults"]] == [
        ("line 3", "is about the class"),
        ("line 4", "names the picture "),
        ("line 5", "is about position "),
        ("line 6", "is about the class"),
        ("line 7", "has more or fewer "),
    ]
    for one in (many, places):
        assert one["failure"].startswith("More than 100 lines cannot be taken in. The first: Line 2 is about")
        assert len(one["faults"]) == 100


def test_a_file_that_was_refused_may_come_again(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    first, again = (send(client, campaign, b"position,class\n0,wolf\n") for _ in range(2))

    assert (first["state"], again["state"]) == ("failed", "failed")
    assert session.scalar(select(func.count()).select_from(LabelImport)) == 1


def test_a_file_that_is_too_large_is_not_kept(client: TestClient, campaign: Campaign) -> None:
    told = send(client, campaign, b" " * (MAX_BYTES + 1))

    assert (told["status"], told["type"]) == (422, "/problems/bad-import")
    assert "more than 16 MB" in told["detail"]
    assert not list(context_of(client).storage.listed())
