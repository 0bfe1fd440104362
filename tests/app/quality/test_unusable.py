"""The review of pictures that cannot be used, by API and by page: for reviewers, too."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.campaigns.models import Campaign
from app.quality import service as quality
from tests.factories import NOW, answer, make_campaign, make_token, make_user, questions_of

pytestmark = pytest.mark.dialects

HTML = {"accept": "text/html"}


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """A campaign with a picture of which two people said it, and one of which one did."""
    campaign = make_campaign(session)
    two, one = questions_of(session, campaign)[:2]
    for _ in range(2):
        answer(session, campaign, two.id, "unusable")
    answer(session, campaign, one.id, "unusable")
    session.commit()
    return campaign


def test_the_api_lists_and_reviews(client: TestClient, campaign: Campaign) -> None:
    path = f"/api/v1/campaigns/{campaign.id}/unusable-pictures"
    page = client.get(path, params={"limit": 1}).json()
    rest = client.get(path, params={"after": page["next"]}).json()
    items = page["items"] + rest["items"]
    assert rest["next"] is None
    assert sorted((len(item["said_by"]), item["set_aside"], item["kept"]) for item in items) == [
        (1, False, None),
        (2, True, None),
    ]

    [aside] = [item["example_id"] for item in items if item["set_aside"]]
    kept = client.put(f"{path}/{aside}", json={"kept": True}).json()
    assert (kept["set_aside"], kept["kept"]) == (False, True)
    left_out = client.put(f"{path}/{aside}", json={"kept": False}).json()
    assert (left_out["set_aside"], left_out["kept"]) == (True, False)
    assert client.put(f"{path}/999999999", json={"kept": True}).status_code == 404
    progress = client.get(f"/api/v1/campaigns/{campaign.id}/progress").json()
    assert (progress["set_aside"], progress["answers"]["unusable"]) == (1, 3)


def test_the_page_reviews_without_javascript(client: TestClient, campaign: Campaign) -> None:
    page = client.get(f"/campaigns/{campaign.id}/review", headers=HTML).text
    assert "2 pictures that cannot be used" in page
    example_id = page.partition("/unusable-pictures/")[2].partition('"')[0]
    here = f"/campaigns/{campaign.id}/unusable-pictures/{example_id}"

    assert client.post(here, data={"kept": "false"}, headers=HTML).status_code == 303
    assert client.post(here, data={"kept": "perhaps"}, headers=HTML).status_code == 422

    page = client.get(f"/campaigns/{campaign.id}/review", headers=HTML).text
    assert "1 picture that cannot be used" in page
    assert "left out" in page


def test_reviewers_review_by_api_and_by_page(
    client: TestClient, session: Session, campaign: Campaign
) -> None:
    reviewer = make_user(session, role="reviewer")
    session.commit()
    reviewing = TestClient(client.app, headers={"Authorization": f"Bearer {make_token(session, reviewer)}"})
    path = f"/api/v1/campaigns/{campaign.id}/unusable-pictures"
    one, other = reviewing.get(path).json()["items"]

    assert reviewing.put(f"{path}/{one['example_id']}", json={"kept": True}).json()["kept"] is True
    page = f"/campaigns/{campaign.id}/unusable-pictures/{other['example_id']}"
    sent = reviewing.post(page, data={"kept": "false"}, headers=HTML, follow_redirects=False)
    assert sent.status_code == 303

    assert [item["kept"] for item in reviewing.get(path).json()["items"]] == [True, False]


def test_annotators_review_nothing(
    annotator_client: TestClient, session: Session, annotator: User, campaign: Campaign
) -> None:
    path = f"/api/v1/campaigns/{campaign.id}/unusable-pictures"
    example_id = questions_of(session, campaign)[0].example_id
    assert annotator_client.get(path).status_code == 403
    assert annotator_client.put(f"{path}/{example_id}", json={"kept": True}).status_code == 403
    with pytest.raises(NotAllowed):
        quality.review_picture(session, campaign, example_id, kept=True, by=annotator, now=NOW)
    with pytest.raises(NotAllowed):
        quality.unusable_pictures(session, campaign, by=annotator, limit=1)


def test_the_audit_tells_where_it_concentrates(session: Session) -> None:
    campaign = make_campaign(session, examples=120)
    people = [answer(session, campaign, questions_of(session, campaign)[0].id, "no") for _ in range(1)]
    for question in questions_of(session, campaign)[1:]:
        value = "unusable" if question.candidate_class == 1 else "no"
        answer(session, campaign, question.id, value, by=people[0])

    audit = quality.audit(session, campaign, now=NOW, has_seed=True)

    assert audit.unusable_by_class.p_value < 0.001
    assert any("cannot be used" in alarm.lower() and "dog" in alarm for alarm in audit.alarms)
