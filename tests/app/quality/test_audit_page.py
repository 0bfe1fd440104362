"""The audit as a page."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign, CampaignState
from app.quality.chi_square import upper_gamma
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


def test_says_why_p_is_not_that_of_the_statistic(client: TestClient, session: Session) -> None:
    once, twice = (make_campaign(session, examples=40, rounds=rounds) for rounds in (1, 2))
    session.commit()

    def told(campaign: Campaign) -> str:
        return client.get(f"/campaigns/{campaign.id}/audit?recompute=true", headers=HTML).text

    assert "the most uneven" not in told(once)
    assert "the most uneven of 2 draws, so p is 2 times its own, 1 at most" in told(twice)
    read = client.get(f"/api/v1/campaigns/{twice.id}/audit?recompute=true").json()
    own = upper_gamma(read["uniformity"]["degrees"] / 2, read["uniformity"]["statistic"] / 2)
    assert read["uniformity_of"] == 2
    assert read["uniformity"]["p_value"] == pytest.approx(min(1, 2 * own))


def test_says_of_no_class_what_chance_gives(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    session.commit()
    page = f"/campaigns/{campaign.id}/audit"

    assert "more common for some classes" not in client.get(page, headers=HTML).text

    for question in questions_of(session, campaign):
        answer(session, campaign, question.id, "unsure" if question.candidate_class == 0 else "no")
    session.commit()
    told = client.get(page, headers=HTML).text
    assert "more common for some classes" in told
    assert "for no class more than chance gives" in told


def test_leads_back_to_the_campaign(
    client: TestClient, annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session)
    session.commit()
    example = questions_of(session, campaign)[0].example_id
    back = f'/campaigns/{campaign.id}">{campaign.name}</a>'

    for page in ("audit", "quality", f"examples/{example}"):
        assert back in client.get(f"/campaigns/{campaign.id}/{page}", headers=HTML).text, page
    assert back not in annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
