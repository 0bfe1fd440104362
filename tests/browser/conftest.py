"""A real Chromium, and a real installation behind it."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from sklearn.datasets import load_digits

from tests.browser.screenshots import QUIET
from tests.conftest import SERVICES_REQUIRED, postgres_database
from tests.live import EMAIL, PASSWORD, Live, installation

PATIENCE_S = 120  # machines are slow at times: what comes late has come
expect.set_options(timeout=PATIENCE_S * 1000)


# Fixtures of the package, not of the session: Playwright's event loop must not run on under other tests.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser, started once."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if SERVICES_REQUIRED:
            pytest.fail("no Chromium is installed, and CLARINET_REQUIRE_SERVICES asks for one")
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="package", params=["embedded", "services"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An installation: SQLite and the filesystem queue, then PostgreSQL and Redis."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    with ExitStack() as services:
        addresses: dict[str, str] = {}
        if request.param == "services":
            addresses["CLARINET_DATABASE_URL"] = services.enter_context(postgres_database())
            addresses["CLARINET_BROKER_URL"] = request.getfixturevalue("redis_url")
        with installation(folder / "data", folder / "log", **addresses) as live:
            yield live


@pytest.fixture(scope="module")
def dataset(live: Live, request: pytest.FixtureRequest) -> Any:
    """300 digits."""
    images, labels = load_digits(return_X_y=True)
    arrays = {
        "x_train": (images[:300].reshape(-1, 8, 8) * 15.9).astype(np.uint8),
        "y_train": labels[:300].astype(np.uint8),
    }
    return live.dataset(f"Digits of {request.path.stem}", arrays)


DESK = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def desk(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh profile on a desk."""
    context = chromium.new_context(viewport=DESK)  # type: ignore[arg-type]  # a plain dict is fine
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context
    context.close()


@pytest.fixture
def phone(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh profile on a phone."""
    context = chromium.new_context(viewport=PHONE, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context
    context.close()


@pytest.fixture(params=["desk", "phone"])
def anywhere(request: pytest.FixtureRequest) -> BrowserContext:
    """A fresh profile on a desk, then on a phone."""
    context: BrowserContext = request.getfixturevalue(request.param)
    return context


def sign_in(page: Page, live: Live, email: str = EMAIL, password: str = PASSWORD) -> None:
    """Sign in through the form."""
    page.goto(f"{live.url}/sign-in")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
