"""Passwords that are switched off, the way back in, and settings that cannot work."""

import sys

import pytest
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.accounts.organisation.models import OrganisationIdentity
from app.accounts.organisation.opening import provider_of
from app.clock import utc_now
from app.errors import AppError
from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.app.accounts.organisation.conftest import sign_in, who
from tests.app.accounts.organisation.test_accounts import account, wanting
from tests.factories import PASSWORD

PASSWORDS_OFF = wanting(password_sign_in=False)


@PASSWORDS_OFF
def test_passwords_may_be_switched_off(browser: Browser, session: Session) -> None:
    user = account(session, role="admin")
    link, secret = accounts.invite(session, role=Role.ANNOTATOR, note="", by=user, now=utc_now())
    _, own = accounts.make_password_link(session, user, by=user, now=utc_now())
    session.commit()
    assert link

    assert 'name="password"' not in browser.get("/sign-in").text
    refused = browser.send("/sign-in", page="/sign-in", email=user.email, password=PASSWORD)
    assert refused.status_code == 403
    assert "Sign in with Example Works." in refused.text
    assert browser.get(f"/invitations/{secret}").status_code == 403
    assert browser.get(f"/password/{own}").status_code == 403


@PASSWORDS_OFF
def test_whoever_holds_the_database_comes_back_in_all_the_same(browser: Browser, session: Session) -> None:
    """What `clarinet user reset` prints, while the provider is down for good."""
    user = account(session, role="admin")
    _, secret = accounts.make_password_link(session, user, by=None, now=utc_now())
    session.commit()

    answer = browser.send(f"/password/{secret}", page="/sign-in", password="another long password")

    assert answer.status_code == 303
    assert who(browser) == user.email


@PASSWORDS_OFF
def test_nobody_unlinks_where_an_old_password_lets_nobody_in(browser: Browser, session: Session) -> None:
    sign_in(browser)
    user = session.scalars(select(User)).one()
    user.password_hash = accounts.hash_if_strong(PASSWORD)
    session.commit()

    assert "/account/organisation/unlink" not in browser.get("/account").text
    answer = browser.send("/account/organisation/unlink", page="/account")

    assert answer.status_code == 409
    assert "is the only way in here" in answer.text
    assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 1


PLAIN_HTTP: dict[str, object] = {
    "oidc_issuer": "http://id.example.org",
    "oidc_client_id": "c",
    "environment": "production",
    "session_secret": "0123456789abcdef0123456789abcdef",
}
REFUSED: list[tuple[dict[str, object], str]] = [
    ({"password_sign_in": False}, "CLARINET_OIDC_ISSUER must be set"),
    ({"oidc_issuer": "https://id.example.org"}, "CLARINET_OIDC_CLIENT_ID"),
    ({"oidc_issuer": "ldap://id", "oidc_client_id": "c"}, "https address"),
    (PLAIN_HTTP, "https address"),
    ({"oidc_issuer": "https://id.example.org", "oidc_client_id": "c", "oidc_scopes": "email"}, "openid"),
    ({"oidc_roles": {"leads": "owner"}}, "oidc_roles"),
]


@pytest.mark.parametrize(("given", "named"), REFUSED, ids=range(len(REFUSED)))
def test_settings_that_cannot_work_are_refused_at_the_start(given: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Settings(_env_file=None, **given)  # type: ignore[arg-type]


def test_what_is_not_installed_is_named_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "authlib", None)  # as if pip had not installed it
    needing = Settings(oidc_issuer="https://id.example.org", oidc_client_id="c", _env_file=None)

    assert provider_of(Settings(_env_file=None)) is None
    with pytest.raises(AppError, match=r"pip install clarinet\[oidc\]"):
        provider_of(needing)
