"""A person's page tells what they gave, and tables of people lead to it."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import given
from app.accounts.models import User
from app.annotation import service as annotation
from app.members import service as members
from tests.factories import NOW, answer, make_campaign, make_token, make_user, questions_of

HTML = {"accept": "text/html"}
pytestmark = pytest.mark.dialects


def cells(page: str, name: str) -> list[str]:
    """The words of the row that begins with a name."""
    (row,) = [row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if f">{name}</a></th>" in row]
    return [re.sub(r"<[^>]*>|\s+", " ", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]


def test_answers_are_told_by_campaign_the_newest_first(
    client: TestClient, session: Session, admin: User
) -> None:
    first, second = make_campaign(session, name="Cats"), make_campaign(session, name="Dogs")
    jane, other = make_user(session), make_user(session)
    values = ("yes", "no", "no", "unsure", "unusable")
    for question, value in zip(questions_of(session, first), values, strict=False):
        answer(session, first, question.id, value, by=jane)
    answer(
        session, second, questions_of(session, second)[0].id, "no", by=jane, now=NOW + timedelta(minutes=1)
    )
    answer(session, first, questions_of(session, first)[5].id, "no", by=other)
    annotation.leave_out(session, first, jane.id, by=admin, left_out=True)
    session.commit()

    page = client.get(f"/people/{jane.id}", headers=HTML).text

    assert cells(page, "Cats")[:5] == ["5", "1", "2", "1", "1"]
    assert cells(page, "Cats")[6].startswith("left out")
    assert cells(page, "Dogs")[:5] == ["1", "0", "1", "0", "0"]
    assert page.index(">Dogs</a>") < page.index(">Cats</a>")
    assert f'href="/campaigns/{first.id}"' in page.replace("http://testserver", "")


def test_of_very_many_campaigns_the_newest_are_shown(
    client: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "MOST_SHOWN", 1)
    jane = make_user(session)
    for minutes, name in enumerate(("Cats", "Dogs")):
        campaign = make_campaign(session, name=name)
        at = NOW + timedelta(minutes=minutes)
        answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=jane, now=at)
    session.commit()

    page = client.get(f"/people/{jane.id}", headers=HTML).text

    assert "The newest 1 of 2 campaigns." in page
    assert ">Dogs</a>" in page
    assert ">Cats</a>" not in page


def test_who_gave_nothing_is_told_so(client: TestClient, session: Session) -> None:
    jane = make_user(session)
    session.commit()

    assert "Answers by campaign" not in client.get(f"/people/{jane.id}", headers=HTML).text


def test_an_outside_worker_has_the_platforms_id_and_the_studies(
    client: TestClient, session: Session, admin: User
) -> None:
    campaign = make_campaign(session, name="Cats")
    for study in ("Pilot", "Main study"):
        _, secret = members.make_link(
            session, campaign, answers_needed=2, max_workers=5, note_=study, by=admin, now=NOW
        )
        worker, _ = members.join(session, secret, "5f1a9c", now=NOW)
    session.commit()

    page = client.get(f"/people/{worker.id}", headers=HTML).text

    assert "<dd>5f1a9c</dd>" in page
    assert "<dd>Pilot, for <a" in page
    assert "<dd>Main study, for <a" in page


@pytest.mark.parametrize("part", ["", "/quality", "/audit"])
def test_names_in_tables_lead_to_the_person(client: TestClient, session: Session, part: str) -> None:
    campaign, jane = make_campaign(session), make_user(session)
    answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=jane)
    session.commit()

    page = client.get(f"/campaigns/{campaign.id}{part}", headers=HTML).text

    assert re.search(rf'<th scope="row"><a href="[^"]*/people/{jane.id}">{jane.name}</a>', page)


def test_who_is_no_admin_gets_names_without_links(client: TestClient, session: Session) -> None:
    campaign, jane = make_campaign(session), make_user(session)
    question = questions_of(session, campaign)[0]
    answer(session, campaign, question.id, "no", by=jane)
    token = make_token(session, make_user(session, role="reviewer"))
    session.commit()
    path = f"/campaigns/{campaign.id}/examples/{question.example_id}"

    theirs = client.get(path, headers=HTML | {"Authorization": f"Bearer {token}"}).text
    ours = client.get(path, headers=HTML).text

    assert f"<td>{jane.name}</td>" in theirs
    assert "/people/" not in theirs
    assert f'/people/{jane.id}">{jane.name}</a></td>' in ours
