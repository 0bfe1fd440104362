"""How much of what people are asked is asked again, without a database."""

import pytest

from app.annotation.mixing import chance, mixture

SEED = "5a" * 32


@pytest.mark.parametrize("num_classes", [2, 3, 4, 5, 10, 50, 1000])
def test_yes_stays_rare_with_first_questions_and_without(num_classes: int) -> None:
    law = mixture(1 / num_classes)
    bound = 0.6 if num_classes == 2 else 1 / num_classes + 0.25

    # Whatever returns is taken for a yes; of the settled ones one in twenty turns out a yes.
    among_first = (1 / num_classes + law.returning) / (1 + law.returning * (1 + law.settled))
    without = (1 + 0.05 * law.settled_later) / (1 + law.settled_later)

    assert among_first < bound
    assert without < bound


@pytest.mark.parametrize("num_classes", [2, 3, 4, 5, 10, 50, 1000])
def test_more_may_return_than_arise(num_classes: int) -> None:
    law = mixture(1 / num_classes)

    assert law.returning > 1 / num_classes
    assert (law.settled > 0) == (num_classes == 2)
    confirmed_noes = 0.21 if num_classes == 2 else 0  # there a no is a true label, too
    assert law.answers == pytest.approx(1 + 1 / num_classes + confirmed_noes + 0.05)


def test_chance_follows_from_seed_and_place_and_is_even() -> None:
    drawn = [chance(SEED, place) for place in range(4_000)]

    assert drawn == [chance(SEED, place) for place in range(4_000)]
    assert drawn != [chance("5b" * 32, place) for place in range(4_000)]
    assert drawn[0] != chance(SEED, 0, 1)
    # 0.5 and 1 / 12, within five standard deviations.
    mean = sum(drawn) / len(drawn)
    assert abs(mean - 0.5) < 5 * (1 / 12 / len(drawn)) ** 0.5
    assert abs(sum((x - mean) ** 2 for x in drawn) / len(drawn) - 1 / 12) < 0.006
