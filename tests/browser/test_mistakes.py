"""From a cell of the confusion to a picture and back, by mouse and by keys, on a desk and on a phone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from app.db import connect
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.app.mistakes.kept import make_finished, publish
from tests.browser.conftest import sign_in
from tests.browser.keyboard import tab_to, tab_to_name
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def run(live: Live) -> Iterator[Run]:
    """A run of one seed that ended well, as its training process left it."""
    settings = Settings(data_dir=live.data_dir, _env_file=None)
    database, storage = connect(settings.sqlalchemy_url), FolderStorage(settings.artefact_dir)
    with database.write.begin() as session:
        run = make_finished(session, storage)
        publish(session, storage, run)
    yield run
    database.dispose()


def test_a_cell_leads_to_a_picture_and_back_by_keys_alone(desk: BrowserContext, live: Live, run: Run) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/runs/{run.id}")

    tab_to_name(page, "1: dog, taken for cat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 picture of “dog” taken for “cat”")).to_be_visible()
    tab_to_name(page, "Surest mistakes")
    page.keyboard.press("Enter")
    page.wait_for_url("**only=mistakes**")
    tab_to_name(page, "Of all classes")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="3 pictures")).to_be_visible()
    tab_to_name(page, "cat (90 %), is dog")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Taken for cat (90 %), is dog")).to_be_visible()
    page.wait_for_load_state()  # with the script that listens to keys
    shown = page.locator("img.large")
    assert shown.evaluate("image => image.complete && image.naturalWidth > 0 && image.clientWidth > 300")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Taken for cat (60 %), is owl")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="Taken for cat (90 %), is dog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="3 pictures")).to_be_visible()


def test_a_point_of_the_map_opens_its_picture(
    desk: BrowserContext, phone: BrowserContext, live: Live, run: Run
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/trials/{run.trials[0].id}/map")
    title = "target: owl, 90 %"
    box = page.locator("[data-map] a", has=page.get_by_text(title, exact=True)).bounding_box()
    assert box
    beside = box["x"] + box["width"] / 2 + 9, box["y"] + box["height"] / 2

    page.mouse.move(*beside)
    expect(page.locator("[data-peek]")).to_have_text(title)
    page.mouse.click(*beside)
    expect(page.get_by_role("heading", name="Taken for owl (90 %)")).to_be_visible()
    page.get_by_role("link", name="Back to the map").click()
    page.wait_for_url("**/map*")
    tab_to_name(page, "owl (40 %)")  # the same pictures as a list
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Taken for owl (40 %)")).to_be_visible()

    small = phone.new_page()
    sign_in(small, live)
    for path in ("pictures", "pictures?only=mistakes", "map", "map?by=class&predicted_class=2"):
        small.goto(f"{live.url}/trials/{run.trials[0].id}/{path}")
        assert small.evaluate(OVERFLOW) == 0, path
    point = small.locator("[data-map] a", has=small.get_by_text(title, exact=True)).bounding_box()
    assert point
    small.touchscreen.tap(point["x"] + 10, point["y"] + 2)
    expect(small.get_by_role("heading", name="Taken for owl (90 %)")).to_be_visible()
    assert small.evaluate(OVERFLOW) == 0


def test_the_map_is_looked_at_closer_by_wheel_buttons_and_keys_and_points_still_open(
    desk: BrowserContext, live: Live, run: Run
) -> None:
    page = desk.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/trials/{run.trials[0].id}/map")
    drawing, told = page.locator("[data-map]"), page.locator("[data-tools] output")
    point = page.locator("[data-map] a", has=page.get_by_text("target: owl, 90 %", exact=True))

    def middle() -> tuple[float, float]:
        box = point.bounding_box()
        assert box
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    page.get_by_role("button", name="Closer").click()
    expect(told).to_have_text("160 %")
    expect(point).to_be_attached()
    tab_to(page, "[data-map]")
    page.keyboard.press("+")
    expect(told).to_have_text("256 %")
    before = drawing.get_attribute("viewBox")
    page.keyboard.press("ArrowRight")
    assert drawing.get_attribute("viewBox") != before
    page.keyboard.press("0")
    expect(told).to_have_text("100 %")
    expect(page.get_by_role("button", name="Whole map")).to_be_disabled()
    at = middle()
    page.mouse.move(*at)
    for _ in range(4):
        page.mouse.wheel(0, -100)
    expect(told).to_have_text("655 %")
    near = middle()  # the middle of the sign lies a pixel beside the point, and that grows
    assert near == pytest.approx(at, abs=9), "what is under the pointer stays there"
    size = point.evaluate("point => point.getBoundingClientRect().width")
    assert size < 15, "a sign does not grow"
    shown = drawing.get_attribute("viewBox")
    page.mouse.down()
    page.mouse.move(at[0] + 40, at[1] + 30, steps=4)
    page.mouse.up()
    assert drawing.get_attribute("viewBox") != shown
    assert page.url.endswith("/map"), "a drag is no click"
    assert middle() == pytest.approx((near[0] + 40, near[1] + 30), abs=3)
    page.mouse.click(near[0] + 48, near[1] + 30)
    expect(page.get_by_role("heading", name="Taken for owl (90 %)")).to_be_visible()
