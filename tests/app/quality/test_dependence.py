"""People who err together: the model, and what it makes of answers.

The table of docs/results/quality.md: `python -m tests.app.quality.hard_pictures`.
"""

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from app.annotation.consensus import verdict, weighed
from app.quality import dependence
from app.quality.dawid_skene import (
    INDEPENDENT,
    SHARES,
    Dependence,
    chances,
    estimate,
    marginals,
    spreads,
    thresholds_of,
)
from app.quality.dependence import fit, usual
from tests.app.quality.hard_pictures import average
from tests.app.quality.test_dawid_skene import crowd

TOGETHER = Dependence(0.5, 0.4)


def test_rates_over_all_difficulties_are_what_they_are_called() -> None:
    spread = spreads(TOGETHER)
    thresholds = thresholds_of((0.8, 0.97), spread)[:, None]

    by_nodes = chances(thresholds, spread)[:, 0, 1] @ SHARES

    assert by_nodes == pytest.approx([0.8, 0.03], abs=1e-4)
    assert marginals(thresholds, spread)[:, 0] == pytest.approx([0.8, 0.03])


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_two_impressions_of_a_question_correlate_so_much(rho: float) -> None:
    """Of two people who both say yes with 1/2: 1/4 + arcsin(rho) / 2 pi, as Sheppard found in 1899."""
    spread = spreads(Dependence(rho, rho))
    yes = chances(np.zeros((2, 1)), spread)[0, 0, 1]

    assert yes**2 @ SHARES == pytest.approx(1 / 4 + np.arcsin(rho) / (2 * np.pi), abs=5e-3)


def test_one_answer_alone_tells_the_same_however_people_err_together() -> None:
    answers = np.array([0, 1]), np.array([0, 0]), np.array([True, False])
    told = [
        estimate(
            *answers,
            prior=0.1,
            known=np.full(2, np.nan),
            num_people=1,
            dependence=together,
            start=thresholds_of((0.8, 0.98), spreads(together))[:, None],
        )
        for together in (INDEPENDENT, TOGETHER)
    ]

    # Fitted to two answers only, the rates stay near their start.
    assert told[0].probability_yes == pytest.approx(told[1].probability_yes, abs=0.01)


def test_two_yes_by_hand() -> None:
    """A match in 1/10; two people say yes: Bayes over the mean of the product, not the product of means."""
    sure = 50_000  # known answers, so many that everybody's rates are 0.8 and 0.98 whatever else is said
    known, questions, people, said = [np.nan], [0, 0], [0, 1], [True, True]
    for person in (0, 1):
        for truth in (1.0, 0.0):
            for is_yes in (True, False):
                questions.append(len(known))
                people.append(person)
                said.append(is_yes)
                known.append(truth)
    times = np.array([1.0, *[sure * part for part in (0.8, 0.2, 0.02, 0.98)] * 2])

    for together, expected_more in ((INDEPENDENT, False), (TOGETHER, True)):
        found = estimate(
            np.array(questions),
            np.array(people),
            np.array(said),
            prior=0.1,
            known=np.array(known),
            num_people=2,
            times=times,
            dependence=together,
        )
        yes = chances(thresholds_of((0.8, 0.98), spreads(together))[:, None], spreads(together))[:, 0, 1]
        match, other = 0.1 * yes[0] ** 2 @ SHARES, 0.9 * yes[1] ** 2 @ SHARES
        assert found.probability_yes[0] == pytest.approx(match / (match + other), abs=2e-3)
        assert bool(1 - found.probability_yes[0] > 0.01) is expected_more  # independently 0.56 % are wrong


def test_questions_answered_alike_may_be_counted_together() -> None:
    answers, _ = crowd([0.9, 0.8, 0.7], [0.98, 0.95, 0.9], questions=400, each=2)
    questions, people, is_yes = map(np.array, zip(*answers, strict=True))
    rest: Any = {"prior": 0.1, "known": np.full(400, np.nan), "num_people": 3}

    found = fit(questions, people, is_yes, **rest)
    slow = estimate(questions, people, is_yes, **rest, dependence=found.dependence)

    assert found.probability_yes == pytest.approx(slow.probability_yes, abs=1e-6)
    assert found.log_likelihood == pytest.approx(slow.log_likelihood, abs=1e-4)


