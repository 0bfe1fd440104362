"""From the table of runs to their comparison by the keyboard alone, on a desk and as narrow as a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from app.clock import utc_now
from app.db import connect
from app.runs import trials
from app.runs.models import Run
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.browser.conftest import DESK, PHONE, sign_in
from tests.browser.keyboard import tab_to
from tests.factories import make_run
from tests.live import Live

# What is on the page does not depend on the database behind it: one of the two installations is enough.
pytestmark = [pytest.mark.browser, pytest.mark.parametrize("live", ["embedded"], indirect=True)]

EPOCHS = 4


@pytest.fixture
def runs(live: Live) -> Iterator[list[Run]]:
    """Two runs of two seeds that have ended, with their curves; the second is better by 20 points."""
    settings = Settings(data_dir=live.data_dir, _env_file=None)
    database = connect(settings.sqlalchemy_url)
    made = []
    for method, reached in (("gac", 0.6), ("clarinet-plus", 0.8)):
        with database.write.begin() as session:
            run = make_run(
                session,
                FolderStorage(settings.artefact_dir),
                seeds=(0, 1),
                train=2,
                method=method,
                preset="short" if method == "gac" else "digits-quick",
                queued_at=utc_now(),
            )
            run.name = f"Compared {method}"
            made.append(run)
            for trial in run.trials:
                claim = trials.claim_trial(session, trial.id, by="test", now=utc_now())
                assert claim is not None
                for epoch in range(1, EPOCHS + 1):
                    accuracy = reached * epoch / EPOCHS + 0.02 * trial.seed
                    trials.record_epoch(session, claim, report(epoch, accuracy), now=utc_now())
                result = {"scored": {"split": "test", "images": 40, "of": 40}}
                trials.succeed_trial(
                    session, claim, target_accuracy=reached + 0.02 * trial.seed, result=result, now=utc_now()
                )
    yield made
    database.dispose()


def report(epoch: int, accuracy: float) -> trials.Report:
    return trials.Report(
        epoch=epoch,
        epochs=EPOCHS,
        step=epoch,
        seconds=float(epoch),
        losses={"complementary": 1 / epoch},
        target_accuracy=accuracy,
        source_estimate=None,
    )


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "narrow"])
def test_runs_are_marked_compared_and_taken_away_as_a_table(
    chromium: Browser, live: Live, runs: list[Run], size: Any, tmp_path: Path
) -> None:
    context = chromium.new_context(viewport=size)
    page = context.new_page()
    sign_in(page, live)
    page.goto(f"{live.url}/runs")
    for run in reversed(runs):  # as they stand in the list
        tab_to(page, f"input[name=run][value='{run.id}']")
        page.keyboard.press("Space")
    tab_to(page, "button[value=compare]")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Compare runs")).to_be_visible()
    curves = page.get_by_role("img", name="Accuracy on the target by epoch")
    expect(curves.locator("polyline")).to_have_count(2)
    for words in ("Epoch", "Accuracy on the target", "0 %", "100 %"):
        expect(curves.get_by_text(words, exact=True)).to_be_attached()
    rows = page.get_by_role("region", name="Results").locator("tbody tr")
    first = rows.filter(has_text="the first").first
    expect(first).to_contain_text("Compared clarinet-plus")
    expect(first).to_contain_text("81.0 %")
    other = rows.filter(has_text="Compared gac")
    expect(other).to_contain_text("61.0 %")
    expect(other).to_contain_text("-20.0 (")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab_to(page, "a[href*='/results.csv']")
    with page.expect_download() as taken:
        page.keyboard.press("Enter")
    taken.value.save_as(tmp_path / "results.csv")
    table = (tmp_path / "results.csv").read_text()
    assert table.count("\n") == 3
    assert "0.81" in table
    assert "Compared gac" in table
    context.close()
