"""Many tabs of one browser on a run that trains, behind the six connections that HTTP/1.1 gives them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from app.claims import Claim
from app.clock import utc_now
from app.db import Database, connect
from app.runs import trials
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.browser.conftest import sign_in
from tests.factories import make_run
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

HIDE = """state => {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@dataclass(frozen=True)
class Training:
    """A run whose epochs this test writes, as its training process would."""

    database: Database
    run: Run
    claim: Claim

    def report(self, epoch: int, accuracy: float) -> None:
        """An epoch ends."""
        figures = trials.Report(
            epoch=epoch,
            epochs=2,
            step=epoch,
            seconds=float(epoch),
            losses={"complementary": 0.5},
            target_accuracy=accuracy,
            source_estimate=None,
        )
        with self.database.write.begin() as session:
            trials.beat(session, self.claim, now=utc_now())
            trials.record_epoch(session, self.claim, figures, now=utc_now())


@pytest.fixture
def training(live: Live) -> Iterator[Training]:
    settings = Settings(data_dir=live.data_dir, _env_file=None)
    database = connect(settings.sqlalchemy_url)
    with database.write.begin() as session:
        run = make_run(session, FolderStorage(settings.artefact_dir), train=2, queued_at=utc_now())
        claim = trials.claim_trial(session, run.trials[0].id, by="test", now=utc_now())
    assert claim is not None
    yield Training(database, run, claim)
    with database.write.begin() as session:
        trials.end_cancelled(session, claim, now=utc_now())
    database.dispose()


def test_eight_tabs_share_one_stream_and_each_shows_the_epoch_that_ended(
    desk: BrowserContext, live: Live, training: Training
) -> None:
    streams: list[Request] = []

    def is_stream(request: Request) -> bool:
        return "/live?" in request.url

    desk.on("request", lambda request: streams.append(request) if is_stream(request) else None)
    for ended in ("requestfinished", "requestfailed"):
        desk.on(ended, lambda request: streams.remove(request) if is_stream(request) else None)
    tabs = [desk.new_page() for _ in range(8)]
    sign_in(tabs[0], live)
    for tab in tabs:
        tab.goto(f"{live.url}/runs/{training.run.id}")  # the seventh would wait for ever if each had a stream
    labels = [mark(tab, "section:has-text('Labels it rests on')") for tab in tabs]
    tabs[3].get_by_text("The same as a table").click()

    training.report(1, 0.125)
    for tab in tabs:
        expect(tab.locator("p", has_text="1 of 2 epochs")).to_be_attached()
        expect(tab.get_by_role("rowheader", name="0").locator("..")).to_contain_text("12.5 %")
        expect(tab.locator("[data-legend]")).to_contain_text("12.5 %")
    assert len(streams) == 1
    assert all(is_marked(tab, label) for tab, label in zip(tabs, labels, strict=True))
    expect(tabs[3].get_by_role("region", name="Accuracy by epoch")).to_be_visible()  # as it was unfolded

    leader = streams[0].frame.page
    leader.evaluate(HIDE, "hidden")
    training.report(2, 0.25)
    for tab in tabs:
        if tab is not leader:
            expect(tab.locator("p", has_text="2 of 2 epochs")).to_be_attached()
    expect(leader.locator("p", has_text="1 of 2 epochs")).to_be_attached()  # nobody looks at it
    leader.evaluate(HIDE, "visible")
    expect(leader.locator("p", has_text="2 of 2 epochs")).to_be_attached()
    for tab in tabs:
        tab.evaluate(HIDE, "hidden")
    tabs[0].wait_for_timeout(300)
    assert streams == []


def mark(tab: Page, selector: str) -> str:
    """Note on an element that it is this very one; gives the selector."""
    tab.locator(selector).evaluate("element => { element.isTheSame = true }")
    return selector


def is_marked(tab: Page, selector: str) -> bool:
    """Whether the element is the one that was marked, and not another in its place."""
    return bool(tab.locator(selector).evaluate("element => element.isTheSame === true"))
