"""One's own answers by API and by page."""

import re
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from tests.factories import answer, make_campaign, questions_of

HTML = {"accept": "text/html"}


@pytest.fixture
def campaign(session: Session, annotator: User) -> Campaign:
    """A campaign in which the annotator said one no, and somebody else another."""
    campaign = make_campaign(session)
    mine, other = questions_of(session, campaign)[:2]
    answer(session, campaign, mine.id, "no", by=annotator)
    answer(session, campaign, other.id, "no")
    session.commit()
    return campaign


def test_the_api_lists_and_changes_ones_own_and_nobody_elses(
    annotator_client: TestClient, campaign: Campaign
) -> None:
    path = f"/api/v1/campaigns/{campaign.id}/my-answers"
    told = annotator_client.get(path).json()
    [item] = told["items"]
    assert (item["value"], item["others"], told["may_change"], told["tells_others"]) == (
        "no",
        None,
        True,
        False,
    )
    body = {"question_id": item["question_id"], "value": "yes", "key": str(uuid4())}

    assert annotator_client.post(path, json=body).json() == {"status": "stored"}
    assert annotator_client.post(path, json=body).json() == {"status": "repeated"}
    assert annotator_client.post(path, json=body | {"value": "no"}).status_code == 409
    unknown = body | {"question_id": 1, "key": str(uuid4())}
    assert annotator_client.post(path, json=unknown).status_code == 404

    figures = annotator_client.get(f"/api/v1/campaigns/{campaign.id}/my-figures").json()
    assert figures["answers"] == {"yes": 1, "no": 0, "unsure": 0, "unusable": 0}
    assert [figures[f"agreement{of}"] for of in ("", "_over", "_judged")] == [None, 0, 0]


def test_the_page_says_of_how_many_answers_others_judged(
    annotator_client: TestClient,
    session: Session,
    campaign: Campaign,
    annotator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.annotation.own.STEP", 3)
    monkeypatch.setattr("app.annotation.own.LEAST_JUDGED", 2)
    ids = [question.id for question in questions_of(session, campaign)[1:4]]
    for id_ in ids[:2]:
        answer(session, campaign, id_, "no")
    for id_ in ids:
        answer(session, campaign, id_, "no", by=annotator)
    session.commit()

    page = annotator_client.get(f"/annotate/{campaign.id}/answers", headers=HTML).text

    told = re.search(r"Others answered (\d) of your first (\d) questions, too; (\d+)", page)
    assert told
    assert told.groups() == ("2", "3", "100")


def test_the_page_changes_without_javascript(annotator_client: TestClient, campaign: Campaign) -> None:
    path = f"/annotate/{campaign.id}/answers"
    page = annotator_client.get(path, headers=HTML).text
    given = {
        name: page.partition(f'name="{name}" value="')[2].partition('"')[0]
        for name in ("csrf_token", "question_id", "key")
    }

    changed = annotator_client.post(path, data=given | {"value": "unsure"}, headers=HTML)
    again = annotator_client.post(path, data=given | {"value": "unsure"}, headers=HTML)

    assert changed.status_code == again.status_code == 303
    place = f"answer-{given['question_id']}"
    assert changed.headers["location"] == f"{path}#{place}"
    assert f'id="{place}"' in page
    assert ">Change to:</span>" in page
    assert "<strong>can&#39;t tell</strong>" in annotator_client.get(path, headers=HTML).text
    spanish = annotator_client.get(path, headers=HTML | {"accept-language": "es"}).text
    assert re.search(r"<p>¿\w+\? <strong>no lo sé</strong>", spanish)
    assert re.search(r">\d+ [a-z]+ 20\d\d \d\d:\d\d UTC</time>", spanish)
    refused = annotator_client.post(path, data=given | {"value": "perhaps"}, headers=HTML)
    assert refused.status_code == 422


def test_who_may_not_know_of_a_campaign_has_no_list(annotator_client: TestClient, session: Session) -> None:
    draft = make_campaign(session, state="draft")
    session.commit()
    assert annotator_client.get(f"/api/v1/campaigns/{draft.id}/my-answers").status_code == 404
    body = {"question_id": 1, "value": AnswerValue.NO, "key": str(uuid4())}
    assert annotator_client.post(f"/api/v1/campaigns/{draft.id}/my-answers", json=body).status_code == 404
    assert annotator_client.post(f"/api/v1/campaigns/{draft.id}/practised", json={}).status_code == 404


def test_practice_is_offered_once(annotator_client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    campaign.classes[0].example_ids = [questions_of(session, campaign)[0].example_id]
    session.commit()
    page = f"/annotate/{campaign.id}"
    assert "data-practice-cards" in annotator_client.get(page, headers=HTML).text

    assert annotator_client.post(f"/api/v1/campaigns/{campaign.id}/practised", json={}).status_code == 204

    assert "data-practice-cards" not in annotator_client.get(page, headers=HTML).text
