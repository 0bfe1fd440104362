"""Whoever asks for a password by mail, whose only way in is the provider."""

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Invitation, User
from app.clock import utc_now
from app.db import Database
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.app.accounts.organisation.conftest import sign_in, who
from tests.app.accounts.organisation.test_accounts import account
from tests.app.test_mail import PAGE, Server, mailing, server
from tests.factories import PASSWORD

__all__ = ["server"]
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")


@pytest.fixture
def browser(settings: Settings, database: Database, server: Server) -> Browser:
    """A browser at an installation with a provider that sends mail, too."""
    app = create_app(
        mailing(settings, f"smtp://{server.address}"), database=database, publish=lambda _job: None
    )
    return Browser(TestClient(app, follow_redirects=False, raise_server_exceptions=False))


def test_the_mail_says_by_whom_they_sign_in_and_gives_no_password(
    browser: Browser, server: Server, session: Session
) -> None:
    sign_in(browser)
    browser.client.cookies.clear()
    both = account(session, "grace@example.org")

    pages = {browser.send(PAGE, page=PAGE, email=email).text for email in ("ada@example.org", both.email)}

    assert len(pages) == 1
    ada, grace = (message.get_content() for message in server.box.messages)  # type: ignore[attr-defined]
    assert "you sign in with Example Works" in re.sub(r"\s+", " ", ada)
    assert "http://testserver/sign-in" in ada.split()
    assert "/password/" not in ada
    assert "/password/" in grace
    assert session.scalars(select(Invitation.email)).all() == [both.email]


def test_an_admins_link_still_gives_one(browser: Browser, session: Session) -> None:
    sign_in(browser)
    browser.client.cookies.clear()
    boss = account(session, "boss@example.org", role="admin")
    ada = session.scalars(select(User).where(User.email == "ada@example.org")).one()
    _, secret = accounts.make_password_link(session, ada, by=boss, now=utc_now())
    session.commit()

    browser.send(f"/password/{secret}", page=f"/password/{secret}", password="another long one")

    assert browser.sign_in(ada.email, PASSWORD).status_code == 422
    assert browser.sign_in(ada.email, "another long one").status_code == 303
    assert who(browser) == ada.email
