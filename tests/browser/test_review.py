"""Settling what is in doubt by keys alone: the focus goes from card to card."""

import pytest
from playwright.sync_api import BrowserContext, expect

from app.db import connect
from app.settings import Settings
from tests.browser.conftest import sign_in
from tests.factories import answer, make_campaign, questions_of
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]


def in_doubt(live: Live) -> tuple[str, list[int]]:
    """A campaign with three questions that nobody could tell, and their ids in the order of the page."""
    database = connect(Settings(data_dir=live.data_dir, _env_file=None).sqlalchemy_url)
    with database.write.begin() as session:
        campaign = make_campaign(session, examples=3, confirm_yes=True)
        questions = sorted(questions_of(session, campaign)[:3], key=lambda one: one.example_id)
        for question in questions:
            for _ in range(3):
                answer(session, campaign, question.id, "unsure")
        found = f"/campaigns/{campaign.id}/review", [question.id for question in questions]
    database.dispose()
    return found


def test_keys_settle_enlarge_and_go_on(desk: BrowserContext, live: Live) -> None:
    path, (first, second, third) = in_doubt(live)
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}{path}")
    page.wait_for_load_state()

    page.keyboard.press("y")
    page.get_by_role("link", name="Begin with the first").click()
    expect(page.locator(f"#question-{first}")).to_be_focused()
    page.keyboard.press("x")
    large = page.locator(f"#large-question-{first}")
    expect(large).to_be_visible()
    page.keyboard.press("x")
    expect(large).to_be_hidden()
    page.locator(f"#question-{first} [popovertarget]").click()
    expect(large).to_be_visible()
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()

    page.keyboard.press("ArrowRight")
    expect(page.locator(f"#question-{second}")).to_be_focused()
    page.keyboard.press("y")
    expect(page.get_by_role("heading", name="2 questions in doubt")).to_be_visible()
    expect(page.locator(f"#question-{third}")).to_be_focused()
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="1 question in doubt")).to_be_visible()
    expect(page.locator(f"#question-{first}")).to_be_focused()
    settled = page.locator("tbody tr")
    expect(settled).to_have_count(2)
    expect(settled.nth(0)).to_contain_text("no")
    expect(settled.nth(1)).to_contain_text("yes")
