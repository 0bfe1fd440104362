"""What imports say against themselves and each other, and what they say again."""

import random
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign
from app.labels.models import ImportedAnswer
from tests.app.labels.taking import bring, context_of, make_named_campaign, read_here, send, upload
from tests.app.labels.test_imports import known
from tests.factories import answer, make_campaign, questions_of
from worker.label_intake import import_labels

TRUE, COMPLEMENTARY = "true", "complementary"


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """Six pictures, 0c.png to 5c.png, of cats, dogs and owls."""
    return make_named_campaign(session, ending="c.png", examples=6)


def classes(session: Session, campaign: Campaign) -> dict[int, tuple[object, ...]]:
    """Kind and classes by position, as the imports say."""
    return {place: label[:2] for place, label in known(session, campaign, imported=True).items()}


CONTRADICTIONS = {
    "two classes": (
        "filename,class\n0c.png,cat\n1c.png,owl\n0c.png,dog\n",
        4,
        "says that '0c.png' is 'dog', but line 2 of 'l.csv' says that it is 'cat'",
    ),
    "yes and no": (
        "filename,class,answer\n0c.png,cat,no\n1c.png,owl,yes\n0c.png,cat,yes\n",
        4,
        "says that '0c.png' is 'cat', but line 2 of 'l.csv' says that it is not 'cat'",
    ),
    "by one person": (
        "position,class,annotator\n0,cat,Ada\n1,owl,Ada\n0,owl,Ben\n0,dog,Ada\n",
        5,
        "says that '0c.png' is 'dog', but line 2 of 'l.csv' says that it is 'cat', both by 'Ada'",
    ),
    "no of all": (
        "position,class,answer\n0,cat,no\n1,owl,yes\n0,dog,no\n0,owl,no\n",
        5,
        "says that '0c.png' is not 'owl', but line 2 of 'l.csv' says that it is not 'cat', so that no "
        "class is left",
    ),
}


