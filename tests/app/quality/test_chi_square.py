"""The chi-square test against printed tables and closed forms."""

import math

import pytest

from app.quality import chi_square


@pytest.mark.parametrize(
    ("degrees", "statistic", "p_value"),
    [
        # critical values of the chi-square distribution, as every textbook prints them
        (1, 3.841, 0.05),
        (1, 10.828, 0.001),
        (9, 16.919, 0.05),
        (9, 27.877, 0.001),
        (30, 43.773, 0.05),
        (100, 149.449, 0.001),
        (100, 70.065, 0.99),
    ],
)
def test_agrees_with_printed_tables(degrees: int, statistic: float, p_value: float) -> None:
    assert chi_square.upper_gamma(degrees / 2, statistic / 2) == pytest.approx(p_value, rel=2e-3)


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 1.9, 2.1, 10.0, 80.0])
def test_agrees_with_closed_forms(x: float) -> None:
    assert chi_square.upper_gamma(1, x) == pytest.approx(math.exp(-x), rel=1e-10)
    assert chi_square.upper_gamma(2, x) == pytest.approx((1 + x) * math.exp(-x), rel=1e-10)
    assert chi_square.upper_gamma(0.5, x) == pytest.approx(math.erfc(math.sqrt(x)), rel=1e-10)


def test_falls_from_one_to_zero() -> None:
    values = [chi_square.upper_gamma(4.5, x / 10) for x in range(600)]

    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-15


def test_uniform_counts() -> None:
    fair = chi_square.uniform([20, 15, 25])

    assert fair.statistic == pytest.approx(2.5)
    assert fair.degrees == 2
    assert fair.p_value == pytest.approx(math.exp(-1.25))


def test_a_loaded_die_is_found() -> None:
    assert chi_square.uniform([100, 100, 100, 100, 100, 200]).p_value < 1e-9


def test_same_rate_of_equal_rates_is_no_surprise() -> None:
    assert chi_square.same_rate([5, 10, 20], [50, 100, 200]).p_value == pytest.approx(1)


def test_same_rate_finds_the_class_nobody_can_tell() -> None:
    table = chi_square.same_rate([1, 2, 60], [100, 100, 100])

    assert table.degrees == 2
    assert table.p_value < 1e-9


@pytest.mark.parametrize(("hits", "totals"), [([], []), ([0, 0], [0, 0]), ([0, 0], [9, 9]), ([3], [9])])
def test_nothing_to_compare_is_no_surprise(hits: list[int], totals: list[int]) -> None:
    assert chi_square.same_rate(hits, totals).p_value == 1


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="shorter"):
        chi_square.goodness_of_fit([1, 2], [1.0])
