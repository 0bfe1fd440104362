"""Pages of one class: marked by key and by touch, sent at once, taken back at once."""

import json
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.browser.annotator import (
    TOO_SOON_MS,
    counts,
    new_annotator,
    open_screen,
    pictures,
    send,
    wait_for_answers,
)
from tests.live import Live

# On one of the installations: what a page does with its keys does not depend on the database behind it.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["services"], indirect=True)]


# The second time as soon as the next page is up, however slowly this machine is driven from outside.
PRESS_TWICE = """() => new Promise((done) => {
  const screen = document.querySelector("[data-annotate]");
  const key = { key: "Enter", bubbles: true };
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", key));
  new MutationObserver((_, seen) => { seen.disconnect(); press(); done(); })
    .observe(screen, { attributeFilter: ["data-shown"] });
  press();
})"""


@pytest.fixture
def campaign(live: Live, dataset: Any, request: pytest.FixtureRequest) -> Any:
    """A campaign that leaves the choice of mode to each person; nobody else takes parts of its blocks."""
    return live.open_campaign(f"Pages or cards: {request.node.name}", dataset)


def test_a_page_by_keyboard_with_an_undo_after_a_reload(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    before = counts(live, campaign)
    first = pictures(page)
    assert 12 <= len(first) <= 30
    assert page.evaluate("document.documentElement.scrollHeight") <= 768

    page.keyboard.press("2")
    page.keyboard.press("4")
    page.keyboard.press("4")
    expect(page.get_by_role("button", name="Picture 2: yes")).to_be_visible()
    expect(page.get_by_role("button", name="Picture 4: can't tell")).to_be_visible()
    send(page, lambda: page.keyboard.press("Enter"))
    given = wait_for_answers(live, campaign, sum(before.values()) + len(first))
    assert {name: given[name] - before[name] for name in given} == {
        "yes": 1,
        "no": len(first) - 2,
        "unsure": 1,
        "unusable": 0,
    }
    second = pictures(page)
    assert not set(first) & set(second)

    page.reload()
    page.wait_for_selector("[data-shown]")
    assert pictures(page) == second, "a reload shows the same page"
    send(page, lambda: page.keyboard.press("z"))

    assert pictures(page) == first, "the page is back as it was"
    expect(page.get_by_role("button", name="Picture 2: yes")).to_be_visible()
    expect(page.get_by_role("button", name="Picture 4: can't tell")).to_be_visible()
    wait_for_answers(live, campaign, sum(before.values()))


def test_a_page_by_thumb(phone: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(phone, live, campaign, mode="grid")
    before = counts(live, campaign)
    first = pictures(page)
    assert 12 <= len(first) <= 15
    tiles = page.locator("[data-tile]")
    box = tiles.first.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 90

    tiles.nth(0).tap()
    tiles.nth(1).tap()
    tiles.nth(1).tap()
    for _ in range(3):
        tiles.nth(2).tap()
    for _ in range(4):
        tiles.nth(3).tap()
    send(page, page.locator("[data-submit]").tap)

    given = wait_for_answers(live, campaign, sum(before.values()) + len(first))
    marked = {value: given[value] - before[value] for value in ("yes", "unsure", "unusable")}
    assert marked == {"yes": 1, "unsure": 1, "unusable": 1}


def test_pages_sent_without_a_network_arrive_once(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign, mode="grid")
    before = sum(counts(live, campaign).values())
    page.wait_for_timeout(800)  # the next page's pictures are on their way

    anywhere.set_offline(True)
    sizes = [len(pictures(page))]
    send(page, lambda: page.keyboard.press("Enter"))
    sizes.append(len(pictures(page)))
    page.keyboard.press("1")
    page.wait_for_timeout(TOO_SOON_MS)
    page.keyboard.press("Enter")
    expect(page.locator("[data-pause=offline]")).to_be_visible(timeout=300_000)
    expect(page.locator("[data-remark]")).to_contain_text(f"{sum(sizes)} answers wait for the network")
    anywhere.set_offline(False)

    expect(page.locator("[data-pause=offline]")).to_be_hidden(timeout=300_000)
    wait_for_answers(live, campaign, before + sum(sizes))
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_pages_are_taken_back_one_after_another(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    given = []
    for _ in range(2):
        given.append(pictures(page))
        send(page, lambda: page.keyboard.press("Enter"))
    page.reload()
    page.wait_for_selector("[data-shown]")
    bar = "document.querySelector('[data-bar]').value"
    page.wait_for_function(f"() => {bar} > 0")
    reached = page.evaluate(bar)

    send(page, lambda: page.keyboard.press("z"))
    assert pictures(page) == given[1]
    page.wait_for_function(f"(reached) => {bar} < 0.7 * reached", arg=reached)
    send(page, lambda: page.keyboard.press("z"))
    assert pictures(page) == given[0]


def test_an_undo_takes_back_no_more_than_the_page_had(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    first = pictures(page)
    send(page, lambda: page.keyboard.press("Enter"))
    wait_for_answers(live, campaign, len(first))

    def spoil(route: Route) -> None:
        sent: Any = route.request.post_data_json
        sent["answers"][0]["question_id"] = 1
        route.continue_(post_data=json.dumps(sent))

    page.route("**/answers", spoil)
    second = pictures(page)
    with page.expect_response("**/answers"):  # nothing is spoilt while the test waits for the API
        send(page, lambda: page.keyboard.press("Enter"))
    wait_for_answers(live, campaign, len(first) + len(second) - 1)  # one was refused
    page.unroute("**/answers")

    send(page, lambda: page.keyboard.press("z"))
    assert pictures(page)[: len(second) - 1] == second[1:]
    wait_for_answers(live, campaign, len(first))
    send(page, lambda: page.keyboard.press("z"))
    assert pictures(page)[: len(first)] == first


def test_a_key_pressed_twice_sends_one_page(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    first = len(pictures(page))
    page.wait_for_timeout(800)  # the next page is there at once

    page.evaluate(PRESS_TWICE)

    wait_for_answers(live, campaign, first)
    page.wait_for_timeout(500)
    assert sum(counts(live, campaign).values()) == first


def test_pictures_that_do_not_load_keep_nobody_from_the_others(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    loaded: set[str] = set()

    def answer(route: Route) -> None:
        if len(loaded) < 5:
            loaded.add(route.request.url)
        if route.request.url in loaded:
            route.continue_()
        else:
            route.abort()

    desk.route("**/image*", answer)
    desk.route("**/pictures/*", answer)
    page = desk.new_page()
    new_annotator(page, live)
    page.clock.install()
    page.goto(f"{live.url}/annotate/{campaign['id']}?mode=grid")

    for _ in range(60):  # seconds until each was tried four times, and the server was asked for others
        if page.locator("[data-tile]").count():
            break
        page.clock.run_for(1_000)
        page.wait_for_timeout(50)
    assert {f"{live.url}{path}" for path in pictures(page)} <= loaded
    assert pictures(page)


def test_both_views_show_what_is_held(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    first = pictures(page)

    page.get_by_role("button", name="One by one").click()
    expect(page.locator("[data-stage] > [data-picture]")).to_have_attribute("src", first[0])
    page.wait_for_selector("[data-annotate]:not([data-painting])")
    page.keyboard.press("n")
    expect(page.locator("[data-stage] > [data-picture]")).to_have_attribute("src", first[1])
    page.get_by_role("button", name="Pages").click()

    expect(page.locator("[data-tile] img").first).to_have_attribute("src", first[1])
    assert pictures(page)[: len(first) - 1] == first[1:]
    page.reload()
    page.wait_for_selector("[data-tile]")


def test_a_campaign_may_allow_one_mode_only(desk: BrowserContext, live: Live, dataset: Any) -> None:
    cards = live.open_campaign("Cards only", dataset, modes="card")
    pages = live.open_campaign("Pages only", dataset, modes="grid")
    page = open_screen(desk, live, cards, mode="grid")

    assert page.get_attribute("[data-annotate]", "data-mode") == "card", "whatever the address asks for"
    expect(page.get_by_role("button", name="Pages")).to_have_count(0)
    page.goto(f"{live.url}/annotate/{pages['id']}")
    page.wait_for_selector("[data-tile]")


def test_a_page_leaves_and_the_next_questions_come_in_one_request(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)

    with page.expect_response("**/answers") as answer:
        send(page, lambda: page.keyboard.press("Enter"))
    page.wait_for_timeout(500)

    assert [url.rsplit("/", 1)[1] for url in asked] == ["answers"]
    assert answer.value.json()["next"]["questions"]
