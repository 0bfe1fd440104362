"""One person at the screen: breaks, own keys, a closer look, a second tab, the back button."""

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Request, expect

from tests.browser.annotator import open_screen, shown, wait_for_another
from tests.live import Live

# What is on the screen does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]


@pytest.fixture(scope="module")
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign over 300 digits, with a word about each."""
    classes = [{"name": name, "description": f"Any {name}."} for name in dataset["class_names"]]
    return live.open_campaign("One person", dataset, classes=classes)


def answers_in(request: Request) -> list[dict[str, Any]]:
    """What a request hands over."""
    body: Any = request.post_data_json
    found: list[dict[str, Any]] = body["answers"]
    return found


def test_a_break_hides_the_picture_and_counts_no_time(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    first = shown(page)

    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="A break.")).to_be_visible()
    expect(page.locator("[data-picture]")).to_be_hidden()
    page.keyboard.press("n")  # means nothing now
    page.wait_for_timeout(2000)
    page.keyboard.press("Enter")  # the button has the focus
    assert shown(page) == first

    with page.expect_request("**/answers") as sent:
        page.keyboard.press("n")
    (answer,) = answers_in(sent.value)
    assert answer["response_ms"] < 2000, "less than the break alone"


def test_keys_can_be_changed_and_switched_off(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign)
    page.get_by_text("Help", exact=True).click()
    page.locator("[data-rebind=yes]").click()
    page.keyboard.press("n")
    expect(page.locator("[data-answer=yes] kbd")).to_have_text("N")
    expect(page.locator("[data-answer=no] kbd")).to_have_text("Y")  # they changed places

    page.reload()
    page.wait_for_selector("[data-shown]")
    expect(page.locator("[data-answer=yes] kbd")).to_have_text("N")
    with page.expect_request("**/answers") as sent:
        page.keyboard.press("n")
    assert answers_in(sent.value)[0]["value"] == "yes"

    page.get_by_text("Help", exact=True).click()
    page.get_by_label("Answer with keys").uncheck()
    seen = shown(page)
    page.keyboard.press("n")
    page.wait_for_timeout(300)
    assert shown(page) == seen


def test_a_closer_look_moves_nothing_else(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign)
    stage = page.locator("[data-stage]").bounding_box()
    small = page.locator("[data-picture]").bounding_box()
    assert stage is not None
    assert small is not None

    page.keyboard.press("x")
    page.wait_for_selector("[data-picture][style*=scale]")
    large = page.locator("[data-picture]").bounding_box()
    assert large is not None
    assert large["width"] == pytest.approx(2.5 * small["width"])
    page.get_by_role("button", name="Enlarge the picture").click()
    page.wait_for_selector("[data-picture]:not([style*=scale])")
    assert page.locator("[data-picture]").bounding_box() == small
    page.mouse.dblclick(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2)
    assert page.locator("[data-picture][style*=scale]").count() == 1
    seen = shown(page)
    page.keyboard.press("n")
    wait_for_another(page, seen)

    assert page.locator("[data-picture][style*=scale]").count() == 0, "the next picture is whole"
    assert page.locator("[data-stage]").bounding_box() == stage
    assert page.evaluate("window.shifted") < 0.001


def test_two_fingers_enlarge_and_do_not_answer(phone: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(phone, live, campaign)
    seen = shown(page)
    page.wait_for_load_state("networkidle")  # what fingers need is there
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", (180, 300))
    fingers("touchStart", (180, 300), (220, 300))
    for step in range(1, 6):
        fingers("touchMove", (180 - 20 * step, 300), (220 + 20 * step, 300))
    fingers("touchEnd")

    assert page.locator("[data-picture][style*=scale]").count() == 1
    assert shown(page) == seen


def test_the_tab_opened_last_asks(anywhere: BrowserContext, live: Live, campaign: Any) -> None:
    first = open_screen(anywhere, live, campaign)
    question = shown(first)

    second = anywhere.new_page()
    second.goto(first.url)
    assert shown(second) == question
    expect(first.get_by_role("heading", name="You go on in another tab.")).to_be_visible()
    expect(first.locator("[data-picture]")).to_be_hidden()
    first.keyboard.press("n")  # means nothing here
    second.keyboard.press("n")
    wait_for_another(second, question)
    with second.expect_response("**/answers"):
        pass

    first.get_by_role("button", name="Go on here").click()
    first.wait_for_selector("[data-picture]:not([hidden])")

    assert shown(first)[0] != question[0], "what the other tab answered is not asked again"
    expect(second.get_by_role("heading", name="You go on in another tab.")).to_be_visible()


def test_the_back_button_shows_the_list_and_forward_a_question(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    seen = shown(page)
    page.keyboard.press("n")
    wait_for_another(page, seen)
    page.go_back()
    expect(page.get_by_role("heading", name=re.compile("Annotate"))).to_be_visible()
    page.go_forward()

    page.wait_for_selector("[data-shown]")
    assert shown(page)[0] != seen[0]


def test_the_last_answers_can_be_undone_after_a_reload(
    anywhere: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(anywhere, live, campaign)
    given = []
    for _ in range(10):
        seen = shown(page)
        given.append(seen[0])
        page.keyboard.press("n")
        wait_for_another(page, seen)
    page.reload()
    page.wait_for_selector("[data-shown]")

    undone = []
    for _ in range(10):
        seen = shown(page)
        page.keyboard.press("z")
        wait_for_another(page, seen)
        undone.append(shown(page)[0])

    assert undone == given[::-1]
    expect(page.locator("[data-remark]")).to_contain_text("Undone")
    page.keyboard.press("n")
    expect(page.locator("[data-remark]")).to_be_empty(timeout=2000)  # a remark lasts 6 s