def test_without_answers_the_usual_is_taken() -> None:
    one = fit(
        np.array([0]), np.array([0]), np.array([True]), prior=0.1, known=np.full(1, np.nan), num_people=1
    )

    expected = [(1 - dependence.ALIKE) * rho for rho in usual(0.1)]  # and near 0 in the others
    assert all(low < rho < low + 0.06 for low, rho in zip(expected, one.dependence, strict=True))
    assert usual(0.5).match == usual(0.5).other
    assert all(0 <= rho < 1 for num_classes in (2, 3, 10, 1000) for rho in usual(1 / num_classes))


def test_answers_of_people_who_err_independently_are_taken_for_what_they_are() -> None:
    chance = np.random.default_rng(0)
    match = chance.random(6_000) < 1 / 2
    questions = np.repeat(np.arange(6_000), 5)  # of three, between two classes, nothing could be told
    people = chance.permuted(np.tile(np.arange(6), (6_000, 1)), axis=1)[:, :5].ravel()
    is_yes = match[questions] == (chance.random(30_000) < 0.85)

    found = fit(questions, people, is_yes, prior=0.5, known=np.full(6_000, np.nan), num_people=6)

    assert found.dependence.match < 0.15


def test_a_sample_tells_about_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, _ = crowd([0.9, 0.8, 0.7] * 10, [0.98, 0.95, 0.9] * 10, questions=3_000, each=3)
    questions, people, is_yes = map(np.array, zip(*answers, strict=True))
    rest: Any = {"prior": 0.1, "known": np.full(3_000, np.nan), "num_people": 30}
    every = fit(questions, people, is_yes, **rest).dependence

    monkeypatch.setattr(dependence, "MOST_KINDS", 1_000)

    assert fit(questions, people, is_yes, **rest).dependence == pytest.approx(every, abs=0.2)


def test_who_answers_at_random_tells_nothing() -> None:
    """K = 10: a lone no of somebody who says yes to half of everything weighs 0, of others nearly all."""
    answers, _ = crowd([0.9, 0.9, 0.9, 0.5], [0.99, 0.99, 0.99, 0.5], questions=4_000, each=2, seed=1)
    questions, people, is_yes = map(np.array, zip(*answers, strict=True))
    found = fit(questions, people, is_yes, prior=0.1, known=np.full(4_000, np.nan), num_people=4)

    def weight(person: int) -> float:
        missed = 0.1 * (1 - found.sensitivity[person])
        right = 0.9 * found.specificity[person]
        return weighed(verdict(0, 1, confirm_yes=True), missed / (missed + right), num_classes=10).weight

    assert weight(3) < 0.15
    assert min(map(weight, range(3))) > 0.75


@pytest.mark.long
@pytest.mark.parametrize(("kind", "images"), [("quarter", 4_000), ("any", 4_000), ("alike", 8_000)])
@pytest.mark.parametrize("num_classes", [2, 5, 10])
def test_labels_and_plans_claim_what_is_true_whether_or_not_pictures_are_hard_for_all(
    num_classes: int, kind: str, images: int
) -> None:
    found = average(kind, images=images, num_classes=num_classes, campaigns=6)

    for claimed, real, planned in (found.true, found.complementary):
        assert 1 / 1.5 < claimed / real < 1.5
        assert 1 / 1.7 < planned / real < 1.7


def test_normal_quantiles_are_those_of_the_thresholds() -> None:
    found = thresholds_of((0.8, 0.98), spreads(INDEPENDENT))

    assert found == pytest.approx([NormalDist().inv_cdf(0.8), NormalDist().inv_cdf(0.02)])
