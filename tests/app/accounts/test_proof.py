"""What needs the password again, weak passwords, sessions, and what is noted of them, as browsers meet it."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.accounts import service
from app.accounts.errors import WeakPassword
from app.accounts.models import LoginSession, Role, User
from app.accounts.signing import browser_of
from app.accounts.strength import refuse_weak
from app.clock import utc_now
from app.journal.models import Action, Entry
from app.journal.service import naming
from tests.app.accounts.conftest import HTML, Browser, in_person
from tests.factories import PASSWORD


def forget_proof(session: Session) -> None:
    """As if everybody's password was given an hour ago."""
    session.execute(update(LoginSession).values(proved_at=utc_now() - timedelta(hours=1)))
    session.commit()


def test_a_token_needs_a_fresh_password(browser: Browser, session: Session, ada: User) -> None:
    browser.sign_in(ada.email)
    assert "token-current" not in browser.get("/account").text
    forget_proof(session)

    page = browser.get("/account").text
    assert 'id="token-current"' in page
    for given, words in (
        ({}, "last sign-in is too long ago"),
        ({"current": "a guess"}, "not your present password"),
    ):
        refused = browser.send("/account/tokens", page="/account", name="script", **given)
        assert refused.status_code == 422
        assert words in refused.text
        assert "clt_" not in refused.text
        assert 'value="script"' in refused.text
    made = browser.send(
        "/account/tokens", page="/account", name="script", scope="read", days="7", current=PASSWORD
    )
    assert made.status_code == 201
    assert "clt_" in made.text
    assert browser.send("/account/tokens", page="/account", name="another").status_code == 201  # proved again


def test_making_admins_needs_a_fresh_password(
    browser: Browser, session: Session, ada: User, grace: User
) -> None:
    browser.sign_in(ada.email)
    forget_proof(session)
    person = f"/people/{grace.id}"

    refused = browser.send("/people/invitations", page="/people", role="admin", note="Eve")
    assert refused.status_code == 422
    assert "/invitations/" not in "".join(re.findall(r'value="(http[^"]+)"', refused.text))
    assert browser.send("/people/invitations", page="/people", role="annotator").status_code == 201
    assert browser.send(f"{person}/change", page=person, act="admin").status_code == 422
    assert not session.get_one(User, grace.id, populate_existing=True).is_admin
    assert browser.send(f"{person}/change", page=person, act="admin", current=PASSWORD).status_code == 303
    assert session.get_one(User, grace.id, populate_existing=True).is_admin

    forget_proof(session)
    for act in ("password-link", "no-second-factor"):
        assert browser.send(f"{person}/change", page=person, act=act).status_code == 422
    assert (
        browser.send(f"{person}/change", page=person, act="annotator").status_code == 303
    )  # takes, gives nothing


def test_the_api_takes_a_proof(app: FastAPI, session: Session, ada: User, grace: User) -> None:
    client = in_person(app, session, ada)
    forget_proof(session)
    refused = client.post("/api/v1/tokens", json={"name": "script"})
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/proof-needed")
    assert client.patch(f"/api/v1/users/{grace.id}", json={"role": "admin"}).status_code == 403

    assert client.post("/api/v1/me/proof", json={"password": "a guess"}).status_code == 401
    assert client.post("/api/v1/tokens", json={"name": "script"}).status_code == 403
    assert client.post("/api/v1/me/proof", json={"password": PASSWORD}).status_code == 204

    assert client.post("/api/v1/tokens", json={"name": "script"}).status_code == 201
    assert client.patch(f"/api/v1/users/{grace.id}", json={"role": "admin"}).json()["role"] == "admin"


def test_sessions_are_listed_and_ended_by_their_owner(
    new_browser: Callable[[], Browser], grace: User
) -> None:
    here, there = new_browser(), new_browser()
    there.client.headers["User-Agent"] = "Old phone <b>\x07"
    there.sign_in(grace.email)
    here.sign_in(grace.email)
    page = here.get("/account").text
    assert "Old phone &lt;b&gt;<" in page
    assert "testclient" in page
    ends = re.findall(r'action="(/account/sessions/[^"]+/end)"', page)
    assert len(ends) == 1  # not the one that looks

    assert here.send(ends[0], page="/account").status_code == 303

    assert there.get("/account").status_code == 303
    assert here.get("/account").status_code == 200
    (left,) = here.client.get("/api/v1/sessions").json()["items"]
    assert left["is_this"]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537 Chrome/156.0 Safari/537",
            "Chrome, Linux",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Safari/604.1",
            "Safari, iPhone",
        ),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/131.0 Safari/537.36 Edg/131.0", "Edge, Windows"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("x\x00y" + "z" * 100, "xy" + "z" * 58),
        ("", ""),
    ],
)
def test_browsers_are_called_as_people_call_them(header: str, name: str) -> None:
    assert browser_of(header) == name


