"""Whether somebody looks at the pictures, told from answers alone.

The table of docs/results/quality.md: `python -m tests.app.quality.idlers`.
"""

import math

import numpy as np
import pytest

from app.quality.dawid_skene import INDEPENDENT, Estimate, estimate, spreads, thresholds_of
from app.quality.looking import ERRORS, MARKED, WORST, evidence
from tests.app.quality.idlers import IDLERS, MARKED_AFTER, PAUSED_AFTER, Campaign, accused, is_found


def fitted(prior: float, people: int, questions: int) -> Estimate:
    """As if everybody saw one picture in ten wrongly."""
    yes = thresholds_of((0.9, 1 - 0.1 * prior / (1 - prior)), spreads(INDEPENDENT))
    return Estimate(
        probability_yes=np.full(questions, prior),
        sensitivity=np.full(people, 0.9),
        specificity=np.full(people, 0.9),
        dependence=INDEPENDENT,
        thresholds=np.repeat(yes[:, None], people, axis=1),
        log_likelihood=0.0,
    )


def test_lone_answers_by_hand() -> None:
    # Five classes; 20 yes and 80 no, as who looks gives whatever e is: 0.2 (1 - e) + 0.8 e / 4 = 0.2. Who
    # does not look says yes at the rate that fits best, which is the same: the two are as probable. 50 yes
    # and 50 no: who looks gives 0.2^50 0.8^50, who does not 0.5^100.
    for yes, expected in ((20, 0.0), (50, 50 * math.log(0.2) + 50 * math.log(0.8) + 100 * math.log(2))):
        found = evidence(
            np.array([0, 1]),
            np.array([0, 0]),
            np.array([True, False]),
            prior=0.2,
            known=np.full(2, np.nan),
            found=fitted(0.2, 1, 2),
            times=np.array([yes, 100 - yes], dtype=np.float64),
        )
        assert found[0] == pytest.approx(expected, abs=1e-9)


def test_known_pictures_by_hand() -> None:
    # Between two classes, ten matches and ten others, all answered rightly: with the least e that is tried,
    # (1 - e)^20; who does not look says yes to half of all, 0.5^20.
    said = np.array([True, False] * 10)
    found = evidence(
        np.arange(20),
        np.zeros(20, np.int64),
        said,
        prior=0.5,
        known=said.astype(np.float64),
        found=fitted(0.5, 1, 20),
    )

    least = WORST * 0.5 / ERRORS
    assert found[0] == pytest.approx(20 * math.log(1 - least) - 20 * math.log(0.5))


def test_who_said_nothing_is_told_nothing_of() -> None:
    found = evidence(
        np.array([0]),
        np.array([1]),
        np.array([True]),
        prior=0.5,
        known=np.array([np.nan]),
        found=fitted(0.5, 2, 1),
    )

    assert found[0] == 0


@pytest.mark.parametrize("agreement", [0.1, 0.85])
def test_whoever_agrees_far_less_than_others_is_marked_though_yes_is_as_frequent(agreement: float) -> None:
    """Ten classes. Of person 0's yes, others confirm one in ten, as by chance; or nearly all."""
    chance = np.random.default_rng(3)
    match = chance.random(1_500) < 0.1
    answers: list[tuple[int, int, bool]] = []
    for question, is_match in enumerate(match):
        first, second, third = (int(person) for person in chance.permutation(4)[:3])
        is_yes = bool(is_match)
        if first == 0 and chance.random() > (agreement - 0.1) / 0.9:
            is_yes = bool(chance.random() < 0.1)
        answers.append((question, first, is_yes))
        if is_yes:  # others look
            answers.append((question, second or third, bool(is_match)))
    questions, people, said = map(np.array, zip(*answers, strict=True))
    known = np.full(1_500, np.nan)
    found = estimate(questions, people, said, prior=0.1, known=known, num_people=4)

    told = evidence(questions, people, said, prior=0.1, known=known, found=found)

    rates = [said[people == person].mean() for person in range(4)]
    assert max(rates) - min(rates) < 0.15
    assert (told[0] < MARKED) == (agreement < 0.5)
    assert (told[1:] > MARKED).all()


def test_pictures_that_show_none_of_the_classes_accuse_nobody() -> None:
    """Half of the pictures: everybody says yes half as often as drawn classes would have it."""
    chance = np.random.default_rng(0)
    match = chance.random(4000) < 0.05
    asked = [(question, int(person)) for question in range(4000) for person in chance.permutation(4)[:1]]
    asked += [(question, (person + 1) % 4) for question, person in asked if match[question]]
    questions, people = map(np.array, zip(*asked, strict=True))
    known, prior = np.full(4000, np.nan), 0.1
    is_yes = match[questions]
    found = estimate(questions, people, is_yes, prior=prior, known=known, num_people=4)

    told = evidence(questions, people, is_yes, prior=prior, known=known, found=found)

    assert (told > 50).all()


@pytest.mark.long
@pytest.mark.parametrize("num_classes", [2, 10])
@pytest.mark.parametrize("name", sorted(IDLERS))
def test_who_does_not_look_is_found_and_nobody_else(num_classes: int, name: str) -> None:
    run = Campaign(IDLERS[name], num_classes, seed=0, images=3_000).run()

    assert is_found(run.marked, MARKED_AFTER)
    assert is_found(run.paused, PAUSED_AFTER)
    assert accused(run.marked) == set()
