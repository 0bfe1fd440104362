"""An outside worker at a browser, for tests: opens a link, joins, answers."""

import re
from uuid import uuid4

from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.campaigns.models import Campaign

API = "/api/v1"
HTML = {"Accept": "text/html"}
WORKER = "5f3c8a1b9d2e7f0011223344"


def token_of(page: Response) -> str:
    """The CSRF token in a page."""
    found = re.search(r'name="csrf-token" content="([^"]*)"', page.text)
    assert found
    return found[1]


def begin(browser: TestClient, link: str, worker: str = WORKER) -> Response:
    """Open the link and press the button."""
    token = token_of(browser.get(link, headers=HTML))
    return browser.post(link, data={"worker": worker, "csrf_token": token}, headers=HTML)


def people(session: Session) -> int:
    """How many accounts there are."""
    return session.scalar(select(func.count()).select_from(User)) or 0


def answer(
    browser: TestClient, campaign: Campaign, count: int, *, response_ms: int = 900, value: str = "no"
) -> None:
    """Answer some questions."""
    token = token_of(browser.get(f"/annotate/{campaign.id}", headers=HTML))
    headers = {"X-CSRF-Token": token}
    here = f"{API}/campaigns/{campaign.id}"
    leased = browser.post(f"{here}/questions", json={"count": count}, headers=headers).json()["questions"]
    given = [
        {"question_id": item["id"], "value": value, "response_ms": response_ms, "key": str(uuid4())}
        for item in leased
    ]
    told = browser.post(f"{here}/answers", json={"answers": given}, headers=headers).json()["results"]
    assert [item["status"] for item in told] == ["stored"] * count
