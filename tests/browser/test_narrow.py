"""A desk's browser that is enlarged fourfold is 320 pixels wide and has keys: nothing lies over anything."""

import pytest
from playwright.sync_api import Browser, BrowserContext

from app.campaigns import openings
from app.db import connect
from app.journal.models import Action
from app.journal.writing import write
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.browser.conftest import PATIENCE_S, sign_in
from tests.factories import answer, make_campaign, make_dataset, make_user, questions_of
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

# Pairs of controls, by their words, of which what stands on one lies over what stands on the other.
OVERLAPPING = """() => {
    const range = document.createRange();
    const shown = [...document.querySelectorAll("main button, main summary, main .bar a, main h1")]
        .filter(e => e.checkVisibility({ visibilityProperty: true }))
        .map(e => {
            range.selectNodeContents(e);
            return [e.textContent.trim(), e, range.getBoundingClientRect()];
        })
        .filter(([, , box]) => box.width && box.height);
    const besides = (a, b) => a.left < b.right - 1 && b.left < a.right - 1;
    const isOver = (a, b) => besides(a, b) && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    return shown.flatMap(([one, e, box], at) => shown.slice(at + 1)
        .filter(([, other, theirs]) => !e.contains(other) && !other.contains(e) && isOver(box, theirs))
        .map(([other]) => [one, other]));
}"""


@pytest.fixture(scope="module")
def paths(live: Live) -> dict[str, str]:
    """Pages of a campaign with a long name in which somebody answered."""
    settings = Settings(data_dir=live.data_dir, _env_file=None)
    database, storage = connect(settings.sqlalchemy_url), FolderStorage(settings.artefact_dir)
    with database.write.begin() as session:
        dataset = make_dataset(session, storage, train=20)
        campaign = make_campaign(session, dataset=dataset, name="The guitars of the summer")
        for item in campaign.classes:
            item.example_ids = [openings.examples_to_label(session, dataset.id, end_position=10**6)[0][1]]
        answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=make_user(session))
        # A name may be one word of the greatest length.
        facts = {"campaign": "W" * 120, "classes": "W" * 150}
        write(session, Action.CAMPAIGN_OPENED, by=None, campaign_id=campaign.id, details=facts)
        found = {
            "screen": f"/annotate/{campaign.id}?mode=card",
            "quality": f"/campaigns/{campaign.id}/quality",
            "disk": "/disk",
            "journal": "/journal",
        }
    database.dispose()
    return found


def narrow(chromium: Browser, desk: BrowserContext, live: Live, *, language: str) -> BrowserContext:
    """Signed in, 320 pixels wide, with a mouse."""
    sign_in(desk.new_page(), live)
    context = chromium.new_context(viewport={"width": 320, "height": 640}, locale=language)
    context.set_default_timeout(PATIENCE_S * 1000)
    context.add_cookies(desk.cookies())  # type: ignore[arg-type]  # what it gives it takes
    return context


def test_keys_lie_over_nothing_and_the_name_can_be_read(
    chromium: Browser, desk: BrowserContext, live: Live, paths: dict[str, str]
) -> None:
    context = narrow(chromium, desk, live, language="de-DE")
    page = context.new_page()
    page.goto(f"{live.url}{paths['screen']}")
    page.wait_for_selector("[data-shown]")

    overlapping = page.evaluate(OVERLAPPING)
    name = page.locator("h1").bounding_box()
    words = page.locator("[data-answer=unusable]").inner_text()
    context.close()

    assert words.startswith("Nicht brauchbar")
    assert overlapping == []
    assert name
    assert name["width"] > 80


def test_pictures_beside_a_class_are_whole_and_the_journals_lines_have_no_holes(
    chromium: Browser, desk: BrowserContext, live: Live, paths: dict[str, str]
) -> None:
    context = narrow(chromium, desk, live, language="en-GB")
    page = context.new_page()
    page.set_viewport_size({"width": 320, "height": 568})

    page.goto(f"{live.url}{paths['screen']}")
    page.wait_for_selector("[data-shown]")
    picture = page.locator("[data-guide]:not([hidden]) button > img").bounding_box()
    above = page.locator("[data-answer=no]").bounding_box()
    page.goto(f"{live.url}{paths['journal']}")
    hidden = page.locator(".scroll").evaluate("region => region.scrollWidth - region.clientWidth")
    context.close()

    assert picture
    assert above
    assert 24 <= picture["height"] <= above["y"] - picture["y"]
    assert hidden == 0


def test_menu_and_tables_keep_together(
    chromium: Browser, desk: BrowserContext, live: Live, paths: dict[str, str]
) -> None:
    context = narrow(chromium, desk, live, language="en-GB")
    page = context.new_page()

    page.goto(f"{live.url}{paths['quality']}")
    people, journal = (
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).bounding_box()
        for name in ("People", "Journal")
    )
    buttons = page.locator("tbody tr").first.get_by_role("button").all()
    reaches = [button.evaluate("button => button.getBoundingClientRect().right") for button in buttons]
    page.goto(f"{live.url}{paths['disk']}")
    hidden = page.locator(".scroll").first.evaluate("region => region.scrollWidth - region.clientWidth")
    context.close()

    assert people
    assert journal
    assert people["y"] == journal["y"]
    assert 0 < journal["x"] - people["x"] - people["width"] < 40
    assert len(reaches) == 2
    assert max(reaches) <= 320, "what is done about somebody is in sight"
    assert hidden == 0
