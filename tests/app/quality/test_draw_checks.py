"""The draws are checked in the background, and the audit tells what the last check found."""

from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns import service as campaigns
from app.campaigns.models import Campaign
from app.quality import service as quality
from app.quality.models import DrawCheck
from tests.factories import NOW, make_campaign, questions_of

HTML = {"accept": "text/html"}


def check(session: Session, campaign: Campaign) -> None:
    """What the job does."""
    quality.keep_check(session, quality.check_draws(session, campaign, now=NOW))
    session.commit()


def change_a_class(session: Session, campaign: Campaign) -> None:
    """Somebody meddles with the database."""
    question = questions_of(session, campaign)[17]
    question.candidate_class = (question.candidate_class + 1) % 3
    session.commit()


def test_before_the_first_check_the_audit_claims_nothing(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=60, state="closed")
    session.commit()

    found: dict[str, Any] = client.get(f"/api/v1/campaigns/{campaign.id}/audit").json()
    page = client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text

    assert (found["passed"], found["checked_at"], found["draws_match"], found["uniformity"]) == (None,) * 4
    assert [item["drawn"] for item in found["classes"]] == [None] * 3
    assert "not checked yet" in page


def test_the_audit_tells_what_the_last_check_found(session: Session) -> None:
    campaign = make_campaign(session, examples=60, state="closed")
    check(session, campaign)
    change_a_class(session, campaign)

    before = quality.audit(session, campaign, now=NOW)
    check(session, campaign)
    after = quality.audit(session, campaign, now=NOW)

    assert (before.passed, before.draws_match, before.checked_at) == (True, True, NOW)
    assert (after.passed, after.draws_match) == (False, False)
    assert any("do not follow from the seed" in alarm for alarm in after.alarms)


def test_what_it_found_stays_secret_until_the_campaign_is_closed(session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    check(session, campaign)

    assert quality.audit(session, campaign, now=NOW).draws_match is None
    assert quality.audit(session, campaign, now=NOW).uniformity is not None
    assert quality.audit(session, campaign, now=NOW, has_seed=True).draws_match is True


def test_only_admins_have_all_draws_recomputed_at_once(
    client: TestClient, annotator_client: TestClient, session: Session
) -> None:
    campaign = make_campaign(session, examples=60, state="closed")
    check(session, campaign)
    change_a_class(session, campaign)
    address = f"/api/v1/campaigns/{campaign.id}/audit"

    assert client.get(address).json()["passed"] is True
    assert client.get(address, params={"recompute": True}).json()["passed"] is False
    assert annotator_client.get(address, params={"recompute": True}).json()["passed"] is True
    assert "Check now" in client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text
    assert "Check now" not in annotator_client.get(f"/campaigns/{campaign.id}/audit", headers=HTML).text


def test_checks_are_due_at_first_after_a_day_and_after_closing(session: Session, admin: User) -> None:
    make_campaign(session, state="draft")
    campaign = make_campaign(session, examples=60)
    assert quality.waiting_checks(session, NOW) == [campaign.id]

    check(session, campaign)
    assert quality.waiting_checks(session, NOW) == []
    assert quality.waiting_checks(session, NOW + timedelta(hours=25)) == [campaign.id]

    campaigns.close_campaign(session, campaign, by=admin, now=NOW + timedelta(hours=1))
    assert quality.waiting_checks(session, NOW + timedelta(hours=2)) == [campaign.id]


def test_a_check_takes_the_place_of_the_last_one(session: Session) -> None:
    campaign = make_campaign(session, examples=60)
    check(session, campaign)
    later = NOW + timedelta(hours=3)

    quality.keep_check(session, quality.check_draws(session, campaign, now=later))
    session.commit()

    assert session.get_one(DrawCheck, campaign.id).checked_at == later
