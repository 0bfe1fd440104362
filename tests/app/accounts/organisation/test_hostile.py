"""What a stranger, or a provider that echoes strangers, tries at a sign-in by the provider."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from app.accounts.models import User
from app.clock import utc_now
from tests.app.accounts.conftest import Browser
from tests.app.accounts.organisation.conftest import sign_in, way_back, who
from tests.app.accounts.organisation.test_accounts import account, again, wanting
from tests.provider import Claims, Provider

MakeBrowser = Callable[[], Browser]
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")
ELSEWHERE = [
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\r\nSet-Cookie: a=b",
    "https://evil.example/",
    "javascript:alert(1)",
    " //evil.example",
    "///evil.example",
    "/\x00/evil.example",
    "/\u2028/evil.example",
]


@pytest.mark.parametrize("target", ELSEWHERE, ids=range(len(ELSEWHERE)))
def test_a_sign_in_leads_nowhere_but_to_us(browser: Browser, target: str) -> None:
    answer = sign_in(browser, f"/sign-in/organisation?next={quote(target, safe='')}")

    assert answer.headers["location"] == "/"
    assert "a=b" not in answer.headers.get("set-cookie", "")


def test_a_long_way_back_still_fits_into_a_cookie(browser: Browser) -> None:
    """Browsers drop a cookie of more than 4096 bytes, name and attributes included."""
    answer = browser.get("/sign-in/organisation?next=/" + quote("é" * 1400))

    assert len(answer.headers["set-cookie"]) < 4096
    assert browser.get(way_back(answer)).status_code == 303


@wanting(public_url="https://testserver")
def test_behind_a_proxy_that_speaks_tls_the_cookie_is_for_https_and_this_host_alone(browser: Browser) -> None:
    """The proxy speaks plain http to us."""
    cookie = browser.get("/sign-in/organisation").headers["set-cookie"]

    assert cookie.startswith("__Host-clarinet-organisation=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Domain=" not in cookie


def test_anothers_answer_does_not_end_a_sign_in_on_its_way(browser: Browser) -> None:
    back = way_back(browser.get("/sign-in/organisation"))

    assert browser.get("/sign-in/organisation/back?state=0&code=0").status_code == 409
    assert browser.get(back).status_code == 303


@wanting(oidc_link_by_email=True)
def test_an_address_is_not_folded_into_anothers(
    browser: Browser, provider: Provider, session: Session
) -> None:
    user = account(session, "kim@example.org")
    provider.person["email"] = "\u212aim@example.org"  # a Kelvin sign, whose lower case is k

    assert (sign_in(browser).status_code, who(browser)) == (403, "")
    assert again(session, user).password_hash is not None


@wanting(oidc_allowed_domains=("example.org",))
def test_an_address_is_not_cut_until_its_domain_may_come(
    browser: Browser, provider: Provider, session: Session
) -> None:
    provider.person["email"] = "a" * 242 + "@example.org.evil.example"

    assert sign_in(browser).status_code == 403
    assert session.scalar(select(func.count()).select_from(User)) == 0


def test_a_provider_that_signs_by_nothing_that_we_take_lets_nobody_in(
    browser: Browser, provider: Provider
) -> None:
    """No algorithm at all is to the library: whatever it recommends, HS256 among them."""
    provider.says = {"id_token_signing_alg_values_supported": ["HS256", "none"]}

    answer = sign_in(browser)

    assert answer.status_code == 503
    assert "it signs by no algorithm of RS256" in answer.text


@pytest.mark.parametrize("end", ["\r\nSet-Cookie: a=b", "\n", " ; url=https://evil.example", "/é"])
def test_an_address_of_the_provider_that_would_break_a_header_is_refused(
    browser: Browser, provider: Provider, end: str
) -> None:
    provider.says = {"authorization_endpoint": f"{provider.issuer}/authorize{end}"}

    answer = browser.get("/sign-in/organisation")

    assert answer.status_code == 503
    assert "no usable authorization_endpoint" in answer.text


MARK = "<img src=x onerror=alert(1)>"


def test_words_of_the_provider_are_text(new_browser: MakeBrowser, provider: Provider) -> None:
    provider.person |= {"name": MARK, "email": f"{MARK.replace(' ', '/')}@example.org"}
    browser = new_browser()
    assert sign_in(browser).status_code == 303
    shown = browser.get("/account").text
    provider.refuses = lambda _body: {"error": MARK, "error_description": MARK}
    refused = sign_in(new_browser()).text

    for page in (shown, refused):
        assert "onerror=alert(1)" in page  # it is told
        assert "<img" not in page


def test_the_log_holds_no_code_and_no_line_that_a_stranger_wrote(
    browser: Browser, provider: Provider
) -> None:
    def echo(body: Claims) -> Claims:
        return {
            "error": "invalid_grant",
            "error_description": f"Code {body['code']} \u201eungültig\u201c\r\nboss",
        }

    provider.refuses = echo
    back = way_back(browser.get("/sign-in/organisation"))

    with capture_logs() as lines:
        assert browser.get(back).status_code == 403

    code = back.partition("code=")[2].partition("&")[0]
    assert len(code) > 20
    [line] = [line for line in lines if line["event"] == "organisation.code_refused"]
    assert line["description"] == "Code (code)  ung ltig   boss"
    assert not [line for line in lines if code in str(line)]


@wanting(oidc_roles={"leads": "admin"})
def test_a_disabled_admin_is_not_the_last_one(
    new_browser: MakeBrowser, provider: Provider, session: Session
) -> None:
    """An admin who cannot come does not make it safe to take the role from the one who can."""
    provider.person["groups"] = ["leads"]
    sign_in(new_browser())
    account(session, "gone@example.org", role="admin").disabled_at = utc_now()
    session.commit()
    provider.person["groups"] = []

    assert sign_in(new_browser()).status_code == 303

    role = session.scalar(select(User.role).where(User.email == "ada@example.org"))
    assert role == "admin"
