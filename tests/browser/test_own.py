"""What an annotator has of his own: practice cards, a bar, figures at a break, his last answers."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.annotator import COUNT_SHIFTS, counts, new_annotator, open_screen, shown, wait_for_another
from tests.live import Live

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]


@pytest.fixture(scope="module")
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign with a picture beside each of its first classes."""
    examples = live.api("GET", f"/datasets/{dataset['id']}/examples")["items"]
    classes: list[dict[str, Any]] = [
        {"name": name, "description": f"Looks like {name}."} for name in dataset["class_names"]
    ]
    for item in examples[:3]:
        classes[item["true_class"]]["example_ids"] = [item["id"]]
    return live.open_campaign("A hand of one's own", dataset, classes=classes)


def enter(context: BrowserContext, live: Live, campaign: Any, mode: str) -> Page:
    """The screen as somebody sees it who comes for the first time."""
    page = context.new_page()
    page.add_init_script(COUNT_SHIFTS)
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign['id']}?mode={mode}")
    expect(page.locator("[data-pause=practice]")).to_contain_text("3 pictures to practise")
    return page


def fits(page: Page) -> bool:
    """Whether nothing scrolls sideways."""
    found: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return found


@pytest.mark.parametrize("mode", ["card", "grid"])
def test_practice_tells_what_is_right_and_counts_nowhere(
    anywhere: BrowserContext, live: Live, campaign: Any, mode: str
) -> None:
    before = sum(counts(live, campaign).values())
    page = enter(anywhere, live, campaign, mode)
    panel = page.locator("[data-pause=practice]")
    page.get_by_role("button", name="Go on").click()

    for number in range(3):
        page.wait_for_selector(f"[data-shown='practice-{number}']")
        assert fits(page)
        expect(page.locator("[data-progress]")).to_have_text(f"Practice, {number + 1} of 3")
        asked = page.inner_text("[data-class-name]")
        expect(page.locator("[data-guide]").get_by_text(f"Looks like {asked}.")).to_be_visible()
        assert not page.locator("[data-guide] img").locator("visible=true").count(), (
            "one of them is asked about"
        )
        place = page.locator("img[data-picture]").bounding_box()
        page.keyboard.press("y")
        expect(panel).to_contain_text("This picture shows:")
        if page.evaluate("innerWidth > 640"):
            assert page.locator("img[data-picture]").bounding_box() == place, "what is told moves no picture"
        expect(page.locator("img[data-picture]")).to_be_visible()
        expect(panel.get_by_role("button", name="Skip the practice")).to_be_in_viewport(ratio=1)
        assert not page.locator("[data-rest], [data-to-grid], [data-to-card]").locator("visible=true").count()
        page.keyboard.press("Enter")  # the button to go on has the focus

    page.wait_for_selector("[data-shown]:not([data-shown^=practice])")
    assert page.get_attribute("[data-annotate]", "data-mode") == mode
    seen = "[data-tile] img" if mode == "grid" else "img[data-picture]"
    assert page.locator(seen).first.evaluate("image => image.isConnected && image.naturalWidth > 0")
    page.reload()
    page.wait_for_selector("[data-shown]")
    assert not panel.count(), "once is enough"
    assert sum(counts(live, campaign).values()) == before
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_practice_can_be_skipped(phone: BrowserContext, live: Live, campaign: Any) -> None:
    page = enter(phone, live, campaign, "card")

    page.get_by_role("button", name="Skip the practice").tap()

    page.wait_for_selector("[data-shown]:not([data-shown^=practice])")


def test_the_bar_says_what_is_done_and_a_break_tells_figures(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    bar = "document.querySelector('[data-bar]').value"
    for key in "nyu-":
        seen = shown(page)
        page.keyboard.press(key)
        wait_for_another(page, seen)
    reached = page.evaluate(bar)
    assert reached > 0
    seen = shown(page)
    page.get_by_role("button", name="Undo").click()
    wait_for_another(page, seen)

    assert page.evaluate(bar) < reached, "what was taken back is not done"
    page.keyboard.press("p")
    expect(page.locator("[data-pause=break] [data-own]")).to_contain_text("1 yes, 1 no, 1 can't tell")
    assert fits(page)


def test_one_of_the_last_answers_is_changed(anywhere: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(anywhere, live, campaign)
    at_first = counts(live, campaign)["no"]
    for _ in range(2):
        seen = shown(page)
        page.keyboard.press("n")
        wait_for_another(page, seen)
    live.wait(f"/campaigns/{campaign['id']}/progress", until=lambda p: p["answers"]["no"] == at_first + 2)
    before = counts(live, campaign)
    page.keyboard.press("p")
    page.get_by_role("link", name="Your last answers").locator("visible=true").click()

    rows = page.locator("ul.rows > li")
    expect(rows).to_have_count(2)
    rows.first.get_by_role("button", name="yes").click()

    expect(rows.first).to_contain_text("yes")
    expect(rows.first.locator("strong")).to_have_text("yes")
    after = counts(live, campaign)
    assert (after["yes"] - before["yes"], after["no"] - before["no"]) == (1, -1)
    assert fits(page)
