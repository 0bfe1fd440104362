"""The annotator's pages for everybody: axe finds nothing, keys suffice, controls have names, nothing moves.

docs/accessibility.md says what this shows and what it does not.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.annotator import new_annotator
from tests.browser.conftest import DESK, PHONE, sign_in
from tests.browser.keyboard import tab_to
from tests.conftest import SERVICES_REQUIRED
from tests.live import Live

# What is on the screen does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = """async tags => (await axe.run({ runOnly: { type: "tag", values: tags } })).violations.map(
    v => `${v.id}: ${v.nodes.map(n => n.target.join(" ") + " " + n.failureSummary).join(" | ")}`)"""
MOVES = """[...document.querySelectorAll("*")].filter(e => {
    const style = getComputedStyle(e);
    return parseFloat(style.transitionDuration) > 0.001 || parseFloat(style.animationDuration) > 0.001;
}).length"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker's script."""
    if not AXE.exists():
        if SERVICES_REQUIRED:
            pytest.fail("axe-core is missing: run `make install`")
        pytest.skip("axe-core is missing: run `make install`")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def campaign(live: Live, dataset: Any) -> Any:
    """An open campaign whose classes have descriptions and example pictures."""
    examples = live.api("GET", f"/datasets/{dataset['id']}/examples")["items"]
    shown = [item["id"] for item in examples[:2]]
    classes = [
        {"name": name, "description": f"Any {name}, however it is written.", "example_ids": shown}
        for name in dataset["class_names"]
    ]
    return live.open_campaign("For everybody", dataset, classes=classes, instructions="Take your time.")


