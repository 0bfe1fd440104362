"""Signing in by an organisation's account, at a real provider over HTTP."""

import base64
import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import OctKey
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.accounts import limits
from app.accounts.models import LoginSession, User
from app.accounts.organisation import fetching
from app.accounts.organisation.models import OrganisationIdentity
from app.journal.models import Action, Entry
from tests.app.accounts.conftest import HTML, Browser
from tests.app.accounts.organisation.conftest import sign_in, way_back, who
from tests.provider import CLIENT, Claims, Provider, unsigned

MakeBrowser = Callable[[], Browser]
# Which rows come of it, test_accounts asks on both databases.
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")


def test_somebody_new_gets_an_account_and_comes_again_by_it(
    new_browser: MakeBrowser, provider: Provider, session: Session
) -> None:
    first, second = new_browser(), new_browser()

    answer = sign_in(first, "/sign-in/organisation?next=/account")

    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert who(first) == "ada@example.org"
    provider.person = provider.person | {"email": "lovelace@example.org", "name": "Another"}
    assert sign_in(second).status_code == 303
    assert who(second) == "ada@example.org"  # the subject counts, and no address
    [user] = session.scalars(select(User).where(User.email == "ada@example.org"))
    assert (user.name, user.role, user.password_hash) == ("Ada Lovelace", "annotator", None)
    actions = session.execute(
        select(Entry.action, Entry.details["by"].as_string()).where(Entry.by_id == user.id).order_by(Entry.id)
    ).all()
    assert actions == [
        (Action.ACCOUNT_MADE, None),
        (Action.ORGANISATION_LINKED, "first sign-in"),
        (Action.SIGNED_IN, "Example Works"),
        (Action.SIGNED_IN, "Example Works"),
    ]


def test_the_question_carries_pkce_state_and_nonce_and_the_secret_stays_here(
    browser: Browser, provider: Provider
) -> None:
    answer = browser.get("/sign-in/organisation")
    way_back(answer)

    asked = provider.last
    assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
    assert asked["code_challenge_method"] == "S256"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert asked["redirect_uri"] == "http://testserver/sign-in/organisation/back"
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Max-Age=900"} <= set(cookie.split("; "))
    assert not [value for value in (asked["state"], asked["nonce"]) if value in cookie]
    assert "no-store" in answer.headers["cache-control"]


def test_the_sign_in_page_offers_both_ways(browser: Browser) -> None:
    page = browser.get("/sign-in?next=/account").text

    assert "Sign in with Example Works" in page
    assert "/sign-in/organisation?next=%2Faccount" in page
    assert 'name="password"' in page


def test_an_answer_fits_only_the_browser_that_began(new_browser: MakeBrowser) -> None:
    """Login CSRF: a stranger's answer would sign the victim in as the stranger."""
    stranger, victim = new_browser(), new_browser()
    back = way_back(stranger.get("/sign-in/organisation"))

    without = victim.get(back)
    victim.get("/sign-in/organisation")
    with_another = victim.get(back)

    assert without.status_code == with_another.status_code == 409
    assert "begun in another browser" in without.text
    assert who(victim) == ""


@pytest.mark.parametrize("part", ["text", "seal"])
def test_a_forged_cookie_is_none(browser: Browser, part: str) -> None:
    back = way_back(browser.get("/sign-in/organisation"))
    cookie = browser.client.cookies["clarinet-organisation"].strip('"')
    text, _, seal = cookie.partition(".")
    forged = {"text": f"{text[:-6]}AAAA=.{seal}", "seal": f"{text}.{seal[:-2]}00"}[part]
    browser.client.cookies.clear()
    browser.client.cookies.set("clarinet-organisation", forged)

    assert browser.get(back).status_code == 409


def test_another_sites_page_begins_nothing(browser: Browser) -> None:
    answer = browser.client.get("/sign-in/organisation", headers=HTML | {"Sec-Fetch-Site": "cross-site"})

    assert answer.headers["location"].startswith("/sign-in?")
    assert "set-cookie" not in answer.headers


def test_an_answer_counts_once(browser: Browser, provider: Provider) -> None:
    back = way_back(browser.get("/sign-in/organisation"))
    cookie = browser.client.cookies["clarinet-organisation"]
    assert browser.get(back).status_code == 303

    browser.client.cookies.clear()
    browser.client.cookies.set("clarinet-organisation", cookie)
    again = browser.get(back)

    assert again.status_code == 409
    assert provider.asked.count("/token") == 1
    assert who(browser) == ""


