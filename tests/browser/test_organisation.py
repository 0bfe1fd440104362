"""To the provider and back in a real browser: what it does with our cookies and our policy for forms."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import BrowserContext, expect

from app.db import Base, connect
from app.main import create_app
from app.settings import Settings
from tests.provider import CLIENT, SECRET, Provider

pytestmark = pytest.mark.browser


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Another site than ours, for the browser: it has another host."""
    provider = Provider("", host="localhost")
    yield provider
    provider.stop()


@pytest.fixture
def url(provider: Provider, tmp_path: Path) -> Iterator[str]:
    """The web process alone, at an address of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    settings = Settings(
        environment="test",
        data_dir=tmp_path,
        public_url=url,
        oidc_issuer=provider.issuer,
        oidc_name="Example Works",
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        oidc_make_accounts=True,
        _env_file=None,
    )
    provider.redirect_uri = f"{url}/sign-in/organisation/back"
    database = connect(settings.sqlalchemy_url)
    Base.metadata.create_all(database.engine)
    app = create_app(settings, database=database, publish=lambda _job: None)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield url
    server.should_exit = True
    thread.join()
    listening.close()
    database.dispose()


def test_a_person_signs_in_proves_it_and_leaves(desk: BrowserContext, url: str, provider: Provider) -> None:
    page = desk.new_page()
    provider.with_auth_time = False
    page.goto(f"{url}/account")

    page.get_by_role("link", name="Sign in with Example Works").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ada Lovelace")

    provider.with_auth_time = True
    page.get_by_role("button", name="Prove by Example Works that it is you").click()
    page.wait_for_url(f"{url}/account#organisation")
    expect(page.get_by_text("You sign in with Example Works as ada@example.org.")).to_be_visible()
    expect(page.get_by_role("button", name="Prove by Example Works that it is you")).to_have_count(0)
    assert provider.last["prompt"] == "login"

    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("link", name="Sign out of Example Works as well")).to_be_visible()
