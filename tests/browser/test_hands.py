"""Keys of any layout, Escape, the words of a question, and where things stand on a desk and on phones."""

from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app.language_choice import COOKIE
from tests.browser.annotator import open_screen, pictures, shown, wait_for_another
from tests.live import Live

# What is on the screen does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

PICTURE_SHARE = 0.6  # of a phone's height
# N, Y and U of Russian and Greek keyboards, and N while an input method takes letters.
KEYS = (
    ("\N{CYRILLIC SMALL LETTER TE}", "KeyN"),
    ("\N{GREEK SMALL LETTER NU}", "KeyN"),
    ("\N{CYRILLIC SMALL LETTER EN}", "KeyY"),
    ("\N{GREEK SMALL LETTER UPSILON}", "KeyY"),
    ("\N{CYRILLIC SMALL LETTER GHE}", "KeyU"),
    ("Process", "KeyN"),
)
SIZES = [(1280, 800), (390, 844), (320, 568)]


@pytest.fixture(scope="module")
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign whose classes have English names and descriptions."""
    classes = [{"name": name, "description": f"What {name} means."} for name in dataset["class_names"]]
    return live.open_campaign("Hands", dataset, classes=classes, class_language="en")


@pytest.fixture(scope="module")
def unsaid(live: Live, dataset: Any) -> Any:
    """One that says nothing of the language of its classes."""
    return live.open_campaign("No language", dataset)


def press(page: Page, key: str, code: str) -> None:
    """Press a key as a keyboard with this layout does."""
    keyboard = page.context.new_cdp_session(page)
    for kind in ("keyDown", "keyUp"):
        keyboard.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code})
    keyboard.detach()


def sentence(page: Page) -> str:
    """The question as it stands there."""
    return " ".join(page.inner_text("[data-question]").split())


def test_a_key_of_another_alphabet_answers_by_its_place(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)

    said = {}
    for key, code in KEYS:
        seen = shown(page)
        with page.expect_request("**/answers") as sent:
            press(page, key, code)
        body: Any = sent.value.post_data_json
        said[key] = [answer["value"] for answer in body["answers"]][-1]
        wait_for_another(page, seen)

    assert list(said.values()) == ["no", "no", "yes", "yes", "unsure", "no"]


def test_pictures_are_marked_by_the_place_of_a_key(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = open_screen(desk, live, campaign, mode="grid")
    assert len(pictures(page)) > 10
    tiles = page.locator("[data-tile]")

    press(page, "é", "Digit2")  # French
    press(page, "й", "KeyQ")

    marked = [tiles.nth(place).get_attribute("data-value") for place in (0, 1, 10)]
    assert marked == ["no", "yes", "yes"]


def test_a_chosen_key_of_another_alphabet_is_its_place(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    page.get_by_text("Help", exact=True).click()
    page.locator("[data-rebind=no]:not([disabled])").click()
    press(page, "л", "KeyK")

    expect(page.locator("[data-answer=no] kbd")).to_have_text("K")


def test_german_answers_with_j_and_n(chromium: Browser, live: Live, campaign: Any) -> None:
    context = chromium.new_context()
    page = open_screen(context, live, campaign)
    context.add_cookies([{"name": COOKIE, "value": "de", "url": live.url}])
    page.reload()
    page.wait_for_selector("[data-shown]")
    expect(page.locator("[data-answer=yes] kbd")).to_have_text("J")
    expect(page.locator("[data-answer=no] kbd")).to_have_text("N")
    assert sentence(page).startswith("Ist das „")

    with page.expect_request("**/answers") as sent:
        page.keyboard.press("j")
    body: Any = sent.value.post_data_json
    context.close()

    assert body["answers"][0]["value"] == "yes"


def test_escape_closes_the_help_and_goes_back_to_its_button(
    desk: BrowserContext, live: Live, campaign: Any
) -> None:
    page = open_screen(desk, live, campaign)
    page.get_by_text("Help", exact=True).click()
    box = page.get_by_label("Answer with keys")
    expect(box).to_be_visible()
    page.wait_for_selector("[data-rebind]:not([disabled])")
    box.focus()

    page.keyboard.press("Escape")

    expect(box).to_be_hidden()
    expect(page.locator("[data-help] > summary")).to_be_focused()


def test_an_article_stands_before_an_english_noun_alone(
    desk: BrowserContext, live: Live, campaign: Any, unsaid: Any
) -> None:
    page = open_screen(desk, live, campaign)
    name = page.inner_text("[data-class-name]")
    assert sentence(page) == f"Is this {'an' if name == '8' else 'a'} {name}?"
    assert page.get_attribute("[data-class-name]", "lang") == "en"

    page.goto(f"{live.url}/annotate/{unsaid['id']}?mode=card")
    page.wait_for_selector("[data-shown]")

    assert sentence(page) == f"Is this: {page.inner_text('[data-class-name]')}?"
    assert page.get_attribute("[data-class-name]", "lang") is None


@pytest.mark.parametrize(
    "size", [(1280, 800), (390, 844), (320, 568)], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_the_picture_is_centred_with_its_description_under_the_question(
    chromium: Browser, live: Live, campaign: Any, size: tuple[int, int]
) -> None:
    width, height = size
    is_phone = width < 640
    context = chromium.new_context(
        viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone
    )
    page = open_screen(context, live, campaign)

    places = {
        name: page.locator(f"[data-{name}]").bounding_box()
        for name in ("stage", "picture", "question", "about")
    }
    whole = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    context.close()

    found = {name: place for name, place in places.items() if place is not None}
    assert whole == [width, height], "nothing scrolls"
    assert found["picture"]["x"] + found["picture"]["width"] / 2 == pytest.approx(width / 2, abs=0.5)
    assert found["stage"]["width"] == width
    assert found["about"]["y"] >= found["question"]["y"] + found["question"]["height"] - 0.5
    assert found["question"]["y"] >= found["stage"]["y"] + found["stage"]["height"] - 0.5
    if is_phone:
        assert found["stage"]["height"] >= PICTURE_SHARE * height


@pytest.mark.parametrize("size", [(844, 390), (568, 320)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_phone_on_its_side_shows_picture_and_answers_whole(
    chromium: Browser, live: Live, campaign: Any, size: tuple[int, int]
) -> None:
    width, height = size
    context = chromium.new_context(
        viewport={"width": width, "height": height}, has_touch=True, is_mobile=True
    )
    page = open_screen(context, live, campaign)

    stage = page.locator("[data-stage]").bounding_box()
    buttons = page.locator(".choices [data-answer], .foot button:visible")
    places = [place for place in (button.bounding_box() for button in buttons.all()) if place]
    scrolled = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    context.close()

    assert stage is not None
    assert stage["height"] >= PICTURE_SHARE * height
    assert scrolled == [width, height]
    assert len(places) >= 4
    for place in places:
        assert place["x"] >= stage["x"] + stage["width"] - 0.5
        assert place["x"] + place["width"] <= width + 0.5
        assert place["y"] + place["height"] <= height + 0.5
