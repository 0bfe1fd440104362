"""What is drawn by class, where people err and where two models are compared; see `coverage_by_class`."""

import pytest

from app.evaluations.estimating import compare
from app.evaluations.weighted import Alike, compare_weighted, weight_of
from tests.app.evaluations.coverage_by_class import compared_by_class, corrected_by_class

SHAPE = "ten, each half of the one before"


def test_equal_weights_are_the_exact_test() -> None:
    found = compare_weighted([Alike(7, 20, 9, 200), Alike(7, 3, 1, 100)])

    assert found == compare(23, 10, 300)


def test_with_weights_that_hardly_differ_the_interval_is_that_of_equal_ones() -> None:
    plain = compare(23, 10, 300)

    found = compare_weighted([Alike(1, 20, 9, 200), Alike(1 + 1e-9, 3, 1, 100)])

    assert (found.estimate, found.low, found.high) == pytest.approx((plain.estimate, plain.low, plain.high))
    assert found.p_value == pytest.approx(plain.p_value, abs=0.02)


def test_each_picture_counts_by_its_weight_and_the_other_way_round_is_the_same() -> None:
    parts = [Alike(10, 5, 1, 50), Alike(1, 0, 12, 50)]
    found = compare_weighted(parts)
    other = compare_weighted(
        [Alike(part.weight, part.only_second, part.only_first, part.asked) for part in parts]
    )

    assert found.estimate == pytest.approx((10 * 4 - 12) / 550)
    assert found.low < found.estimate < found.high
    assert (other.estimate, other.low, other.high) == pytest.approx(
        (-found.estimate, -found.high, -found.low)
    )
    assert other.p_value == found.p_value


def test_a_picture_in_both_had_the_chance_of_the_class_that_ends_first() -> None:
    first, second = [(1000, 20, 400), (200, 20, 1900)], [(600, 30, 700), (600, 30, 500)]

    assert weight_of(first, second, (0, 0)) == 1000 / 20
    assert weight_of(first, second, (1, 1)) == 600 / 30


@pytest.mark.parametrize(
    "parts", [[], [Alike(1, 0, 0, 0)], [Alike(0, 0, 0, 1)], [Alike(1, 2, 2, 3)], [Alike(1, -1, 0, 3)]]
)
def test_what_cannot_be_is_refused(parts: list[Alike]) -> None:
    with pytest.raises(ValueError, match=r"Alike|no picture"):
        compare_weighted(parts)


@pytest.mark.parametrize("other_simple", [False, True])
def test_a_comparison_covers_and_equals_are_seldom_called_different(*, other_simple: bool) -> None:
    covered, _, different = compared_by_class(
        SHAPE, (0.8, 0.8), 200, other_simple=other_simple, repetitions=200
    )

    assert covered >= 0.91
    assert different <= 0.09


@pytest.mark.parametrize(("truth", "people", "known"), [(0.6, (0.83, 0.9), 50), (0.95, (0.97, 0.98), 200)])
def test_a_corrected_draw_by_class_covers(truth: float, people: tuple[float, float], known: int) -> None:
    assert corrected_by_class(SHAPE, truth, 200, people, known, repetitions=300)[0] >= 0.92
