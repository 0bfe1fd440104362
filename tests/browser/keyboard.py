"""Reaching things on a page by the keyboard alone."""

import pytest
from playwright.sync_api import Page

MOST_TABS = 120
# No element has the focus while one page goes and the next one comes.
IS = "selector => document.activeElement?.matches(selector) ?? false"
NAME = """() => {
    const e = document.activeElement;
    return e && (e.labels?.length ? e.labels[0].textContent : e.ariaLabel || e.innerText || e.textContent);
}"""


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(IS, selector):
            return
    pytest.fail(f"{selector} is not reached by {MOST_TABS} presses of Tab")


def tab_to_name(page: Page, name: str) -> None:
    """Press Tab until what people call `name` has the focus: its label, or what stands on it."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if (page.evaluate(NAME) or "").strip() == name:
            return
    pytest.fail(f"{name!r} is not reached by {MOST_TABS} presses of Tab")