def test_an_admin_looks_after_a_persons_way_in(
    new_browser: Callable[[], Browser], session: Session, ada: User, grace: User
) -> None:
    admin, other = new_browser(), new_browser()
    admin.sign_in(ada.email)
    other.sign_in(grace.email)
    _, secret = service.create_token(session, grace, "upload <i>", now=utc_now())
    session.commit()
    person = f"/people/{grace.id}"
    page = admin.get(person).text
    assert "upload &lt;i&gt;" in page
    revoke = re.search(rf'action="({person}/tokens/[^"]+/revoke)"', page)
    assert revoke
    assert other.get(person).status_code == 403

    admin.send(revoke[1], page=person)
    admin.send(f"{person}/change", page=person, act="sign-out")

    assert other.client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert other.get("/account").status_code == 303
    assert other.sign_in(grace.email).status_code == 303
    assert admin.send(f"{person}/change", page=person, act="nonsense").status_code == 422


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("short", "at least 10"),
        ("zzzzzzzzzzzzz", "again and again"),
        ("          ", "again and again"),
        ("password123", "among the first"),
        ("qwertyuiop", "among the first"),
        ("1234567890", "among the first"),
        ("1q2w3e4r5t", "among the first"),
        ("abcabcabcabc", "among the first"),
        ("Gr4ce H0pper", ""),
        ("GraceHopper1906", "made of a name or word"),
        ("hopper.grace@navy", "made of a name or word"),
        ("Clarinet2026!", "among the first"),
        ("clarinet-admin", "among the first"),
        ("admin admin admin", "among the first"),
        ("grace@navy.example.org", "made of a name or word"),
        ("January2026!!", "month, season or day"),
        ("Sommer-2026-", "month, season or day"),
        ("otoño 2025 otoño", "month, season or day"),
        ("Shop photos 26", "made of a name or word"),
        ("a mild day in may, no rain", ""),
        ("correct horse battery", ""),
        ("correct horse battery staple", "among the first"),
        ("CorrectHorseBatteryStaple1", "among the first"),
        ("qwertzuiop123", "among the first"),
        ("asdfghjklö12", "among the first"),
        ("пароль123456", "among the first"),  # noqa: RUF001
        ("йцукенгшщз1", "among the first"),  # noqa: RUF001
        ("Contraseña2026", "among the first"),
        ("geheimnisvoller Garten", ""),
        ("wzdlfkjhqpxm", ""),
        ("73528190462857", ""),
        ("Zürich im Nebel, 7 Uhr", ""),
        ("x" * 500 + "y", "among the first"),
    ],
)
def test_passwords_that_others_guess_are_refused(password: str, words: str) -> None:
    context = ("Grace Hopper", "grace@navy.example.org", "Shop photos")
    if not words:
        refuse_weak(password, context)
        return
    with pytest.raises(WeakPassword) as refused:
        refuse_weak(password, context)
    assert words in refused.value.detail


def test_weak_passwords_are_refused_beside_their_field(
    new_browser: Callable[[], Browser], session: Session, grace: User
) -> None:
    browser, guest = new_browser(), new_browser()
    browser.sign_in(grace.email)
    _, secret = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=utc_now())
    _, other = service.make_password_link(session, grace, by=None, now=utc_now())
    session.commit()

    for page in (
        browser.send("/account/password", page="/account", current=PASSWORD, password="qwertyuiop"),
        guest.send(
            f"/invitations/{secret}",
            page=f"/invitations/{secret}",
            name="Eve",
            email="eve@example.org",
            password="qwertyuiop",
        ),
        guest.send(f"/password/{other}", page=f"/password/{other}", password="qwertyuiop"),
    ):
        assert page.status_code == 422
        assert 'id="password-error"' in page.text


def test_what_concerns_security_is_in_the_journal_with_its_address(
    new_browser: Callable[[], Browser], session: Session, ada: User, grace: User
) -> None:
    admin, other = new_browser(), new_browser()
    admin.sign_in(ada.email)
    other.sign_in(grace.email, "wrong password")
    other.sign_in("nobody@example.org", "wrong password")
    other.sign_in(grace.email)
    other.send("/sign-out", page="/account")
    admin.send("/account/tokens", page="/account", name="script")
    admin.send("/people/invitations", page="/people", note="Eve", role="annotator")
    person = f"/people/{grace.id}"
    for act in ("password-link", "admin", "annotator", "disable", "enable"):
        admin.send(f"{person}/change", page=person, act=act)

    lines = session.scalars(select(Entry).where(Entry.address != "").order_by(Entry.id)).all()

    assert [line.action for line in lines] == [
        Action.SIGNED_IN,
        Action.SIGN_IN_REFUSED,
        Action.SIGN_IN_REFUSED,
        Action.SIGNED_IN,
        Action.SIGNED_OUT,
        Action.TOKEN_MADE,
        Action.INVITATION_MADE,
        Action.PASSWORD_LINK_MADE,
        Action.ROLE_CHANGED,
        Action.ROLE_CHANGED,
        Action.ACCOUNT_DISABLED,
        Action.ACCOUNT_ENABLED,
    ]
    assert {line.address for line in lines} == {"testclient"}
    assert [line.details for line in lines[1:3]] == [naming(grace), {"account": "unknown"}]
    assert "@" not in str([line.details for line in lines])
    page = admin.client.get("/journal", headers=HTML).text
    assert "Sign in refused" in page
    assert "testclient" in page


def test_the_log_says_who_and_from_where(
    app: FastAPI, new_browser: Callable[[], Browser], capsys: pytest.CaptureFixture[str], grace: User
) -> None:
    from app.logs import configure_logs

    configure_logs(app.state.settings.model_copy(update={"log_format": "json"}))
    browser = new_browser()
    browser.sign_in(grace.email)
    browser.get("/account")

    logged = capsys.readouterr().err
    signed_in = next(line for line in logged.splitlines() if "journal.signed-in" in line)
    assert str(grace.id) in signed_in
    assert '"address": "testclient"' in signed_in
    looked = next(line for line in logged.splitlines() if '"path": "/account"' in line)
    assert str(grace.id) in looked
    assert '"address": "testclient"' in looked
    assert grace.email not in logged
