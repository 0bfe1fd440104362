"""The alarm for "can't tell" that concentrates: quiet where nothing does, quick where something does."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from app.quality.skips import Concentration, concentrations, poisson_tail

K, PEOPLE = 10, 6
BLOCK = 30
LOOKS = 20  # times that somebody looks at the audit while the campaign goes on


def looks(rates: NDArray[np.float64], *, rounds: int, seed: int = 0) -> list[list[Concentration]]:
    """What is found after each round, in which every person answers two blocks of BLOCK questions.

    Args:
        rates: (P, K) with which each person cannot tell.
        rounds: how many.
        seed: of the answers.
    """
    chance = np.random.default_rng(seed)
    skips, answers = np.zeros(rates.shape, dtype=np.int64), np.zeros(rates.shape, dtype=np.int64)
    found = []
    for _ in range(rounds):
        for person in range(len(rates)):
            for class_ in chance.integers(0, rates.shape[1], 2).tolist():  # two blocks
                answers[person, class_] += BLOCK
                skips[person, class_] += chance.binomial(BLOCK, rates[person, class_])
        found.append(concentrations(skips, answers))
    return found


def everybody(rate: float) -> NDArray[np.float64]:
    return np.full((PEOPLE, K), rate)


def test_poisson_tail_by_hand() -> None:
    # P(X >= 2) = 1 - e^-m (1 + m)
    assert poisson_tail(2, 1.5) == pytest.approx(1 - math.exp(-1.5) * 2.5)
    assert poisson_tail(1, 0.0) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.005, 0.03, 0.15])
def test_false_alarms_are_rare_over_a_whole_campaign(rate: float) -> None:
    alarmed = sum(any(looks(everybody(rate), rounds=LOOKS, seed=seed)) for seed in range(200))

    assert alarmed <= 0.05 * 200


@pytest.mark.long
def test_people_who_differ_a_little_raise_no_alarm() -> None:
    rates = np.repeat(np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.05])[:, None], K, axis=1)

    alarmed = sum(any(looks(rates, rounds=LOOKS, seed=seed)) for seed in range(200))

    assert alarmed <= 0.05 * 200


@pytest.mark.parametrize("seed", range(20))
def test_half_of_one_class_being_skipped_is_found_within_300_answers(seed: int) -> None:
    rates = everybody(0.02)
    rates[:, 3] = 0.5
    chance = np.random.default_rng(seed)
    answers = np.full((PEOPLE, K), 300 // PEOPLE)

    (found,) = concentrations(chance.binomial(answers, rates), answers)

    assert (found.person, found.class_, found.answers) == (None, 3, 300)
    assert 120 < found.skips < 180


def test_half_of_the_images_of_one_class_being_skipped_is_mostly_found_within_300_answers() -> None:
    """Of 300 questions about the class, only one in K shows it, so a mere fifteen more are skipped."""
    found = 0
    for seed in range(100):
        rates = everybody(0.01)
        rates[:, 3] += 0.5 / K
        chance = np.random.default_rng(seed)
        answers = np.full((PEOPLE, K), 300 // PEOPLE)
        found += 3 in [item.class_ for item in concentrations(chance.binomial(answers, rates), answers)]

    assert found >= 85


def test_one_person_who_skips_half_of_one_class_is_found() -> None:
    for seed in range(20):
        rates = everybody(0.02)
        rates[2, 3] = 0.5
        chance = np.random.default_rng(seed)
        answers = np.full((PEOPLE, K), 40)

        found = concentrations(chance.binomial(answers, rates), answers)

        assert {(item.person, item.class_) for item in found} & {(2, 3), (None, 3)}


def test_one_person_who_skips_everything_is_named_and_no_class_is() -> None:
    for seed in range(20):
        rates = everybody(0.02)
        rates[4] = 0.4
        chance = np.random.default_rng(seed)
        answers = np.full((PEOPLE, K), 40)

        found = concentrations(chance.binomial(answers, rates), answers)

        assert [(item.person, item.class_) for item in found] == [(4, None)]


def test_whoever_has_met_only_one_class_says_nothing_about_it() -> None:
    skips, answers = np.zeros((2, K), dtype=np.int64), np.zeros((2, K), dtype=np.int64)
    skips[0, 5], answers[0, 5] = 15, 30
    answers[1] = 30

    assert all(item.class_ is None for item in concentrations(skips, answers))


def test_nobody_is_no_alarm() -> None:
    nothing = np.zeros((0, K), dtype=np.int64)

    assert concentrations(nothing, nothing) == []
