"""Long names break no page of a phone, and every thing is reached from what it belongs to."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sqlalchemy import select

from app.accounts.models import Role, User
from app.db import connect
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.browser.conftest import sign_in
from tests.browser.story import ONE_WORD, WORDS, Names, tell
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

HEIGHT = 568
WIDTHS = (390, 320)
# The page's width, and what sticks out of the width that was asked for without scrolling by itself.
# The window's own width is no measure: it grows with a page that is too wide.
STICKING_OUT = """async width => {
    const scrolls = element => {
        for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
            if (getComputedStyle(e).overflowX !== "visible") return true;
        return false;
    };
    const outside = () => [...document.body.querySelectorAll("*")].filter(element => {
        const box = element.getBoundingClientRect();
        return box.width > 0 && box.right > width + 1 && !scrolls(element);
    });
    for (let frame = 0; frame < 30 && outside().length; frame++) // a curve is drawn anew for another width
        await new Promise(requestAnimationFrame);
    const name = e => `${e.tagName.toLowerCase()} "${e.textContent.trim().slice(0, 40)}"`;
    // What is done about a row is in sight, however far its figures reach.
    const hidden = [...document.querySelectorAll("td :is(button, summary)")].filter(element => {
        const box = element.getBoundingClientRect();
        return element.checkVisibility() && (box.right > width + 1 || box.left < 0);
    });
    return [document.documentElement.scrollWidth, [...outside(), ...hidden].map(name)];
}"""


def story(live: Live, names: Names) -> dict[str, str]:
    """One of everything in the installation's own database."""
    settings = Settings(data_dir=Path(live.data_dir), _env_file=None)
    database = connect(settings.sqlalchemy_url)
    with database.write() as session:
        admin = session.scalars(select(User).where(User.role == Role.ADMIN)).first()
        assert admin is not None
        pages = tell(session, FolderStorage(settings.artefact_dir), names, admin=admin)
    database.dispose()
    return pages


def narrow(chromium: Browser, live: Live) -> tuple[BrowserContext, Page]:
    """An admin on a phone."""
    context = chromium.new_context(
        viewport={"width": WIDTHS[0], "height": HEIGHT}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    sign_in(page, live)
    return context, page


@pytest.mark.parametrize("names", [ONE_WORD, WORDS], ids=["one word", "words"])
def test_long_names_break_no_page(chromium: Browser, live: Live, names: Names) -> None:
    pages = story(live, names)
    context, page = narrow(chromium, live)

    broken: dict[str, Any] = {}
    for name, path in pages.items():
        page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
        answered = page.goto(f"{live.url}{path}")
        assert answered is not None
        assert answered.status == (404 if name == "not-found" else 200), name
        if name.startswith("annotate") and name != "annotate-list":
            page.wait_for_selector("[data-shown]")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            reaches, out = page.evaluate(STICKING_OUT, width)
            if reaches > width or out:
                broken[f"{name} at {width}"] = (reaches, out[:5])
    context.close()

    assert broken == {}


def test_every_thing_links_to_what_it_belongs_to_and_back(chromium: Browser, live: Live) -> None:
    pages = story(live, Names(" of links"))
    context, page = narrow(chromium, live)
    addresses = {name: f"{live.url}{path}" for name, path in pages.items()}
    source, target, campaign, run, model = (
        pages[name] for name in ("dataset-source", "dataset-target", "campaign", "run", "model")
    )
    linked = {
        source: (campaign, f"/runs?dataset_id={source.split('/')[-1]}", pages["models-of-dataset"]),
        target: (run,),
        campaign: (source, pages["runs-of-campaign"], pages["campaign-imports"], pages["journal"]),
        run: (campaign, source, target, model),
        model: (run, campaign, source, target),
        pages["runs-of-campaign"]: (run, campaign),
        pages["models-of-dataset"]: (model, source),
        pages["campaign-imports"]: (campaign, source),
        pages["journal"]: ("/journal", "/account"),
    }

    missing = []
    for path, others in linked.items():
        page.goto(f"{live.url}{path}")
        there = page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
        finals = {_final(page, href) if "/trials/" in href else href for href in there}
        missing += [f"{path} -> {other}" for other in others if f"{live.url}{other}" not in finals]
    page.goto(addresses["dataset-source"])
    expect(page.get_by_text("It cannot be deleted while 2 campaigns use it.")).to_be_visible()
    context.close()

    assert missing == []


def _final(page: Page, href: str) -> str:
    return page.request.get(href).url
