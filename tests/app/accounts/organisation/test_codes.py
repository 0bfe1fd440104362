"""A second factor of ours beside the provider, and what a sign-in by the provider proves."""

import re
from collections.abc import Callable
from datetime import timedelta

import pyotp
import pytest
from httpx2 import Response
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.accounts.models import LoginSession, Role, User
from app.clock import utc_now
from app.journal.models import Action, Entry
from tests.app.accounts.conftest import Browser
from tests.app.accounts.organisation.conftest import sent_on, sign_in, way_back, who
from tests.app.accounts.organisation.test_accounts import account, wanting
from tests.provider import Provider

MakeBrowser = Callable[[], Browser]
TOTP = pyotp.random_base32()


def with_second_factor(session: Session) -> User:
    user = session.scalars(select(User)).one()
    user.role, user.totp_secret, user.totp_since = Role.REVIEWER, TOTP, utc_now()
    session.commit()
    return user


def test_a_code_of_ours_is_asked_of_who_turned_it_on(new_browser: MakeBrowser, session: Session) -> None:
    assert sign_in(new_browser()).status_code == 303, "who has none is asked for none"
    with_second_factor(session)
    browser = new_browser()

    answer = sign_in(browser)

    assert answer.status_code == 200
    assert 'name="ticket"' in answer.text
    assert who(browser) == ""


def codes_step(browser: Browser, session: Session) -> str:
    """The page that asks for a code of ours, after a sign-in by the provider; gives its ticket."""
    sign_in(browser)
    with_second_factor(session)
    browser.client.cookies.clear()
    page = sign_in(browser).text
    found = re.search(r'name="ticket" value="([^"]+)"', page)
    assert found, page
    return found[1]


def give_code(browser: Browser, ticket: str) -> Response:
    code = pyotp.TOTP(TOTP).now()
    return browser.send("/sign-in/code", page="/sign-in", ticket=ticket, code=code, next="/")


@wanting(require_second_factor=True)
@pytest.mark.parametrize(("is_asked_there", "token"), [(True, 201), (False, 422)])
def test_a_code_of_ours_proves_no_more_than_the_provider_said(
    browser: Browser, provider: Provider, session: Session, is_asked_there: bool, token: int
) -> None:
    provider.with_auth_time = is_asked_there
    ticket = codes_step(browser, session)

    assert give_code(browser, ticket).status_code == 303

    made = browser.send("/account/tokens", page="/account", name="t", scope="read", days="7")
    assert made.status_code == token
    last = session.scalars(
        select(Entry).where(Entry.action == Action.SIGNED_IN).order_by(Entry.id.desc())
    ).first()
    assert last is not None
    assert last.details["by"] == "Example Works"


@wanting(require_second_factor=True)
@pytest.mark.parametrize("part", [2, 3])
def test_what_the_codes_page_hands_back_cannot_be_changed(
    browser: Browser, provider: Provider, session: Session, part: int
) -> None:
    provider.with_auth_time = False
    parts = codes_step(browser, session).split(".")
    parts[part] = {2: "p", 3: "1"}[part]

    assert give_code(browser, ".".join(parts)).headers["location"].endswith("/sign-in")
    assert who(browser) == ""


@wanting(require_second_factor=True, oidc_allowed_groups=("staff",))
def test_who_is_turned_away_does_not_come_in_by_a_code_that_was_asked_for_before(
    browser: Browser, new_browser: MakeBrowser, provider: Provider, session: Session
) -> None:
    provider.person["groups"] = ["staff"]
    ticket = codes_step(browser, session)
    provider.person["groups"] = []
    assert sign_in(new_browser()).status_code == 403

    assert give_code(browser, ticket).headers["location"].endswith("/sign-in")
    assert who(browser) == ""


def test_being_signed_in_there_proves_less_than_the_password(
    new_browser: MakeBrowser, provider: Provider
) -> None:
    provider.with_auth_time = False
    browser = new_browser()
    sign_in(browser)
    refused = browser.send("/account/tokens", page="/account", name="t", scope="read", days="7")
    assert refused.status_code == 422

    page = browser.send("/account/organisation/prove", page="/account")
    assert {"prompt=login", "max_age=0"} <= set(page.headers["refresh"].split("&"))
    silent = browser.get(way_back(sent_on(page)))
    provider.with_auth_time = True
    page = browser.send("/account/organisation/prove", page="/account")
    proved = browser.get(way_back(sent_on(page)))

    assert (silent.status_code, proved.status_code) == (403, 303)
    made = browser.send("/account/tokens", page="/account", name="t", scope="read", days="7")
    assert made.status_code == 201


def test_who_has_no_password_is_asked_for_none_and_reads_where_to_prove_it(
    new_browser: MakeBrowser, session: Session
) -> None:
    browser, by_password = new_browser(), new_browser()
    sign_in(browser)
    user = session.scalars(select(User)).one()
    user.role = Role.ADMIN
    other = account(session, "grace@example.org", role="admin")
    by_password.sign_in(other.email)
    session.execute(update(LoginSession).values(proved_at=utc_now() - timedelta(hours=1)))
    session.commit()

    for path in ("/account", "/account/second-factor", "/people", f"/people/{other.id}"):
        page = browser.get(path)
        assert page.status_code == 200
        assert 'type="password"' not in page.text, path
        assert '/account#organisation">Prove by Example Works that it is you</a>' in page.text, path
    assert 'name="current" type="password"' in by_password.get("/people").text
    refused = browser.send("/account/tokens", page="/account", name="t", scope="read", days="7")
    assert refused.status_code == 422
    assert "Prove once more who you are to do this" in refused.text
    assert "Give your password" not in refused.text
