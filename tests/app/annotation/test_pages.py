"""Pages for people who answer."""

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.annotation.public_ids import public_ids_of
from app.campaigns import openings
from app.campaigns import service as campaigns
from tests.factories import answer, make_campaign, questions_of

HTML = {"accept": "text/html"}


def test_the_list_offers_open_campaigns(
    annotator_client: TestClient, session: Session, annotator: User
) -> None:
    campaign = make_campaign(session, examples=4)
    hidden = [make_campaign(session, state=state) for state in ("draft", "paused", "closed")]
    answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)
    session.commit()

    page = annotator_client.get("/annotate", headers=HTML)

    assert page.status_code == 200
    assert campaign.name in page.text
    assert "1 answered by you" in page.text
    assert "about 3 questions to go" in page.text
    assert not any(other.name in page.text for other in hidden)


def test_nothing_to_answer_says_so(annotator_client: TestClient) -> None:
    assert "Nothing to answer" in annotator_client.get("/annotate", headers=HTML).text


def test_the_card_screen_shows_classes_and_their_pictures(
    annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session)
    picture = openings.examples_to_label(session, campaign.dataset_id, end_position=10**6)[0][1]
    campaign.classes[1].description = "barks <loudly>"
    campaign.classes[1].example_ids = [picture]
    session.commit()

    page = annotator_client.get(f"/annotate/{campaign.id}", headers=HTML)

    assert page.status_code == 200
    assert "barks &lt;loudly&gt;" in page.text
    shown = public_ids_of(session, campaign.id).picture(picture)
    assert f"/api/v1/campaigns/{campaign.id}/pictures/{shown}" in page.text
    assert f"/api/v1/campaigns/{campaign.id}/leases/renew" in page.text


def test_a_campaign_that_is_not_open_is_not_found(annotator_client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, state="paused")
    session.commit()

    assert annotator_client.get(f"/annotate/{campaign.id}", headers=HTML).status_code == 404


def test_who_took_part_sees_the_screen_of_a_paused_campaign(
    annotator_client: TestClient, session: Session, annotator: User, admin: User
) -> None:
    campaign = make_campaign(session, examples=4)
    answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=annotator)
    campaigns.pause_campaign(session, campaign, by=admin)
    session.commit()

    assert annotator_client.get(f"/annotate/{campaign.id}", headers=HTML).status_code == 200
