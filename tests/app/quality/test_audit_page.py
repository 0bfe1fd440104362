"""The audit as a page."""

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import CampaignState
from tests.factories import answer, make_campaign, questions_of

HTML = {"accept": "text/html"}
HTMX = HTML | {"hx-request": "true"}


def test_shows_commitment_and_after_closing_the_seed(
    annotator_client: TestClient, session: Session, annotator: User
) -> None:
    campaign = make_campaign(session, examples=60)
    answer(session, campaign, questions_of(session, campaign)[0].id, "no")
    session.commit()

    before = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
    campaign.state = CampaignState.CLOSED
    session.commit()
    after = annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text

    assert (campaign.commitment or "-") in before
    assert "00" * 32 not in before
    assert "00" * 32 in after
    assert "People" not in after
    assert annotator.email not in after


def test_names_people_to_admins(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session)
    person = answer(session, campaign, questions_of(session, campaign)[0].id, "no")
    session.commit()

    assert person.name in client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text


def test_shows_alarms(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=60, state="closed")
    question = questions_of(session, campaign)[0]
    question.candidate_class = (question.candidate_class + 1) % 3
    session.commit()

    page = client.get(f"/campaigns/{campaign.id}/audit?recompute=true", headers=HTML).text

    assert "do not follow from the seed" in page
    assert 'role="alert"' in page


def test_a_draft_has_none(client: TestClient, session: Session) -> None:
    draft = make_campaign(session, state="draft")
    session.commit()

    assert client.get(f"/campaigns/{draft.id}/audit", headers=HTML).status_code == 404
