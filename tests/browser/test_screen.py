"""The annotation screen's promises: nothing moves, the next picture is there at once, no answer is lost."""

import statistics
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Request, expect

from tests.browser.annotator import counts, new_annotator, open_screen, shown, wait_for_another
from tests.live import Live

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

# From a key to the second frame after it, in which the next picture has been painted.
TIME_ANSWERS = """async count => {
    const main = document.querySelector("[data-annotate]"), times = [];
    for (let i = 0; i < count; i++) {
        const before = main.dataset.shown, start = performance.now();
        main.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
        while (main.dataset.shown === before) {
            if (performance.now() - start > 10_000) throw new Error("no next picture for ten seconds");
            await new Promise(requestAnimationFrame);
        }
        times.push(performance.now() - start);
        await new Promise(resolve => setTimeout(resolve, 200));
    }
    return times;
}"""


@pytest.fixture(scope="module")
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign over 300 digits."""
    return live.open_campaign("Steady hands", dataset)


def test_the_next_picture_is_painted_at_once_and_nothing_moves(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)

    times = page.evaluate(TIME_ANSWERS, 12)

    assert statistics.median(times) <= 50, times
    assert page.evaluate("window.shifted") < 0.001
    assert page.evaluate("document.documentElement.scrollHeight") <= 768, "no scrolling at 1366 x 768"


def test_answers_given_without_a_network_arrive_once(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    before = sum(counts(live, campaign).values())

    anywhere.set_offline(True)
    for key in "nynun":
        seen = shown(page)
        page.keyboard.press(key)
        wait_for_another(page, seen)
    expect(page.locator("[data-remark]")).to_contain_text("5 answers wait for the network")
    anywhere.set_offline(False)

    expect(page.locator("[data-remark]")).to_contain_text("Everything is sent", timeout=300_000)
    assert sum(counts(live, campaign).values()) == before + 5
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_answers_left_by_a_closed_page_are_sent_by_the_next(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    before = sum(counts(live, campaign).values())
    anywhere.route("**/answers", lambda route: route.abort())
    seen = shown(page)
    page.keyboard.press("n")
    wait_for_another(page, seen)
    page.close()
    anywhere.unroute("**/answers")

    following = anywhere.new_page()
    following.goto(f"{live.url}/annotate/{campaign['id']}")

    assert shown(following)[0] != seen[0], "what was answered is not asked again"
    live.wait(
        f"/campaigns/{campaign['id']}/progress", until=lambda p: sum(p["answers"].values()) == before + 1
    )


def test_a_paused_campaign_says_so_and_goes_on_by_itself(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    live.api("POST", f"/campaigns/{campaign['id']}/pause")
    try:
        panel = page.locator("[data-pause=stopped]")
        page.keyboard.press("n")  # the screen holds more questions, and hears with this answer to stop
        expect(panel).to_contain_text("paused", timeout=300_000)
        expect(panel).to_contain_text("goes on by itself")
    finally:
        live.api("POST", f"/campaigns/{campaign['id']}/open")

    page.wait_for_selector("[data-picture]:not([hidden])", timeout=300_000)
    assert page.evaluate("Object.keys(localStorage).length") == 0, (
        "what was answered while it paused was sent"
    )


def test_cards_are_fetched_with_the_answers_before_them(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    page.wait_for_load_state("networkidle")
    asked: list[tuple[str, bool]] = []

    def listen(request: Request) -> None:
        if request.method == "POST":
            body: Any = request.post_data_json
            asked.append((request.url.rsplit("/", 1)[1], "next" in body))

    page.on("request", listen)
    before = sum(counts(live, campaign).values())

    for _ in range(15):  # 20 are held, and more are fetched when fewer than 12 wait
        seen = shown(page)
        page.keyboard.press("n")
        wait_for_another(page, seen)
    page.wait_for_function("() => Object.keys(localStorage).length === 0")

    assert {name for name, _ in asked} == {"answers"}
    assert sum(asks for _, asks in asked) == 1
    assert sum(counts(live, campaign).values()) == before + 15


def test_a_picture_that_cannot_be_used_is_said_to_be_by_key_and_by_button(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    before = counts(live, campaign)

    seen = shown(page)
    page.keyboard.press("-")
    wait_for_another(page, seen)
    seen = shown(page)
    page.get_by_role("button", name="Cannot be used").click()
    wait_for_another(page, seen)

    live.wait(
        f"/campaigns/{campaign['id']}/progress",
        until=lambda p: p["answers"]["unusable"] == before["unusable"] + 2,
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-remark]")).to_contain_text("cannot be used")


def test_a_closed_campaign_promises_nothing(desk: BrowserContext, live: Live, dataset: Any) -> None:
    campaign = live.open_campaign("Over soon", dataset)
    page = open_screen(desk, live, campaign)
    live.api("POST", f"/campaigns/{campaign['id']}/close")

    page.keyboard.press("n")

    panel = page.locator("[data-pause=stopped]")
    expect(panel).to_contain_text("closed", timeout=300_000)
    expect(panel.get_by_text("goes on by itself")).to_be_hidden()


def test_a_screen_that_nobody_touches_gives_its_questions_back(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = desk.new_page()
    page.clock.install()
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign['id']}?mode=card")
    seen = shown(page)

    with page.expect_response("**/leases/renew"):
        page.clock.fast_forward("01:00")
    with page.expect_response("**/leases/release"):
        page.clock.fast_forward("06:00")
    with page.expect_response("**/questions") as again:
        page.mouse.move(200, 200)

    first = again.value.json()["questions"][0]
    assert str(first["id"]) == page.get_attribute("[data-annotate]", "data-shown"), "nobody took it meanwhile"
    assert shown(page) == seen
    page.keyboard.press("n")
    wait_for_another(page, seen)
