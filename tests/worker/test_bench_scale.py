"""`clarinet bench scale` measures what it says, on both databases."""

import json

import pytest

from tests.conftest import postgres_database
from worker.bench.scale import BACKGROUND, DOWNLOADS, LEFT, PAGES, as_row, as_text, measure_scale

EXAMPLES = LEFT + 600


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_every_page_and_download_is_measured(kind: str) -> None:
    said: list[str] = []
    if kind == "sqlite":
        figures = measure_scale("", EXAMPLES, say=said.append)
    else:
        with postgres_database() as url:
            figures = measure_scale(url, EXAMPLES, say=said.append)

    assert (figures.database, figures.examples) == (kind, EXAMPLES)
    assert set(figures.pages_ms) == set(PAGES)
    assert set(figures.answers_s) == set(DOWNLOADS)
    assert set(figures.background_s) == set(figures.background_cpu_s) == set(BACKGROUND)
    assert all(took > 0 for took in (*figures.pages_ms.values(), *figures.answers_s.values()))
    assert 0 < figures.late_pair_ms[0] <= figures.late_pair_ms[1]
    assert figures.answers_peak_mb["csv"] >= figures.base_mb > 0
    assert json.loads(json.dumps(as_row(figures)))["examples"] == EXAMPLES
    assert f"{EXAMPLES} examples" in as_text(figures)
    assert said
