"""A form whose answer shows a secret: a reload sends it again, and nothing more is made."""

import html
import re

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts.models import ApiToken, Invitation, User
from app.db import Base
from app.members.models import WorkerLink
from tests.app.accounts.conftest import HTML, Browser
from tests.factories import make_campaign

pytestmark = pytest.mark.dialects


def count(session: Session, table: type[Base]) -> int:
    session.expire_all()
    return session.scalar(select(func.count()).select_from(table)) or 0


def fields_of(browser: Browser, page: str, action: str) -> dict[str, str]:
    """The hidden fields of a page's first form with this action."""
    text = browser.get(page).text
    form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', text, re.DOTALL)
    assert form
    hidden = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', form[0])
    return {name: html.unescape(value) for name, value in hidden}


@pytest.mark.parametrize("what", ["invitation", "token", "password", "workers"])
def test_a_reload_makes_no_second_one(
    browser: Browser, session: Session, ada: User, grace: User, what: str
) -> None:
    campaign = make_campaign(session)
    session.commit()
    browser.sign_in(ada.email)
    table: type[Base]
    page, action, given, table = {
        "invitation": ("/people", "/people/invitations", {"note": "Eve", "role": "annotator"}, Invitation),
        "token": ("/account", "/account/tokens", {"name": "t", "scope": "read", "days": "7"}, ApiToken),
        "password": (
            f"/people/{grace.id}",
            f"/people/{grace.id}/change",
            {"act": "password-link"},
            Invitation,
        ),
        "workers": (
            f"/campaigns/{campaign.id}/members",
            f"/campaigns/{campaign.id}/members/links",
            {"answers_needed": "2", "max_workers": "3"},
            WorkerLink,
        ),
    }[what]
    fields = fields_of(browser, page, action) | given
    before = count(session, table)

    first, again = (browser.client.post(action, data=fields, headers=HTML) for _ in range(2))

    assert first.status_code == 201
    assert 'id="copied"' in first.text
    assert count(session, table) == before + 1
    assert again.status_code == 409
    assert "nothing was made again" in again.text
    assert 'id="copied"' not in again.text
    if what == "invitation":
        other = browser.client.post(action, data=fields | {"note": "Joe"}, headers=HTML)
        fresh = browser.client.post(action, data=fields_of(browser, page, action) | given, headers=HTML)
        assert (other.status_code, fresh.status_code) == (201, 201)
        assert count(session, table) == before + 3


def test_what_was_refused_can_be_sent_again(browser: Browser, session: Session, ada: User) -> None:
    browser.sign_in(ada.email)
    fields = fields_of(browser, "/people", "/people/invitations") | {"role": "annotator", "email": ada.email}

    refused = browser.client.post("/people/invitations", data=fields, headers=HTML)
    again = fields_of(browser, "/people", "/people/invitations") | {"role": "annotator"}
    made = browser.client.post("/people/invitations", data=again, headers=HTML)

    assert refused.status_code == 422
    assert "already an account" in refused.text
    assert made.status_code == 201
    assert count(session, Invitation) == 1
