"""An admin's pages on a phone: tables that do not fit."""

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
    """An open campaign over 60 digits."""
    images, labels = load_digits(return_X_y=True)
    arrays = {
        "x_train": (images[:60].reshape(-1, 8, 8) * 15.9).astype(np.uint8),
        "y_train": labels[:60].astype(np.uint8),
    }
    return live.open_campaign("For admins", live.dataset("Digits for admins", arrays))


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
    page.wait_for_function("document.activeElement.scrollLeft > 0")
    page.wait_for_timeout(300)  # until it rests
    place = table.evaluate("element => element.scrollLeft")
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        pass  # it asks for itself every two seconds
    page.wait_for_timeout(300)

    expect(table).to_be_focused()
    assert table.evaluate("element => element.scrollLeft") == place
