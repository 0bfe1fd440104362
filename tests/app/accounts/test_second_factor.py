"""The second factor, as browsers meet it."""

import re
from collections.abc import Callable
from datetime import timedelta

import pyotp
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.models import User
from app.clock import utc_now
from app.db import Database
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.factories import PASSWORD, make_token, make_user


def set_up(browser: Browser) -> pyotp.TOTP:
    """Turn the second factor on, as a person does."""
    page = browser.send("/account/second-factor", page="/account/second-factor")
    assert 'role="img" aria-label="The key as a QR code"><svg' in page.text
    secret = re.search(r"<code>([A-Z2-7 ]+)</code>", page.text)
    assert secret
    authenticator = pyotp.TOTP(secret[1].replace(" ", ""))
    wrong = browser.send("/account/second-factor/confirm", page="/account", code="000000")
    assert wrong.status_code == 422
    # The step before, so that the present one is left for signing in. It may end on the way: then once more.
    for _ in range(2):
        code = authenticator.at(utc_now() - timedelta(seconds=30))
        done = browser.send("/account/second-factor/confirm", page="/account", code=code)
        if done.status_code == 303:
            return authenticator
    pytest.fail(f"the second factor was not turned on: {done.status_code}")


def test_with_a_second_factor_the_password_alone_lets_nobody_in(
    new_browser: Callable[[], Browser], session: Session, ada: User
) -> None:
    here, there = new_browser(), new_browser()
    there.sign_in(ada.email)
    here.sign_in(ada.email)
    authenticator = set_up(here)
    assert there.get("/account").status_code == 303, "other browsers are signed out"

    step = there.sign_in(ada.email, next="/account")
    assert step.status_code == 200
    assert "set-cookie" not in step.headers
    ticket = re.search(r'name="ticket" value="([^"]+)"', step.text)
    assert ticket
    wrong = there.send("/sign-in/code", page="/sign-in", ticket=ticket[1], code="123456", next="/account")
    assert wrong.status_code == 422
    assert there.get("/account").status_code == 303
    code = authenticator.at(utc_now())
    done = there.send("/sign-in/code", page="/sign-in", ticket=ticket[1], code=code, next="/account")
    assert (done.status_code, done.headers["location"]) == (303, "/account")
    assert there.get("/account").status_code == 200

    again = new_browser()
    assert again.send("/sign-in/code", page="/sign-in", ticket=ticket[1], code=code).status_code == 422
    forged = ticket[1].replace(ada.id.hex, make_user(session, password=PASSWORD).id.hex)
    for bad in (forged, "", "x.y.z", ticket[1][:-1] + ("0" if ticket[1][-1] != "0" else "1")):
        answer = again.send("/sign-in/code", page="/sign-in", ticket=bad, code=code)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_the_active_key_is_never_shown_again(new_browser: Callable[[], Browser], ada: User) -> None:
    browser = new_browser()
    browser.sign_in(ada.email)
    secret = set_up(browser).secret
    shown = secret[:4] + " " + secret[4:8]

    for page in (
        browser.send("/account/second-factor/confirm", page="/account", code="000000"),
        browser.send("/account/second-factor", page="/account"),
        browser.get("/account/second-factor"),
    ):
        assert shown not in page.text
    assert browser.send("/account/second-factor/off", page="/account").status_code == 303
    assert new_browser().sign_in(ada.email).status_code == 303


def test_codes_cannot_be_guessed_for_long(new_browser: Callable[[], Browser], ada: User) -> None:
    here, there = new_browser(), new_browser()
    here.sign_in(ada.email)
    authenticator = set_up(here)
    ticket = re.search(r'name="ticket" value="([^"]+)"', there.sign_in(ada.email).text)
    assert ticket

    answers = [
        there.send("/sign-in/code", page="/sign-in", ticket=ticket[1], code="000001").status_code
        for _ in range(12)
    ]

    assert answers == [422] * 10 + [429] * 2
    right = there.send("/sign-in/code", page="/sign-in", ticket=ticket[1], code=authenticator.now())
    assert right.status_code == 429


def test_admins_can_be_made_to_have_one(
    settings: Settings, database: Database, session: Session, ada: User, grace: User
) -> None:
    app = create_app(
        settings.model_copy(update={"require_second_factor": True}), database=database, publish=lambda _: None
    )
    browser = Browser(TestClient(app, follow_redirects=False, raise_server_exceptions=False))
    _, token = service.create_token(session, ada, "script", now=utc_now())
    session.commit()
    program = {"Authorization": f"Bearer {token}"}
    browser.sign_in(ada.email)

    assert browser.get("/people").headers["location"].endswith("/account/second-factor")
    refused = TestClient(app).get("/api/v1/users", headers=program)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/second-factor-needed")
    set_up(browser)
    assert browser.get("/people").status_code == 200
    assert TestClient(app).get("/api/v1/users", headers=program).status_code == 200
    annotator = Browser(TestClient(app, follow_redirects=False))
    annotator.sign_in(grace.email)
    assert annotator.get("/annotate").status_code == 200
    reviewer = {"Authorization": f"Bearer {make_token(session, make_user(session, role='reviewer'))}"}
    assert TestClient(app).get("/campaigns", headers=reviewer).json()["type"] == refused.json()["type"]


def test_an_admin_takes_a_lost_second_factor_away(
    new_browser: Callable[[], Browser], ada: User, grace: User
) -> None:
    admin, other = new_browser(), new_browser()
    admin.sign_in(ada.email)
    other.sign_in(grace.email)
    set_up(other)
    person = f"/people/{grace.id}"

    assert admin.send(f"{person}/change", page=person, act="no-second-factor").status_code == 303

    assert new_browser().sign_in(grace.email).status_code == 303
