"""An installation whose people sign in by a provider, and the way there and back."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from httpx2 import Response

from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.provider import CLIENT, SECRET, Provider

HOST = "http://testserver"
WEB = httpx2.Client(verify=False, limits=httpx2.Limits(max_keepalive_connections=0))


@pytest.fixture
def provider() -> Iterator[Provider]:
    """The provider, at a port of its own."""
    provider = Provider(f"{HOST}/sign-in/organisation/back")
    yield provider
    provider.stop()


@pytest.fixture
def wanted() -> dict[str, object]:
    """Further settings; tests give them by `parametrize`."""
    return {}


@pytest.fixture
def settings(settings: Settings, provider: Provider, wanted: dict[str, object]) -> Settings:
    """Of an installation that knows the provider."""
    given = settings.model_dump() | {
        "public_url": HOST,
        "oidc_issuer": provider.issuer,
        "oidc_name": "Example Works",
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
        "oidc_make_accounts": True,
    }
    return Settings(_env_file=None, **(given | wanted))


def way_back(answer: Response) -> str:
    """What the provider answers a browser that was sent there: the address of ours, with a code."""
    assert answer.status_code == 303, answer.text
    there = WEB.get(answer.headers["location"])
    assert there.status_code == 302, there.text
    back = urlsplit(there.headers["location"])
    return f"{back.path}?{back.query}"


def sign_in(browser: Browser, path: str = "/sign-in/organisation") -> Response:
    """To the provider and back."""
    return browser.get(way_back(browser.get(path)))


def sent_on(page: Response) -> Response:
    """Where a page of ours leads a browser by itself: to the provider, and back."""
    page.status_code, page.headers["location"] = 303, page.headers["refresh"].removeprefix("0; url=")
    return page


def who(browser: Browser) -> str:
    """The address of whoever is signed in; "" for nobody."""
    answer = browser.client.get("/api/v1/me")
    return str(answer.json()["email"]) if answer.is_success else ""
