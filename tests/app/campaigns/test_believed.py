"""Draws by a model's belief."""

import tracemalloc

import numpy as np
import pytest

from app.campaigns import believed
from app.campaigns.believed import KeptBeliefs, draw_by_belief

SEED = "5e" * 32


def test_the_law_holds_and_every_class_that_is_possible_can_come() -> None:
    beliefs = np.array([[60_000, 5_000, 535, 0]] * 4_000, np.uint16)
    possible = np.ones((4_000, 4), np.bool_)
    possible[:, 1] = False
    kept = KeptBeliefs(np.arange(4_000), beliefs, possible)

    drawn, chances = draw_by_belief(SEED, kept, round_=1, floor_percent=30)
    again, _ = draw_by_belief(SEED, KeptBeliefs.from_bytes(kept.as_bytes()), round_=1, floor_percent=30)

    share = 60_000 / 60_535
    expected = np.array([0.7 * share + 0.1, 0, 0.7 * (1 - share) + 0.1, 0.1])
    counts = np.bincount(drawn.classes, minlength=4)
    assert counts[1] == 0
    assert np.all(np.abs(counts / 4_000 - expected) < 4 * np.sqrt(expected * (1 - expected) / 4_000) + 1e-9)
    assert chances == pytest.approx(expected[drawn.classes])
    assert np.array_equal(drawn.classes, again.classes)
    assert np.array_equal(drawn.positions, again.positions)


def test_the_draws_take_the_same_memory_for_any_number_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    count, num_classes = 10_000, 400
    beliefs = np.random.default_rng(0).integers(0, 65_536, (count, num_classes), dtype=np.uint16)
    kept = KeptBeliefs(np.arange(count), beliefs, np.ones((count, num_classes), np.bool_))

    tracemalloc.start()
    drawn, chances = draw_by_belief(SEED, kept, round_=1, floor_percent=20)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    monkeypatch.setattr(believed, "AT_ONCE", 777 * num_classes)
    others, same = draw_by_belief(SEED, kept, round_=1, floor_percent=20)

    assert most < 75e6  # all at once takes 160 MB
    assert np.array_equal(drawn.classes, others.classes)
    assert np.array_equal(drawn.positions, others.positions)
    assert np.array_equal(chances, same)
