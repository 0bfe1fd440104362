"""An annotator before the screen of a campaign, as tests drive it."""

import re
import uuid
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.live import Live

TOO_SOON_MS = 350  # the screen takes no page that is up for less
COUNT_SHIFTS = """
    window.shifted = 0;
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
"""


def new_annotator(page: Page, live: Live) -> str:
    """Come in through an invitation link; gives the e-mail address."""
    email = f"annotator-{uuid.uuid4().hex[:8]}@example.org"
    link = live.api("POST", "/invitations", json={"role": "annotator", "note": "for the tests"})["url"]
    page.goto(link)
    page.get_by_label("Name").fill("Grace Annotator")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password").fill("a password of my own")
    page.get_by_role("button", name=re.compile("account|join|start", re.IGNORECASE)).click()
    page.wait_for_url("**/annotate")
    return email


def open_screen(context: BrowserContext, live: Live, campaign: Any, *, mode: str = "") -> Page:
    """The screen with its first question or page of questions, for a new annotator; counts what moves."""
    page = context.new_page()
    page.add_init_script(COUNT_SHIFTS)
    new_annotator(page, live)
    page.goto(f"{live.url}/annotate/{campaign['id']}?mode={mode}")
    page.wait_for_selector("[data-shown], [data-pause=practice]:not([hidden])")
    if page.locator("[data-pause=practice]").is_visible():
        page.locator("[data-practice-skip]").click()
    page.wait_for_selector("[data-shown]")
    return page


def shown(page: Page) -> tuple[str, str]:
    """The question on the screen: its picture's address and its class."""
    page.wait_for_selector("[data-annotate]:not([data-painting]) [data-picture]:not([hidden])")
    return page.get_attribute("[data-picture]", "src") or "", page.inner_text("[data-class-name]")


def wait_for_another(page: Page, seen: tuple[str, str]) -> None:
    """Until another question is painted, about this picture or another; before that, no answer is taken."""
    page.wait_for_function(
        """([picture, name]) => document.querySelector("[data-annotate]:not([data-painting])")
            && (document.querySelector("[data-picture]").getAttribute("src") !== picture
                || document.querySelector("[data-class-name]").innerText !== name)""",
        arg=list(seen),
    )


def pictures(page: Page) -> list[str]:
    """Addresses of the pictures of the page on the screen."""
    found: list[str] = page.eval_on_selector_all(
        "[data-tile] img", "images => images.map(i => i.getAttribute('src'))"
    )
    return found


def send(page: Page, press: Any) -> None:
    """Send the page and wait for the next."""
    before = page.get_attribute("[data-annotate]", "data-shown")
    page.wait_for_timeout(TOO_SOON_MS)
    press()
    page.wait_for_function(
        "before => document.querySelector('[data-annotate]').dataset.shown !== before", arg=before
    )


def counts(live: Live, campaign: Any) -> dict[str, int]:
    """Answers that stand."""
    found: dict[str, int] = live.api("GET", f"/campaigns/{campaign['id']}/progress")["answers"]
    return found


def wait_for_answers(live: Live, campaign: Any, count: int) -> dict[str, int]:
    """Answers that stand once there are so many."""
    progress = live.wait(
        f"/campaigns/{campaign['id']}/progress", until=lambda p: sum(p["answers"].values()) == count
    )
    found: dict[str, int] = progress["answers"]
    return found
