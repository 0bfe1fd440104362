"""A campaign to which outside workers come by a link."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.campaigns.models import Campaign
from tests.factories import make_campaign

API = "/api/v1"


@pytest.fixture
def campaign(session: Session) -> Campaign:
    """An open campaign."""
    campaign = make_campaign(session, examples=8)
    session.commit()
    return campaign


@pytest.fixture
def link(client: TestClient, campaign: Campaign) -> str:
    """The path of a link that wants two answers and admits two workers."""
    wanted = {"answers_needed": 2, "max_workers": 2, "code": "C1ABCD", "note": "Pilot"}
    made = client.post(f"{API}/campaigns/{campaign.id}/workers", json=wanted)
    assert made.status_code == 201
    return "/join/" + str(made.json()["url"]).rpartition("/")[2]


@pytest.fixture
def browser(app: FastAPI) -> TestClient:
    """Of somebody unknown."""
    return TestClient(app, follow_redirects=False, raise_server_exceptions=False)
