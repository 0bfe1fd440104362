"""Several people are invited at once: all of them, or nobody, and the lines in the way are told."""

import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Invitation, Role, User
from app.clock import utc_now
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


def test_of_many_bad_lines_the_first_are_told(
    client: TestClient, browser: Browser, ada: User, session: Session
) -> None:
    browser.sign_in(ada.email)

    some = client.post("/api/v1/invitations/several", json={"addresses": ["bad"] * 22})
    one_more = client.post("/api/v1/invitations/several", json={"addresses": ["bad"] * 21})
    page = browser.send(PATH, page="/people", addresses="x\n" * 20_000, role="annotator")

    assert re.findall(r"Line (\d+)", some.json()["detail"]) == [str(line) for line in range(1, 21)]
    assert some.json()["detail"].endswith(". 2 further lines cannot be used, either.")
    assert one_more.json()["detail"].endswith(". 1 further line cannot be used, either.")
    assert page.status_code == 422
    assert "There are 20000 addresses, and at most 200 are invited at once." in page.text
    assert "Line 1" not in page.text
    assert invited(session) == []


@pytest.mark.dialects
def test_who_invites_and_the_accounts_are_looked_up_once(session: Session, admin: User) -> None:
    seen: list[str] = []
    bind = session.get_bind()
    event.listen(bind, "before_cursor_execute", lambda *given: seen.append(given[2]))

    made = accounts.invite_several(
        session, [f"p{n}@example.org" for n in range(5)], role=Role.ANNOTATOR, by=admin, now=utc_now()
    )

    assert len(made) == 5
    assert sum(one.startswith("SELECT") for one in seen) == 2


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
