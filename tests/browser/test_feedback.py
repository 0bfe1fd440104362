"""Known pictures between the questions: a wrong answer tells what is right, where the campaign says so."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Response, expect
from sklearn.datasets import load_digits

from tests.browser.annotator import TOO_SOON_MS, open_screen, shown
from tests.factories import number
from tests.live import Live

# What is on the screen does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

CARDS = 8  # half of them are known: one time in 256 none is, and then more follow
TOLD = "[data-remark]"


@pytest.fixture(scope="module")
def truth(live: Live, dataset: Any) -> dict[str, str]:
    """The class of each picture, by the picture's address."""
    labels = load_digits(return_X_y=True)[1]
    found = live.api("GET", f"/datasets/{dataset['id']}/examples?limit=300")["items"]
    assert len(found) == 300
    return {item["image_url"]: str(labels[item["position"]]) for item in found}


def campaign(live: Live, dataset: Any, *, tells: bool) -> Any:
    """An open campaign, half of whose questions are about known pictures; nobody is paused."""
    opened = live.open_campaign(
        f"Known pictures {number()}", dataset, gold_share=0.5, gold_bound=0, gold_feedback=tells
    )
    live.api("POST", f"/campaigns/{opened['id']}/gold", json={"per_class": 20})
    return opened


class Screen:
    """The screen of a new annotator who knows what each picture shows."""

    def __init__(
        self, context: BrowserContext, live: Live, campaign: Any, mode: str, truth: dict[str, str]
    ) -> None:
        self.page: Page = open_screen(context, live, campaign, mode=mode)
        self.truth = truth
        self.right_values: list[str] = []  # what the server told, in order
        self.page.on("response", self._listen)

    def _listen(self, response: Response) -> None:
        if response.url.endswith("/answers"):
            told = [item["right_value"] for item in response.json()["results"]]
            self.right_values += [value for value in told if value]

    def card(self, *, rightly: bool) -> None:
        """Answer one card, and wait until the server has it."""
        seen = shown(self.page)
        is_yes = (self.truth[seen[0]] == seen[1]) is rightly
        before = self.page.get_attribute("[data-annotate]", "data-shown")
        with self.page.expect_response("**/answers"):
            self.page.keyboard.press("y" if is_yes else "n")
        self._wait_for_next(before)

    def sheet(self, *, rightly: bool) -> None:
        """Mark a page and send it, and wait until the server has it."""
        name = self.page.inner_text("[data-class-name]")
        tiles = self.page.locator("[data-tile]")
        for tile in tiles.all():
            if (self.truth[tile.locator("img").get_attribute("src") or ""] == name) is rightly:
                tile.click()
        before = self.page.get_attribute("[data-annotate]", "data-shown")
        self.page.wait_for_timeout(TOO_SOON_MS)
        with self.page.expect_response("**/answers"):
            self.page.locator("[data-submit]").click()
        self._wait_for_next(before)

    def _wait_for_next(self, before: str | None) -> None:
        # Not for another picture: a known one may come twice in a row, about two classes.
        self.page.wait_for_function(
            """before => [...document.querySelectorAll("[data-annotate]:not([data-painting])")]
                .some(screen => screen.dataset.shown !== before)""",
            arg=before,
        )

    def answer(self, mode: str, *, rightly: bool) -> None:
        """A page, or as many cards as surely have a known one among them."""
        if mode == "grid":
            self.sheet(rightly=rightly)
        else:
            for _ in range(CARDS):
                self.card(rightly=rightly)


@pytest.mark.parametrize("mode", ["card", "grid"])
def test_a_wrong_answer_tells_what_is_right_and_a_right_one_nothing(
    anywhere: BrowserContext, live: Live, dataset: Any, truth: dict[str, str], mode: str
) -> None:
    screen = Screen(anywhere, live, campaign(live, dataset, tells=True), mode, truth)
    remark = screen.page.locator(TOLD)

    before = screen.page.locator("[data-stage]").bounding_box()
    screen.answer(mode, rightly=True)
    expect(remark).to_be_empty()
    assert screen.right_values == []

    while not screen.right_values:
        screen.answer(mode, rightly=False)
    expect(remark).to_contain_text("known")
    last = screen.right_values[-1:] if mode == "card" else set(screen.right_values)
    for value in last:
        expect(remark).to_contain_text(f"“{value.title()}” would have been right")
    assert remark.evaluate("e => e.scrollHeight <= e.clientHeight && e.scrollWidth <= e.clientWidth")
    assert screen.page.locator("[data-stage]").bounding_box() == before, "nothing moves under the hand"
    size = screen.page.viewport_size
    assert size is not None
    assert screen.page.evaluate("document.documentElement.scrollHeight") <= size["height"]


@pytest.mark.parametrize("mode", ["card", "grid"])
def test_without_feedback_nothing_is_told(
    desk: BrowserContext, live: Live, dataset: Any, truth: dict[str, str], mode: str
) -> None:
    screen = Screen(desk, live, campaign(live, dataset, tells=False), mode, truth)

    screen.answer(mode, rightly=False)

    expect(screen.page.locator(TOLD)).to_be_empty()
    assert screen.right_values == []
