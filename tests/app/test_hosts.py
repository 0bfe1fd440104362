"""What a caller says we are called reaches no link, form, redirect or mail."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.proxies import warning_at_start
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.test_access import address, routes_of
from tests.factories import make_campaign, make_dataset, make_run

EVIL = "evil.example"
ASKED = {"Host": EVIL, "X-Forwarded-Host": EVIL, "Forwarded": f"host={EVIL}", "Accept": "text/html"}
STREAMS = {"/live"}  # have no end


def test_no_page_and_no_redirect_names_the_host_that_was_asked_for(
    app: FastAPI, client: TestClient, session: Session, storage: FolderStorage, anonymous: TestClient
) -> None:
    dataset, campaign, run = (
        make_dataset(session, storage),
        make_campaign(session),
        make_run(session, storage),
    )
    session.commit()
    there = {"dataset_id": dataset.id, "campaign_id": campaign.id, "run_id": run.id}
    pages = [
        path
        for method, path, _ in routes_of(app)
        if method == "GET" and not path.startswith("/api/") and path not in STREAMS
    ]
    statuses: dict[int, int] = {}

    for path in pages:
        known = re.sub(r"\{(\w+)\}", lambda name: str(there.get(name[1], name[0])), path)
        for who in (client, anonymous):
            answer = who.get(address(known), headers=ASKED, follow_redirects=False)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert EVIL not in answer.text, path
            assert EVIL not in str(answer.headers), path

    assert statuses[200] > 30
    assert "http://testserver" not in client.get("/campaigns", headers={"Accept": "text/html"}).text


@pytest.mark.parametrize("path", ["/campaigns/", "/api/v1/campaigns/"])
def test_a_redirect_for_a_slash_names_no_host(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=ASKED, follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (307, path.rstrip("/"))


def test_links_that_are_handed_on_begin_with_the_public_address(
    client: TestClient, settings: Settings
) -> None:
    asked = {"email": "new@example.org", "role": "annotator"}

    made = client.post("/api/v1/invitations", json=asked, headers={"Host": EVIL})

    assert made.status_code == 201, made.text
    assert made.json()["url"].startswith(f"{settings.public_url}/invitations/")
    assert EVIL not in made.text


@pytest.mark.parametrize(
    ("given", "warns"),
    [({}, True), ({"public_url": "https://c.example.org"}, False)],
)
def test_mail_without_a_public_address_is_warned_of(given: dict[str, str], warns: bool) -> None:
    mail = {"smtp_url": "smtp://localhost:25", "mail_from": "c@example.org"}
    settings = Settings(_env_file=None, **mail, **given)  # type: ignore[arg-type]  # texts, as variables are

    told = warning_at_start(settings, "127.0.0.1") or ""

    assert ("CLARINET_PUBLIC_URL is not set" in told) == warns
