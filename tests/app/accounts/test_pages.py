"""Signing in and out, invitations, people and one's own account, as a browser meets them."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.models import LoginSession, Role, User
from app.accounts.signing import own_path
from app.clock import utc_now
from app.db import Database
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import HTML, Browser
from tests.factories import PASSWORD


def test_signing_in_sets_a_cookie_that_scripts_cannot_read(browser: Browser, ada: User) -> None:
    answer = browser.sign_in(ada.email)

    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("clarinet=")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    assert browser.get("/account").status_code == 200


def test_https_has_a_secure_cookie_of_this_host_only(
    settings: Settings, database: Database, ada: User
) -> None:
    secure = settings.model_copy(update={"public_url": "https://clarinet.example.org"})
    app = create_app(secure, database=database, publish=lambda _: None)
    with TestClient(app, base_url="https://clarinet.example.org", follow_redirects=False) as client:
        answer = client.post("/sign-in", data={"email": ada.email, "password": PASSWORD})

        assert answer.headers["set-cookie"].startswith("__Host-clarinet=")
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        assert client.get("/api/v1/me").json()["email"] == ada.email


def test_the_plain_cookie_does_not_count_on_https(
    settings: Settings, database: Database, session: Session, ada: User
) -> None:
    """A page on a neighbouring host may plant a cookie without the prefix."""
    secret = service.start_session(session, ada, now=utc_now())
    session.commit()
    secure = settings.model_copy(update={"public_url": "https://clarinet.example.org"})
    app = create_app(secure, database=database, publish=lambda _: None)
    with TestClient(app, base_url="https://clarinet.example.org", cookies={"clarinet": secret}) as client:
        assert client.get("/api/v1/me").status_code == 401


def test_a_wrong_password_says_no_more_than_an_unknown_address(browser: Browser, ada: User) -> None:
    wrong = browser.sign_in(ada.email, "not the password")
    unknown = browser.sign_in("nobody@example.org", "not the password")

    assert wrong.status_code == unknown.status_code == 422
    assert "do not belong together" in wrong.text
    assert wrong.text.replace(ada.email, "nobody@example.org") == unknown.text
    assert "set-cookie" not in wrong.headers


def test_signing_in_changes_the_session(browser: Browser, ada: User, grace: User) -> None:
    """A planted or forgotten session must not become the one of the person who signs in next."""
    browser.sign_in(grace.email)
    old = browser.cookie
    token = re.search(r'name="csrf-token" content="([^"]+)"', browser.get("/account").text)
    assert token

    browser.client.post(
        "/sign-in",
        data={"email": ada.email, "password": PASSWORD, "csrf_token": token[1]},
        headers=HTML,
    )

    assert browser.cookie != old
    assert browser.client.get("/api/v1/me").json()["email"] == ada.email
    browser.client.cookies.clear()
    browser.client.cookies.set("clarinet", old)
    assert browser.client.get("/api/v1/me").status_code == 401


def test_a_session_id_that_somebody_chose_is_never_used(browser: Browser, ada: User) -> None:
    browser.client.cookies.set("clarinet", "chosen-by-an-attacker")

    answer = browser.client.post("/sign-in", data={"email": ada.email, "password": PASSWORD}, headers=HTML)

    assert answer.status_code == 303
    assert "chosen-by-an-attacker" not in answer.headers["set-cookie"]
    browser.client.cookies.clear()
    browser.client.cookies.set("clarinet", "chosen-by-an-attacker")
    assert browser.client.get("/api/v1/me").status_code == 401


def test_no_other_site_signs_its_visitors_in(browser: Browser, ada: User) -> None:
    answer = browser.client.post(
        "/sign-in",
        data={"email": ada.email, "password": PASSWORD},
        headers={"Origin": "https://evil.example"},
    )

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_signing_out_ends_the_session_on_the_server(browser: Browser, ada: User) -> None:
    browser.sign_in(ada.email)
    old = browser.cookie

    assert browser.send("/sign-out", page="/account").status_code == 303

    browser.client.cookies.set("clarinet", old)
    assert browser.client.get("/api/v1/me").status_code == 401


def test_an_expired_session_leads_back_to_signing_in(browser: Browser, session: Session, ada: User) -> None:
    browser.sign_in(ada.email)
    row = session.scalars(select(LoginSession).where(LoginSession.user_id == ada.id)).one()
    row.expires_at = utc_now() - timedelta(seconds=1)
    session.commit()

    answer = browser.get("/account?tab=tokens")

    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Faccount%3Ftab%3Dtokens"


def test_signing_in_goes_on_where_one_wanted_to_go(browser: Browser, ada: User) -> None:
    assert browser.sign_in(ada.email, next="/account?tab=tokens").headers["location"] == "/account?tab=tokens"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example/",
        "/\n/evil.example/",
        "\x00/",
        "javascript:alert(1)",
        "evil.example",
        "",
    ],
)
def test_signing_in_never_leads_elsewhere(browser: Browser, ada: User, target: str) -> None:
    assert own_path(target) == "/"
    assert browser.sign_in(ada.email, next=target).headers["location"] == "/"


def test_guessing_passwords_is_stopped_even_for_the_right_one(browser: Browser, ada: User) -> None:
    answers = [browser.sign_in(ada.email, "not the password").status_code for _ in range(10)]

    last = browser.sign_in(ada.email)

    assert set(answers) == {422}
    assert last.status_code == 429
    assert 0 < int(last.headers["retry-after"]) <= 15 * 60
    assert "Too many attempts" in last.text


def test_the_home_page_is_where_the_work_is(browser: Browser, ada: User, grace: User) -> None:
    assert browser.get("/").headers["location"].endswith("/sign-in")
    browser.sign_in(grace.email)
    assert browser.get("/").headers["location"].endswith("/annotate")
    browser.send("/sign-out", page="/account")
    browser.sign_in(ada.email)
    assert browser.get("/").headers["location"].endswith("/campaigns")


def test_an_invited_person_comes_in(new_browser: Callable[[], Browser], ada: User) -> None:
    admin, guest = new_browser(), new_browser()
    admin.sign_in(ada.email)
    page = admin.send("/people/invitations", page="/people", note="Grace <b>Hopper</b>", role="annotator")
    link = re.search(r'value="http://127.0.0.1:8000(/invitations/[^"]+)"', page.text)
    assert link
    assert "Grace &lt;b&gt;Hopper" in page.text
    assert link[1] not in admin.get("/people").text  # shown once

    assert "Grace &lt;b&gt;Hopper" in guest.get(link[1]).text
    answer = guest.send(link[1], page=link[1], name="Grace", email="grace@example.org", password=PASSWORD)

    assert answer.status_code == 303
    me = guest.client.get("/api/v1/me").json()
    assert (me["email"], me["role"]) == ("grace@example.org", "annotator")
    assert new_browser().get(link[1]).status_code == 404


def test_a_refused_invitation_form_says_why_and_keeps_the_rest(
    browser: Browser, session: Session, ada: User
) -> None:
    _, secret = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=utc_now())
    session.commit()
    path = f"/invitations/{secret}"

    page = browser.send(path, page=path, name="Grace", email="not an address", password="short")

    assert page.status_code == 422
    assert "does not look like an e-mail address" in page.text
    assert "at least 10 characters" in page.text
    assert 'value="Grace"' in page.text
    assert "short" not in re.findall(r'value="([^"]*)"', page.text)
    taken = browser.send(path, page=path, name="Grace", email=ada.email, password=PASSWORD)
    assert taken.status_code == 422
    assert "already an account" in taken.text


def test_a_withdrawn_link_is_dead(new_browser: Callable[[], Browser], ada: User) -> None:
    admin = new_browser()
    admin.sign_in(ada.email)
    page = admin.send("/people/invitations", page="/people", note="Eve", role="annotator").text
    link = re.search(r'value="http://127.0.0.1:8000(/invitations/[^"]+)"', page)
    withdraw = re.search(r'action="(/people/invitations/[^"]+/withdraw)"', page)
    assert link
    assert withdraw

    assert admin.send(withdraw[1], page="/people").status_code == 303

    assert new_browser().get(link[1]).status_code == 404


def test_people_are_disabled_and_enabled(
    new_browser: Callable[[], Browser], session: Session, ada: User, grace: User
) -> None:
    service.simulated_annotator(session, "Robot 1", by=ada, now=utc_now())
    session.commit()
    admin, other = new_browser(), new_browser()
    admin.sign_in(ada.email)
    other.sign_in(grace.email)
    assert "Simulated" in admin.get("/people").text

    admin.send(f"/people/{grace.id}/change", page="/people", act="disable")
    assert other.client.get("/api/v1/me").status_code == 401
    assert "Disabled" in admin.get("/people").text

    admin.send(f"/people/{grace.id}/change", page="/people", act="enable")
    assert other.sign_in(grace.email).status_code == 303


def test_names_with_control_characters_are_refused(browser: Browser, session: Session) -> None:
    _, secret = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=utc_now())
    session.commit()
    path = f"/invitations/{secret}"

    for name, email in (
        ("a\x00b", "x@example.org"),
        ("a", "x\x00@example.org"),
        ("a\x1b[31m", "y@example.org"),
    ):
        assert browser.send(path, page=path, name=name, email=email, password=PASSWORD).status_code == 422
    assert browser.sign_in("a\x00@example.org").status_code == 422


def test_a_token_is_shown_once_and_revoked(browser: Browser, ada: User) -> None:
    browser.sign_in(ada.email)
    page = browser.send("/account/tokens", page="/account", name="upload script").text
    secret = re.search(r'value="(clt_[^"]+)"', page)
    revoke = re.search(r'action="(/account/tokens/[^"]+/revoke)"', page)
    assert secret
    assert revoke
    account = browser.get("/account").text
    assert secret[1] not in account
    assert re.search(
        r"<td>(Look at what I may look at|Answer questions|Do all that I may, but [a-z ]+)</td>", account
    )
    assert re.search(
        r'id="sessions".*<td><time datetime="[^"]+">\d{4}-\d\d-\d\d \d\d:\d\d UTC</time>', account, re.DOTALL
    )
    program = {"Authorization": f"Bearer {secret[1]}"}
    browser.client.cookies, cookies = type(browser.client.cookies)(), browser.client.cookies
    assert browser.client.get("/api/v1/me", headers=program).status_code == 200

    browser.client.cookies = cookies
    browser.send(revoke[1], page="/account")

    browser.client.cookies.clear()
    assert browser.client.get("/api/v1/me", headers=program).status_code == 401


def test_a_revoked_token_does_not_fall_back_on_the_cookie(browser: Browser, ada: User) -> None:
    browser.sign_in(ada.email)

    assert browser.client.get("/api/v1/me", headers={"Authorization": "Bearer clt_old"}).status_code == 401


def test_changing_the_password_needs_the_present_one(new_browser: Callable[[], Browser], grace: User) -> None:
    here, there = new_browser(), new_browser()
    here.sign_in(grace.email)
    there.sign_in(grace.email)

    refused = here.send("/account/password", page="/account", current="a guess", password="another long one")
    assert refused.status_code == 422
    assert there.get("/account").status_code == 200

    done = here.send("/account/password", page="/account", current=PASSWORD, password="another long one")
    assert done.status_code == 303
    assert here.get("/account").status_code == 200
    assert there.get("/account").status_code == 303
    assert there.sign_in(grace.email).status_code == 422
    assert there.sign_in(grace.email, "another long one").status_code == 303


def test_a_right_password_on_the_account_page_gives_the_attempts_back(browser: Browser, grace: User) -> None:
    browser.sign_in(grace.email)
    old, new = PASSWORD, "another long one"
    for _ in range(12):
        done = browser.send("/account/password", page="/account", current=old, password=new)
        assert done.status_code == 303
        old, new = new, old


def test_an_invitation_names_our_public_address_and_no_other(browser: Browser, ada: User) -> None:
    browser.sign_in(ada.email)
    browser.client.headers["Host"] = "evil.example"
    browser.client.headers["Origin"] = "http://evil.example"

    page = browser.send("/people/invitations", page="/people", note="Eve", role="annotator")

    assert 'value="http://127.0.0.1:8000/invitations/' in page.text
    assert browser.get("/").headers["location"] == "/campaigns"


@pytest.mark.parametrize("kind", ["invitations", "password"])
def test_one_time_links_stay_out_of_the_logs(
    app: FastAPI, browser: Browser, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    from app.logs import configure_logs

    configure_logs(app.state.settings)
    browser.get(f"/{kind}/very-secret-link")

    logged = capsys.readouterr().err
    assert f"/{kind}/..." in logged
    assert "very-secret-link" not in logged
