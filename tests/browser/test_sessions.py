"""A session that ends while somebody answers, and somebody else on the same device."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.annotator import counts, new_annotator, shown
from tests.browser.conftest import sign_in
from tests.live import Live

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]


@pytest.fixture
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign of its own."""
    return live.open_campaign("Sessions", dataset)


def test_an_answer_given_after_a_session_ended_waits_for_its_person(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = desk.new_page()
    email = new_annotator(page, live)
    address = f"{live.url}/annotate/{campaign['id']}"
    page.goto(address)
    shown(page)

    desk.clear_cookies()
    page.keyboard.press("n")
    expect(page.locator("[data-pause=signed-out]")).to_be_visible()
    assert sum(counts(live, campaign).values()) == 0, "nobody is known to have given it"

    page.goto(f"{live.url}/sign-in")
    new_annotator(page, live)  # somebody else, at the same device
    page.goto(address)
    shown(page)
    page.wait_for_timeout(1_000)
    assert sum(counts(live, campaign).values()) == 0, "it is not the other person's"

    desk.clear_cookies()
    sign_in(page, live, email, "a password of my own")
    page.goto(address)
    live.wait(f"/campaigns/{campaign['id']}/progress", until=lambda p: p["answers"]["no"] == 1)
    assert sum(counts(live, campaign).values()) == 1
