"""An admin's pages by keyboard and on a phone: refused forms, and tables that do not fit."""

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, expect
from sklearn.datasets import load_digits

from tests.browser.conftest import sign_in
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]


@pytest.fixture(scope="module")
def campaign(live: Live) -> Any:
    """An open campaign over 60 digits, and a second dataset to adapt to."""
    images, labels = load_digits(return_X_y=True)
    arrays = {
        "x_train": (images[:60].reshape(-1, 8, 8) * 15.9).astype(np.uint8),
        "y_train": labels[:60].astype(np.uint8),
    }
    live.dataset("Digits to adapt to", arrays)
    return live.open_campaign("For admins", live.dataset("Digits for admins", arrays))


def test_after_a_refusal_the_keyboard_begins_at_the_summary(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{campaign['id']}/runs/new")
    # As if the labels that are missing had been there when the page was made.
    page.locator("#start").evaluate("button => { button.disabled = false; }")
    page.get_by_label("Seeds").fill("one")
    page.get_by_label("Seeds").press("Enter")

    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("Nothing was started.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Go to")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[aria-invalid=true]").first).to_be_focused()


def test_each_group_of_settings_is_a_group_with_a_heading(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{campaign['id']}/runs/new")
    page.get_by_text("All settings").click()

    for name in ("Length", "Network", "Adaptation", "Self training"):
        group = page.get_by_role("group", name=name, exact=True)
        expect(group.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("group", name="Length").get_by_label("Epochs")).to_be_visible()


def test_a_table_that_does_not_fit_scrolls_by_keyboard_and_stays_there(
    phone: BrowserContext, live: Live, campaign: Any
) -> None:
    page = phone.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{campaign['id']}")
    table = page.get_by_role("region", name="Classes")
    expect(table).to_have_css("background-image", re.compile("linear-gradient"))

    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0")
    page.wait_for_timeout(300)  # until it rests
    place = table.evaluate("element => element.scrollLeft")
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        pass  # it asks for itself every two seconds
    page.wait_for_timeout(300)

    expect(table).to_be_focused()
    assert table.evaluate("element => element.scrollLeft") == place
