"""`clarinet bench scale` measures what it says, on both databases."""

import json
import mmap
import time

import pytest

from tests.conftest import postgres_database
from worker.bench.scale import BACKGROUND, DOWNLOADS, LEFT, PAGES, Memory, as_row, as_text, measure_scale

EXAMPLES = LEFT + 600


@pytest.mark.long
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
    # Not compared with each other: what the tests before left may be given back to the system meanwhile.
    assert all(
        peak > 0 for peak in (figures.base_mb, figures.labels_peak_mb, *figures.answers_peak_mb.values())
    )
    assert json.loads(json.dumps(as_row(figures)))["examples"] == EXAMPLES
    assert f"{EXAMPLES} examples" in as_text(figures)
    assert said


def test_a_peak_is_seen_although_it_is_gone_at_the_end() -> None:
    with Memory() as memory:
        before = memory.peak_mb
        # Pages of its own: a block that Python asks for may lie in memory that an earlier test gave back.
        with mmap.mmap(-1, 300_000_000) as held:
            for offset in range(0, len(held), mmap.PAGESIZE):
                held[offset] = 1
            time.sleep(0.2)

    assert memory.peak_mb > before + 200
