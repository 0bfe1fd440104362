"""Several people are invited at once: all of them, or nobody and every line in the way is told."""

import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import Invitation, User
from tests.app.accounts.conftest import Browser
from tests.factories import make_user

PATH = "/people/invitations/several"
LIST = "anna@example.org\n\nBo Lind <Bo@Example.org>\n"


def invited(session: Session) -> list[tuple[str | None, str, str]]:
    """Address, note and role of all that were made, in their order."""
    rows = session.execute(
        select(Invitation.email, Invitation.note, Invitation.role).order_by(Invitation.email)
    )
    return [(email, note, str(role)) for email, note, role in rows]


@pytest.mark.dialects
def test_a_program_gets_a_link_for_each_address(client: TestClient, session: Session) -> None:
    made = client.post("/api/v1/invitations/several", json={"addresses": LIST.splitlines()})

    assert made.status_code == 201
    items: Any = made.json()["items"]
    assert [item["email"] for item in items] == ["anna@example.org", "bo@example.org"]
    assert len({item["url"] for item in items}) == 2
    assert client.get(re.sub(r"^https?://[^/]+", "", items[1]["url"])).status_code == 200
    assert invited(session) == [
        ("anna@example.org", "", "annotator"),
        ("bo@example.org", "Bo Lind", "annotator"),
    ]
    listed = client.get("/people", headers={"accept": "text/html"}).text
    assert "<small>bo@example.org</small>" in listed, "the link works for this address alone"
    journal = unescape(client.get("/journal", headers={"accept": "text/html"}).text)
    assert "for: anna@example.org; role: annotator" in journal
    assert "for: Bo Lind <bo@example.org>; role: annotator" in journal


def test_all_bad_lines_are_told_at_once_and_nobody_is_invited(client: TestClient, session: Session) -> None:
    known = make_user(session)
    session.commit()
    lines = [
        "anna@example.org",
        "bo at example.org",
        known.email,
        "Anna <ANNA@example.org>",
        "x" * 300 + "@y",
    ]

    refused = client.post("/api/v1/invitations/several", json={"addresses": lines})
    empty = client.post("/api/v1/invitations/several", json={"addresses": [" "]})
    many = client.post(
        "/api/v1/invitations/several", json={"addresses": [f"p{n}@example.org" for n in range(201)]}
    )

    assert [answer.status_code for answer in (refused, empty, many)] == [422] * 3
    assert refused.json()["type"] == "/problems/bad-addresses"
    told = refused.json()["detail"]
    assert re.findall(r"Line (\d+)", told) == ["2", "3", "4", "5"]
    assert f"Line 3: “{known.email}” has an account." in told
    assert "Line 4: “anna@example.org” stands in line 1 already." in told
    assert "at most 200 are invited at once" in many.json()["detail"]
    assert invited(session) == []


def test_the_page_shows_each_address_with_its_link_once(
    browser: Browser, session: Session, ada: User
) -> None:
    browser.sign_in(ada.email)

    wrong = browser.send(PATH, page="/people", addresses="anna\nbo", role="annotator")
    made = browser.send(PATH, page="/people", addresses=LIST, role="annotator")

    assert wrong.status_code == 422
    assert "Line 1: “anna” does not look like an e-mail address. Line 2: “bo” does" in unescape(wrong.text)
    assert ">\nanna\nbo</textarea>" in wrong.text
    assert made.status_code == 201
    [shown] = re.findall(r'<textarea id="copied"[^>]*>([^<]*)</textarea>', made.text)
    assert [line.split(" ")[0] for line in shown.splitlines()] == ["anna@example.org", "bo@example.org"]
    assert all("/invitations/" in line for line in shown.splitlines())
    assert session.scalar(select(func.count()).select_from(Invitation)) == 2
    assert "/invitations/" not in re.sub(r'action="[^"]*"', "", browser.get("/people").text)
