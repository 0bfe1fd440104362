"""From cards to pages and back: a page is a page, and nothing answered, held or waiting is lost."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sklearn.datasets import load_digits

from tests.browser.annotator import (
    TOO_SOON_MS,
    counts,
    open_screen,
    pictures,
    send,
    shown,
    wait_for_another,
    wait_for_answers,
)
from tests.live import Live

# What is on the screen does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

BLOCK = 12  # questions of one class in a row, with so few pictures


@pytest.fixture
def campaign(live: Live, dataset: Any, request: pytest.FixtureRequest) -> Any:
    """A campaign that nobody else answers."""
    return live.open_campaign(f"Both views: {request.node.name}", dataset)


def answer(page: Page, count: int) -> None:
    """Say no to so many cards."""
    for _ in range(count):
        seen = shown(page)
        page.keyboard.press("n")
        wait_for_another(page, seen)


def at_rest(page: Page) -> None:
    """Wait until the browser keeps no answers."""
    page.wait_for_function("() => Object.keys(localStorage).length === 0")


def to_pages(page: Page) -> list[str]:
    """Choose pages; gives the pictures of the first."""
    page.get_by_role("button", name="Pages").click()
    page.wait_for_selector("[data-tile]")
    return pictures(page)


def to_cards(page: Page) -> str:
    """Choose cards; gives the picture of the first."""
    page.get_by_role("button", name="One by one").click()
    return shown(page)[0]


def test_cards_that_end_in_the_middle_of_a_block_leave_whole_pages(
    anywhere: BrowserContext, chromium: Browser, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    answer(page, BLOCK - 1)
    last_of_its_block, class_name = shown(page)

    sizes, seen = [], set()
    to_pages(page)
    for _ in range(3):
        assert page.inner_text("[data-class-name]") != class_name
        sizes.append(len(pictures(page)))
        seen |= set(pictures(page))
        send(page, page.locator("[data-submit]").click)

    assert min(sizes) >= BLOCK, sizes
    assert last_of_its_block not in seen
    wait_for_answers(live, campaign, BLOCK - 1 + sum(sizes))
    at_rest(page)
    page.get_by_role("link", name="Leave").click()
    page.wait_for_url("**/annotate")
    other = chromium.new_context()
    assert shown(open_screen(other, live, campaign))[0] == last_of_its_block, "it was given back"
    other.close()


def test_what_is_left_of_a_block_joins_the_next_page_of_its_class(
    desk: BrowserContext, live: Live, dataset: Any
) -> None:
    few = [{"name": name} for name in dataset["class_names"][:2]]
    campaign = live.open_campaign("Two classes in turn", dataset, classes=few)
    page = open_screen(desk, live, campaign)
    answer(page, 17)  # of 18: eight turns of two classes
    last_of_its_block, class_name = shown(page)

    to_pages(page)
    while page.inner_text("[data-class-name]") != class_name:
        send(page, page.locator("[data-submit]").click)

    assert pictures(page)[0] == last_of_its_block
    assert len(pictures(page)) >= BLOCK


def test_what_is_left_of_all_is_shown_at_the_end(desk: BrowserContext, live: Live) -> None:
    images, labels = load_digits(return_X_y=True)
    arrays = {
        "x_train": (images[:14].reshape(-1, 8, 8) * 15.9).astype(np.uint8),
        "y_train": (labels[:14] % 2).astype(np.uint8),
    }
    campaign = live.open_campaign("Fourteen", live.dataset("Fourteen digits", arrays))
    page = open_screen(desk, live, campaign)
    answer(page, 1)

    given = 1 + len(to_pages(page))
    send(page, page.locator("[data-submit]").click)
    given += len(pictures(page))
    page.wait_for_timeout(TOO_SOON_MS)
    page.keyboard.press("Enter")

    expect(page.locator("[data-pause=done]")).to_be_visible()
    assert given == 14
    wait_for_answers(live, campaign, 14)


def test_there_and_back_again_keeps_what_is_at_hand(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    answer(page, BLOCK - 1)

    first = to_pages(page)
    card = to_cards(page)
    assert card == first[0]
    answer(page, BLOCK - 1)
    assert not set(to_pages(page)) & set(first)
    assert len(pictures(page)) >= BLOCK
    send(page, page.locator("[data-submit]").click)
    at_rest(page)
    answered = sum(counts(live, campaign).values())

    page.reload()
    page.wait_for_selector("[data-tile]")
    assert len(pictures(page)) >= BLOCK
    to_cards(page)
    answer(page, 2)
    wait_for_answers(live, campaign, answered + 2)


def test_without_a_network_the_other_view_shows_what_is_held(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    answer(page, BLOCK - 1)
    at_rest(page)
    page.wait_for_timeout(2500)  # the other view is loaded, and the next pictures are

    anywhere.set_offline(True)
    answer(page, 2)
    size = len(to_pages(page))
    assert 0 < size <= BLOCK
    page.wait_for_timeout(TOO_SOON_MS)
    page.keyboard.press("Enter")
    expect(page.locator("[data-remark]")).to_contain_text(f"{2 + size} answers wait")
    anywhere.set_offline(False)

    wait_for_answers(live, campaign, BLOCK - 1 + 2 + size)
    at_rest(page)
    page.wait_for_selector("[data-tile]")


def test_what_is_undone_on_cards_stands_unmarked_on_a_page(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    undone = []
    for key in ("u", "-"):
        seen = shown(page)
        undone.append(seen[0])
        page.keyboard.press(key)
        wait_for_another(page, seen)
    for _ in undone:
        seen = shown(page)
        page.keyboard.press("z")
        wait_for_another(page, seen)
    expect(page.locator("[data-remark]")).to_contain_text("Undone")

    on_page = to_pages(page)

    assert set(undone) <= set(on_page)
    marks = page.locator("[data-tile]").evaluate_all("(tiles) => tiles.map((tile) => tile.dataset.value)")
    assert set(marks) == {"no"}
    expect(page.locator("[data-remark]")).to_have_text("")