@pytest.mark.parametrize(("table", "line", "why"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_file_that_contradicts_itself_is_refused_with_both_lines_or_both_are_left_out(
    *, client: TestClient, session: Session, campaign: Campaign, table: str, line: int, why: str
) -> None:
    refused = send(client, campaign, table.encode(), name="l.csv")

    assert (refused["state"], refused["yes"], refused["left_out"]) == ("failed", 0, 0)
    assert refused["failure"].startswith(f"Line {line} {why}. Nothing was stored. Mend")
    assert refused["failure"].endswith("contradictions=leave-out, and neither side counts.")
    assert [(one["where"], one["why"]) for one in refused["faults"]] == [(f"line {line}", why)]
    assert classes(session, campaign) == {}

    taken = send(client, campaign, table.encode(), name="l.csv", contradictions="leave-out")

    by_ben = "Ben" in table  # who does not contradict himself
    left_out = (2, 2) if by_ben else (table.count("\n0"), 1)
    assert taken["state"] == "ready"
    assert (taken["left_out"], taken["yes"] + taken["no"]) == left_out
    assert f"{taken['left_out']} answers left out" in taken["notes"][-1]
    assert [one["where"] for one in taken["faults"]] == [f"line {line}"]
    assert classes(session, campaign).get(0) == ((TRUE, (2,)) if by_ben else None)
    assert classes(session, campaign)[1] == (TRUE, (2,))


def test_up_to_a_hundred_are_listed(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=120)
    session.commit()
    rows = [f"{place},{name}" for place in range(120) for name in ("cat", "dog")]

    refused = send(client, campaign, "\n".join(["position,class", *rows]).encode())
    taken = send(client, campaign, "\n".join(["position,class", *rows]).encode(), contradictions="leave-out")

    assert refused["failure"].startswith(
        "More than 100 lines cannot be taken in. The first: Line 3 says that"
    )
    assert len(refused["faults"]) == len(taken["faults"]) == 100
    assert (taken["left_out"], taken["yes"]) == (240, 0)


def test_an_earlier_import_that_is_contradicted_is_named_and_comes_back(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    first = send(client, campaign, b"position,class\n0,cat\n1,owl\n", name="first.csv")
    later = b"filename,class\n2c.png,dog\n0c.png,dog\n"
    path = f"/api/v1/campaigns/{campaign.id}/imports"

    def counts_nothing() -> list[int]:
        """Of the first: read by itself, among all, and in what the page says."""
        one = client.get(f"{path}/{first['id']}").json()
        [listed] = [item for item in client.get(path).json()["items"] if item["id"] == first["id"]]
        assert listed == one
        page = client.get(f"/campaigns/{campaign.id}/imports", headers={"accept": "text/html"}).text
        return [one["yes"], one["left_out"], one["left_out_later"], page.count("1 answer counts nothing now")]

    refused = send(client, campaign, later, name="later.csv")

    assert refused["faults"] == [
        {
            "where": "line 3",
            "why": "says that '0c.png' is 'dog', but line 2 of 'first.csv' says that it is 'cat'",
        }
    ]
    assert classes(session, campaign) == {0: (TRUE, (0,)), 1: (TRUE, (2,))}
    taken = send(client, campaign, later, name="later.csv", contradictions="leave-out")
    assert (taken["left_out"], taken["yes"], taken["left_out_later"]) == (1, 1, 0)
    assert counts_nothing() == [2, 0, 1, 1]
    assert classes(session, campaign) == {1: (TRUE, (2,)), 2: (TRUE, (1,))}
    client.delete(f"{path}/{taken['id']}")
    assert counts_nothing() == [2, 0, 0, 0]
    assert classes(session, campaign) == {0: (TRUE, (0,)), 1: (TRUE, (2,))}


def test_contradictions_that_were_left_out_before_do_not_matter_to_what_comes_later(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    """A later file is about another picture, or another person, and contradicts itself there."""
    head, leave_out = "filename,class,annotator\n", {"contradictions": "leave-out"}
    send(client, campaign, f"{head}0c.png,cat,Ada\n0c.png,dog,Ada\n".encode(), "first.csv", **leave_out)

    later = f"{head}1c.png,cat,Ada\n1c.png,dog,Ada\n0c.png,owl,Ben\n".encode()
    refused = send(client, campaign, later, "later.csv")
    taken = send(client, campaign, later, "later.csv", **leave_out)

    assert [one["where"] for one in refused["faults"]] == ["line 3"]
    assert (taken["state"], taken["left_out"], taken["yes"]) == ("ready", 2, 1)
    assert [one["where"] for one in taken["faults"]] == ["line 3"]
    assert classes(session, campaign) == {0: (TRUE, (2,))}


@pytest.mark.parametrize(
    ("first", "fault"),
    [
        ("0c.png,cat,yes\n0c.png,dog,yes\n", ""),
        ("0c.png,cat,no\n0c.png,dog,no\n0c.png,owl,no\n", ""),
        ("0c.png,owl,yes\n0c.png,dog,yes\n", "'first.csv' says that it is 'owl'"),
        ("0c.png,cat,yes\n0c.png,cat,no\n0c.png,dog,no\n", "not 'cat', so that no class is left"),
    ],
)
def test_a_file_is_refused_only_for_what_it_contradicts_itself(
    *, client: TestClient, session: Session, campaign: Campaign, first: str, fault: str
) -> None:
    head = "filename,class,answer\n"
    before = send(client, campaign, f"{head}{first}".encode(), "first.csv", contradictions="leave-out")
    send(client, campaign, f"{head}0c.png,cat,unsure\n".encode(), "third.csv")

    made = send(client, campaign, f"{head}0c.png,owl,no\n1c.png,dog,yes\n".encode(), "later.csv")

    if fault:
        assert made["failure"].startswith("Line 2 says that '0c.png' is not 'owl', but line ")
        assert fault in made["failure"]
        return
    assert (made["state"], made["left_out"], made["yes"], made["no"]) == ("ready", 1, 1, 0)
    assert made["faults"] == []
    assert made["notes"] == [
        "1 answer left out: who gave them contradicts themselves about the picture in what was imported "
        "before, from 'first.csv'. Take that back, and they count."
    ]
    client.delete(f"/api/v1/campaigns/{campaign.id}/imports/{before['id']}")
    assert classes(session, campaign) == {0: (COMPLEMENTARY, (2,)), 1: (TRUE, (1,))}


def test_what_several_people_say_is_a_vote(session: Session, campaign: Campaign, admin: User) -> None:
    votes = ["0,cat,yes,Ada", "0,cat,no,Ben", "0,cat,yes,Cem", "1,cat,yes,Ada", "1,cat,no,Ben"]

    made = bring(session, campaign, "\n".join(["position,class,answer,annotator", *votes]), admin)

    assert (made.yes, made.no, made.left_out) == (3, 2, 0)
    assert classes(session, campaign) == {0: (TRUE, (0,))}


def test_another_order_and_a_further_row_are_told_from_what_is_new(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    rows = ["0,cat,yes,Ada", "1,dog,no,Ada", "1,dog,no,Ben", "2,owl,yes,Ada", "3,cat,unsure,Ada"]
    head = "position,class,answer,annotator"
    first = send(client, campaign, "\n".join([head, *rows]).encode())
    labels = list(known(session, campaign, imported=True).items())
    random.Random(3).shuffle(rows)

    again = send(client, campaign, "\n".join([head, *rows]).encode(), name="again.csv")

    assert (first["known"], again["known"], again["yes"], again["no"]) == (0, 5, 2, 2)
    assert "5 answers were here already, 0 are new." in again["notes"]
    assert list(known(session, campaign, imported=True).items()) == labels
    more = send(client, campaign, "\n".join([head, *rows, "4,dog,yes,Ada", "4,dog,yes,Ada"]).encode())
    assert (more["known"], more["yes"]) == (5, 3)
    assert more["notes"] == [
        "5 answers were here already, 1 is new.",
        "1 line says what an earlier one says, and counted once.",
    ]
    client.delete(f"/api/v1/campaigns/{campaign.id}/imports/{first['id']}")
    assert known(session, campaign, imported=True)[0] == dict(labels)[0]  # the others say it, too


def test_a_vote_counts_once_however_often_it_is_imported(
    session: Session, campaign: Campaign, admin: User
) -> None:
    head = "position,class,answer,annotator\n"
    for further in ("", "1,cat,yes,Ada\n", "2,cat,yes,Ada\n"):
        bring(session, campaign, f"{head}0,cat,yes,Ada\n{further}", admin)
    bring(session, campaign, f"{head}0,cat,no,Ben\n0,cat,no,Cem\n", admin)

    assert classes(session, campaign)[0] == (COMPLEMENTARY, (0,))


def test_what_a_worker_of_the_version_before_writes_twice_counts_once(
    session: Session, campaign: Campaign, admin: User
) -> None:
    made = bring(session, campaign, "position,class,answer,annotator\n0,cat,yes,Ada\n0,cat,no,Ben\n", admin)
    first = session.scalars(select(ImportedAnswer).order_by(ImportedAnswer.id)).first()
    assert first is not None
    again = {"example_id": first.example_id, "candidate_class": 0, "value": first.value, "annotator": "Ada"}

    session.execute(insert(ImportedAnswer), [again | {"import_id": made.id}])

    assert classes(session, campaign) == {}, "one says yes and one says no"


NUMBERED = {
    "said to count from 1": ("0,1\n1,3\n", "1", {0: (TRUE, (0,)), 1: (TRUE, (2,))}, ""),
    "said to count from 0": ("0,1\n1,2\n", "0", {0: (TRUE, (1,)), 1: (TRUE, (2,))}, ""),
    "not said, and a 0": ("0,1\n1,0\n", "", {0: (TRUE, (1,)), 1: (TRUE, (0,))}, ""),
}


@pytest.mark.parametrize(("rows", "first", "expected", "note"), NUMBERED.values(), ids=NUMBERED)
def test_from_where_numbers_of_classes_count_may_be_said(
    *,
    client: TestClient,
    session: Session,
    campaign: Campaign,
    rows: str,
    first: str,
    expected: dict[int, tuple[object, ...]],
    note: str,
) -> None:
    made = send(client, campaign, f"position,label\n{rows}".encode(), first_class=first)

    assert made["notes"] == ([note] if note else [])
    assert classes(session, campaign) == expected


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("contradictions", "ignore", "contradictions is 'ignore'; it may be refuse or leave-out."),
        ("first_class", "2", "first_class is '2'; it may be 0 or 1."),
    ],
)
def test_another_choice_is_refused(
    client: TestClient, campaign: Campaign, field: str, value: str, told: str
) -> None:
    assert upload(client, campaign, b"position,class\n0,cat\n", **{field: value}).json()["detail"] == told


def test_the_page_asks_what_to_do_and_lists_what_was_left_out(client: TestClient, campaign: Campaign) -> None:
    page, url = {"Accept": "text/html"}, f"/campaigns/{campaign.id}/imports"
    table = {"file": ("l.csv", b"position,class\n0,cat\n0,dog\n")}

    client.post(url, files=table, data={"contradictions": "leave-out", "first_class": ""}, headers=page)
    (waiting,) = client.get(f"/api/v1{url}").json()["items"]
    import_labels(context_of(client), UUID(waiting["id"]), read=read_here)
    shown = client.get(url, headers=page).text

    assert 'name="contradictions"' in shown
    assert "2 answers left out" in shown
    assert "<li>Line 3 says that &#39;0c.png&#39; is &#39;dog&#39;, but line 2 of" in shown


def test_where_people_differ_is_listed_for_the_review(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    asked = {question.example_id: question for question in questions_of(session, campaign)}
    first, second = (asked[example_id] for example_id in sorted(asked)[:2])
    for question in (first, second):
        answer(session, campaign, question.id, "no")
    session.commit()
    denied, other = first.candidate_class, (second.candidate_class + 1) % 3
    rows = [
        f"0,{denied},yes,Ada",  # an answer here denies it
        f"1,{other},yes,Ada",  # agrees with the answer here
        "2,0,yes,Ada",
        "2,1,yes,Ben",  # two classes
        "3,0,yes,Ada",
        "3,0,no,Ben",  # a tie
        "4,0,yes,Ada",
        "4,0,yes,Ben",
    ]

    send(client, campaign, "\n".join(["position,class_index,answer,annotator", *rows]).encode())
    listed = client.get(f"/api/v1/campaigns/{campaign.id}/imports/disagreements").json()
    page = client.get(f"/campaigns/{campaign.id}/imports", headers={"Accept": "text/html"}).text

    name = ("cat", "dog", "owl")[denied]
    assert listed["count"] == 3
    assert [(one["filename"], one["why"]) for one in listed["items"]] == [
        ("0c.png", f"imports say yes to '{name}', answers here no"),
        ("2c.png", "imports say 'cat' (1 yes) and 'dog' (1 yes)"),
        ("3c.png", "imports say 'cat': 1 yes, 1 no"),
    ]
    assert "About 3 pictures people differ." in page
    assert f"/campaigns/{campaign.id}/review" in page
    assert sorted(known(session, campaign, imported=True)) == [1, 4]


def test_of_a_large_campaign_nobody_waits_for_where_people_differ(
    client: TestClient, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.quality.precomputed.LARGE", 1)
    send(client, campaign, b"position,class_index,answer,annotator\n3,0,yes,Ada\n3,0,no,Ben\n")
    url, page = f"/campaigns/{campaign.id}/imports", {"Accept": "text/html"}

    assert "disagreements" not in client.get(f"/api/v1{url}").json()
    shown = client.get(url, headers=page).text
    assert "Look where people differ" in shown
    assert "people differ." not in shown
    asked = client.get(f"{url}?differing=true", headers=page).text
    assert "About 1 picture people differ." in asked
    assert "Look where people differ" not in asked
    assert client.get(f"/api/v1{url}/disagreements").json()["count"] == 1
