"""`clarinet bench live` has people look at a run that trains."""

import pytest

from worker.bench.live import as_row, as_text, measure_live, ratio_of


@pytest.mark.long
def test_people_are_told_of_epochs_while_another_page_is_asked_for() -> None:
    rows = list(
        measure_live("", viewers=3, seconds=2, repeats=1, say=lambda _: None, ways=("nobody", "stream"))
    )

    alone, watched = rows
    assert (alone.viewers, alone.told, watched.viewers) == (0, 0, 3)
    assert watched.told >= 6
    assert watched.told_bytes > 1000
    assert ratio_of(rows, "stream") > 0
    assert "3 people (stream): /campaigns" in as_text(watched)
    assert as_row(watched)["way"] == "stream"
