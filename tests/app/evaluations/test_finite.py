"""The interval of a share where the draw is a large part of all there is."""

import pytest
from scipy.stats import hypergeom

from app.evaluations.finite import ends_of_share
from clarinet.recipes.binomial import clopper_pearson


@pytest.mark.parametrize("population", [1, 60, 108])
def test_of_all_pictures_both_ends_are_the_share(population: int) -> None:
    for yes in range(population + 1):
        assert ends_of_share(yes, population, population) == (yes / population, yes / population)


@pytest.mark.parametrize(("asked", "population"), [(1, 2), (30, 108), (54, 108), (107, 108), (150, 400)])
def test_it_holds_every_truth_in_95_of_100_draws_or_more_and_is_never_wider_than_the_binomial_one(
    asked: int, population: int
) -> None:
    ends = [ends_of_share(yes, asked, population) for yes in range(asked + 1)]

    for hits in range(population + 1):
        held = [low <= hits / population <= high for low, high in ends]
        chances = hypergeom.pmf(range(asked + 1), population, hits, asked)
        assert sum(chances[held]) >= 0.95 - 1e-9
    for yes, (low, high) in enumerate(ends):
        wide = clopper_pearson(yes, asked)
        assert wide[0] <= low <= yes / asked <= high <= wide[1]


def test_a_draw_of_half_is_about_as_exact_as_twice_the_pictures_of_many() -> None:
    low, high = ends_of_share(360, 400, 800)
    wide = clopper_pearson(720, 800)

    assert high - low == pytest.approx(wide[1] - wide[0], rel=0.02)


def test_a_small_part_has_the_interval_of_a_draw_without_end() -> None:
    assert ends_of_share(90, 100, 2001) == clopper_pearson(90, 100)
    assert ends_of_share(90, 100, 2000) != clopper_pearson(90, 100)


@pytest.mark.parametrize("numbers", [(-1, 5, 9), (6, 5, 9), (0, 0, 9), (5, 10, 9)])
def test_what_cannot_be_is_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"of"):
        ends_of_share(*numbers)