@pytest.fixture(params=["desk-light", "desk-dark", "phone-light", "phone-dark"])
def context(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A fresh profile in each form."""
    device, scheme = request.param.split("-")
    colours: Literal["light", "dark"] = "dark" if scheme == "dark" else "light"
    context = chromium.new_context(
        viewport=DESK if device == "desk" else PHONE,  # type: ignore[arg-type]  # a plain dict is fine
        is_mobile=device == "phone",
        has_touch=device == "phone",
        color_scheme=colours,
        reduced_motion="reduce",
    )
    yield context
    context.close()


def test_axe_finds_nothing(context: BrowserContext, live: Live, campaign: Any, axe: str) -> None:
    page = context.new_page()
    found: dict[str, list[str]] = {}

    def check(name: str) -> None:
        page.evaluate(axe)
        if faults := page.evaluate(RUN_AXE, RULES):
            found[name] = faults
        assert page.evaluate(MOVES) == 0, f"{name} moves although the person asked for no motion"

    page.goto(f"{live.url}/sign-in")
    check("sign-in")
    link = live.api("POST", "/invitations", json={"role": "annotator", "note": "for axe"})["url"]
    page.goto(link)
    check("invitation")
    new_annotator(page, live)
    check("list")
    page.goto(f"{live.url}/account")
    check("account")
    page.goto(f"{live.url}/nothing-here")
    check("error")
    for mode in ("card", "grid"):
        page.goto(f"{live.url}/annotate/{campaign['id']}?mode={mode}")
        page.wait_for_selector("[data-shown]")
        if mode == "grid":
            page.locator("[data-tile]").nth(0).click()
            page.locator("[data-tile]").nth(1).click(click_count=2)
        check(mode)
        page.get_by_text("Help", exact=True).click()
        expect(page.locator("[data-rebind=yes]")).to_be_enabled()
        check(f"{mode}, help")
        page.get_by_text("Help", exact=True).click()
        page.get_by_role("button", name="Break").click()
        check(f"{mode}, break")

    assert found == {}


def test_keys_alone_suffice(desk: BrowserContext, live: Live, campaign: Any) -> None:
    page = desk.new_page()
    email = new_annotator(page, live)
    tab_to(page, "form[action$='/sign-out'] button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sign-in")
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.keyboard.type(email)
    page.keyboard.press("Tab")
    page.keyboard.type("a password of my own")
    page.keyboard.press("Enter")
    page.wait_for_url("**/annotate")
    tab_to(page, f"a.button[href*='{campaign['id']}']")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-shown]")

    tab_to(page, "summary")
    page.keyboard.press("Enter")
    tab_to(page, "#keys")
    page.keyboard.press("Space")  # no single keys any more
    for value in ("no", "yes", "unsure"):
        before = page.get_attribute("[data-annotate]", "data-shown")
        with page.expect_request("**/answers") as sent:
            tab_to(page, f"[data-answer={value}]")
            page.keyboard.press("Enter")
        body: Any = sent.value.post_data_json
        assert body["answers"][0]["value"] == value
        page.wait_for_function(
            "before => document.querySelector('[data-annotate]').dataset.shown !== before", arg=before
        )

    tab_to(page, "[data-to-grid]")
    page.keyboard.press("Enter")
    tab_to(page, "[data-tile]:nth-child(2)")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2, "one sees where one is"
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Picture 2: yes")).to_be_focused()
    tab_to(page, "[data-submit]")
    page.wait_for_timeout(350)  # no page is sent that is up for less
    with page.expect_request("**/answers") as sent:
        page.keyboard.press("Enter")
    body = sent.value.post_data_json
    assert [answer["value"] for answer in body["answers"]][:3] == ["no", "yes", "no"]


def test_pictures_to_choose_open_larger_by_keys_and_are_not_chosen_by_it(
    desk: BrowserContext, live: Live, dataset: Any
) -> None:
    classes = [{"name": name} for name in dataset["class_names"]]
    body = {"name": "Still a draft", "dataset_id": dataset["id"], "classes": classes}
    draft = live.api("POST", "/campaigns", json=body)
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/campaigns/{draft['id']}/pictures")

    tab_to(page, "[popovertarget]")
    page.keyboard.press("Enter")

    large = page.locator(":popover-open > img")
    expect(large).to_be_visible()
    assert large.evaluate("image => image.clientWidth") > 500
    page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    expect(page.locator(":checked:not(option)")).to_have_count(0)


def test_controls_have_names_in_the_persons_language(chromium: Browser, live: Live, campaign: Any) -> None:
    context = chromium.new_context(viewport=DESK, locale="de-DE")  # type: ignore[arg-type]
    page = context.new_page()
    link = live.api("POST", "/invitations", json={"role": "annotator", "note": ""})["url"]
    page.goto(link)
    page.get_by_label("Name").fill("Käthe")
    page.get_by_label("E-Mail").fill("kaethe@example.org")
    page.get_by_label("Passwort").fill("ein Satz als Passwort")
    page.get_by_role("button", name="Konto anlegen").click()
    page.wait_for_url("**/annotate")
    page.goto(f"{live.url}/annotate/{campaign['id']}")
    page.wait_for_selector("[data-shown]")

    assert page.get_attribute("html", "lang") == "de"
    for role, name in (
        ("link", "For everybody verlassen"),
        ("img", "Das Bild, um das es geht"),
        ("button", "Zurücknehmen"),
        ("button", "Nein"),
        ("button", "Ja"),
        ("button", "Weiß nicht"),
        ("button", "Bild vergrößern"),
        ("button", "Seiten"),
        ("button", "Pause"),
        ("complementary", "Zu dieser Klasse"),
    ):
        expect(page.get_by_role(role, name=name).first).to_be_visible()  # type: ignore[arg-type]
    expect(page.locator("[data-question]")).to_have_text(re.compile("^Ist das „.+“\\?$"))
    expect(page.locator("[data-question]")).to_have_attribute("aria-live", "polite")
    page.get_by_role("button", name="Seiten").click()
    expect(
        page.get_by_role("group", name="Bilder").get_by_role("button", name="Bild 1: nein")
    ).to_be_visible()
    context.close()