def test_a_stolen_code_is_of_no_use_in_another_sign_in(new_browser: MakeBrowser) -> None:
    """PKCE: the thief's verifier is another."""
    victim, thief = new_browser(), new_browser()
    code = parse_qs(urlsplit(way_back(victim.get("/sign-in/organisation"))).query)["code"][0]
    own = parse_qs(urlsplit(way_back(thief.get("/sign-in/organisation"))).query)

    answer = thief.get(f"/sign-in/organisation/back?code={code}&state={own['state'][0]}")

    assert answer.status_code == 403
    assert "invalid_grant" in answer.text
    assert who(thief) == ""


def aged(claims: Claims) -> Claims:
    return claims | {"iat": claims["iat"] - 3600, "exp": claims["exp"] - 3600}


def ahead(claims: Claims) -> Claims:
    return claims | {"iat": claims["iat"] + 3600, "exp": claims["exp"] + 3600}


HOSTILE: dict[str, Callable[[Claims], Claims]] = {
    "invalid_claim nonce": lambda claims: claims | {"nonce": "another"},
    "missing_claim nonce": lambda claims: {k: v for k, v in claims.items() if k != "nonce"},
    "invalid_claim aud": lambda claims: claims | {"aud": "somebody-else"},
    "invalid_claim azp": lambda claims: claims | {"aud": [CLIENT, "other"], "azp": "other"},
    "invalid_claim iss": lambda claims: claims | {"iss": "https://elsewhere.example.org"},
    "expired_token exp": lambda claims: claims | {"exp": claims["iat"] - 600},
    "missing_claim exp": lambda claims: {k: v for k, v in claims.items() if k != "exp"},
    "invalid_claim sub": lambda claims: claims | {"sub": "\0"},
    "invalid_claim at_hash": lambda claims: claims | {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_token_that_is_not_for_this_sign_in_lets_nobody_in(
    browser: Browser, provider: Provider, session: Session, fault: str
) -> None:
    provider.twist = HOSTILE[fault]

    answer = sign_in(browser)

    assert answer.status_code == 403
    assert f"could not be trusted ({fault})" in answer.text
    assert 'name="password"' in answer.text
    assert who(browser) == ""
    assert session.scalar(select(func.count()).select_from(OrganisationIdentity)) == 0
    refused = session.scalars(select(Entry).where(Entry.action == Action.SIGN_IN_REFUSED)).one()
    assert refused.details["at"] == "organisation"


@pytest.mark.parametrize("shift", [aged, ahead])
def test_clocks_that_differ_are_named(
    browser: Browser, provider: Provider, shift: Callable[[Claims], Claims]
) -> None:
    provider.twist = shift

    answer = sign_in(browser)

    assert answer.status_code == 503
    assert re.search(r"are 3(59|60)\d seconds apart", answer.text)


def test_no_signature_and_anothers_signature_count_for_nothing(
    new_browser: MakeBrowser, provider: Provider
) -> None:
    provider.forge = unsigned
    none = sign_in(new_browser())
    provider.forge = lambda token: token[:-20] + "A" * 20
    broken = sign_in(new_browser())
    provider.forge = lambda token: token
    provider.rotate(keep=True)
    provider.shows = provider.shows[1:]  # the key that signs is not the provider's
    foreign = sign_in(new_browser())

    assert [answer.status_code for answer in (none, broken, foreign)] == [403, 403, 403]
    assert "bad_signature" in broken.text
    assert "unknown_key" in foreign.text


def test_a_secret_that_we_have_as_well_signs_nothing(browser: Browser, provider: Provider) -> None:
    def forge(token: str) -> str:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        key = OctKey.import_key(provider.secret)
        return jwt.encode({"alg": "HS256", "kid": provider.signs_with.kid}, claims, key, algorithms=["HS256"])

    provider.forge = forge

    assert sign_in(browser).status_code == 403


def test_keys_may_change_between_two_sign_ins(
    new_browser: MakeBrowser, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sign_in(new_browser()).status_code == 303
    provider.rotate(keep=False)

    at_once = sign_in(new_browser())  # anybody can name a key that is not known
    monkeypatch.setattr("app.accounts.organisation.provider.KEYS_AGAIN", timedelta(0))
    soon = sign_in(new_browser())

    assert (at_once.status_code, soon.status_code) == (403, 303)
    assert provider.asked.count("/keys") == 2


def test_the_provider_is_asked_about_itself_once(new_browser: MakeBrowser, provider: Provider) -> None:
    for _ in range(3):
        assert sign_in(new_browser()).status_code == 303

    assert provider.asked.count("/.well-known/openid-configuration") == 1
    assert provider.asked.count("/keys") == 1


def test_a_provider_that_is_down_leaves_the_password(
    browser: Browser, provider: Provider, grace: User
) -> None:
    provider.stop()

    answer = browser.get("/sign-in/organisation")

    assert answer.status_code == 503
    assert "Example Works does not answer at the moment" in answer.text
    assert 'name="password"' in answer.text
    assert browser.sign_in(grace.email).status_code == 303


def test_a_provider_that_goes_away_in_between_does_too(browser: Browser, provider: Provider) -> None:
    back = way_back(browser.get("/sign-in/organisation"))
    provider.stop()

    answer = browser.get(back)

    assert answer.status_code == 503
    assert "does not answer" in answer.text


def test_a_provider_that_hangs_keeps_nobody_waiting_for_long(
    browser: Browser, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "DEADLINE_S", 0.2)
    provider.delay_s = 10
    began = time.monotonic()

    answers = [browser.get("/sign-in/organisation") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [503] * 3
    assert time.monotonic() - began < 8  # one alone would take longer
    assert provider.asked == ["/.well-known/openid-configuration"]  # and not again for each who waits


def test_a_wrong_secret_is_the_operators_to_mend(browser: Browser, provider: Provider) -> None:
    provider.secret = "another"

    answer = sign_in(browser)

    assert answer.status_code == 503
    assert "CLARINET_OIDC_CLIENT_SECRET" in answer.text


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_secret_is_told_as_the_provider_wants_it(
    browser: Browser, provider: Provider, method: str
) -> None:
    provider.auth_method = method

    assert sign_in(browser).status_code == 303


def test_another_issuer_at_that_address_is_named(browser: Browser, provider: Provider) -> None:
    provider.says = {"issuer": "https://elsewhere.example.org"}

    answer = browser.get("/sign-in/organisation")

    assert answer.status_code == 503
    assert "https://elsewhere.example.org" in answer.text


def test_a_discovery_document_without_end_is_not_read(browser: Browser, provider: Provider) -> None:
    provider.says = {"padding": "x" * 2_000_000}

    assert browser.get("/sign-in/organisation").status_code == 503


def test_a_refusal_there_is_told_here(browser: Browser) -> None:
    location = browser.get("/sign-in/organisation").headers["location"]
    state = parse_qs(urlsplit(location).query)["state"][0]

    answer = browser.get(f"/sign-in/organisation/back?error=access_denied&error_description=x&state={state}")

    assert answer.status_code == 403
    assert "Example Works did not let you in (access_denied)" in answer.text


def test_the_answer_of_another_provider_is_refused(browser: Browser) -> None:
    """RFC 9207: mix-up."""
    back = way_back(browser.get("/sign-in/organisation"))

    answer = browser.get(f"{back}&iss=https%3A%2F%2Felsewhere.example.org")

    assert answer.status_code == 403
    assert "(iss)" in answer.text


def test_signing_in_changes_the_session(browser: Browser, grace: User, session: Session) -> None:
    browser.sign_in(grace.email)
    old = browser.cookie
    # As in another tab: the question was begun before.
    browser.client.cookies.delete("clarinet")
    back = way_back(browser.get("/sign-in/organisation"))
    browser.client.cookies.set("clarinet", old, domain="testserver.local", path="/")

    browser.get(back)

    assert session.scalar(select(func.count()).where(LoginSession.user_id == grace.id)) == 0


def test_an_installation_without_a_provider_offers_nothing(app: FastAPI, browser: Browser) -> None:
    app.state.organisation = None

    assert browser.get("/sign-in/organisation").status_code == 404
    assert browser.get("/sign-in/organisation/back?state=x").status_code == 404


def test_too_many_trips_from_one_place_are_refused(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TRIPS_PER_ADDRESS", limits.Limit(2, 60))
    statuses = [browser.get("/sign-in/organisation").status_code for _ in range(3)]

    assert statuses == [303, 303, 429]


def test_signing_out_offers_to_leave_the_provider_as_well(browser: Browser, provider: Provider) -> None:
    sign_in(browser)
    answer = browser.send("/sign-out", page="/account")
    assert answer.headers["location"] == "/sign-in?left=organisation"

    page = browser.get("/sign-in?left=organisation")
    there = browser.get("/sign-out/organisation")

    assert "Sign out of Example Works as well" in page.text
    assert who(browser) == ""
    url = urlsplit(there.headers["location"])
    assert url.path == "/end"
    assert parse_qs(url.query)["post_logout_redirect_uri"] == ["http://testserver/sign-in"]
    assert there.headers["location"].startswith(provider.issuer)
