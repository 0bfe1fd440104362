"""Dawid and Skene's model of people who answer yes and no."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.quality import dawid_skene
from app.quality.dawid_skene import START_STRENGTH, STRENGTH, Estimate, estimate, starting_rates
from app.quality.judging import Judge, Reliability

PRIOR = 0.1


def fit(
    answers: list[tuple[int, int, bool]],
    *,
    num_questions: int,
    num_people: int,
    known: list[float] | None = None,
) -> Estimate:
    """Of (question, person, whether yes)."""
    questions, people, is_yes = map(np.array, zip(*answers, strict=True))
    return estimate(
        questions,
        people,
        is_yes,
        prior=PRIOR,
        known=np.full(num_questions, np.nan) if known is None else np.array(known),
        num_people=num_people,
    )


def crowd(
    sensitivity: list[float], specificity: list[float], *, questions: int, each: int, seed: int = 0
) -> tuple[list[tuple[int, int, bool]], np.ndarray]:
    """Answers of `each` random people to every question, and what is right."""
    chance = np.random.default_rng(seed)
    truth = chance.random(questions) < PRIOR
    answers = []
    for question in range(questions):
        for person in chance.permutation(len(sensitivity))[:each].tolist():
            rate = sensitivity[person] if truth[question] else 1 - specificity[person]
            answers.append((question, person, bool(chance.random() < rate)))
    return answers, truth


def textbook(answers: list[tuple[int, int, bool]], num_questions: int, num_people: int) -> list[float]:
    """The same model, one sum at a time."""
    start, times = starting_rates(PRIOR), (1, (1 - PRIOR) / PRIOR)
    sens, spec = [start[0]] * num_people, [start[1]] * num_people
    probability = [0.0] * num_questions
    for _ in range(dawid_skene.MAX_ITERATIONS):
        for q in range(num_questions):
            yes, no = PRIOR, 1 - PRIOR
            for question, person, said_yes in answers:
                if question == q:
                    yes *= sens[person] if said_yes else 1 - sens[person]
                    no *= 1 - spec[person] if said_yes else spec[person]
            probability[q] = yes / (yes + no)
        hits = [0.0] * num_people, [0.0] * num_people
        totals = [0.0] * num_people, [0.0] * num_people
        for question, person, said_yes in answers:
            p = probability[question]
            hits[0][person] += p * said_yes
            totals[0][person] += p
            hits[1][person] += (1 - p) * (not said_yes)
            totals[1][person] += 1 - p
        for rates, first, n, hit, total in zip((sens, spec), start, times, hits, totals, strict=True):
            pooled = (sum(hit) + n * START_STRENGTH * first) / (sum(total) + n * START_STRENGTH)
            rates[:] = [
                (own + n * STRENGTH * pooled) / (all_ + n * STRENGTH)
                for own, all_ in zip(hit, total, strict=True)
            ]
    return probability


# crowd-kit 1.4.2: DawidSkene(n_iter=300, tol=1e-12) on the answers of the test below.
CROWD_KIT = {
    "sensitivity": [0.9538, 0.9174, 0.8424, 0.7990, 0.7276, 0.6914, 0.9205, 0.7877],
    "specificity": [0.9916, 0.9803, 0.9670, 0.9581, 0.9467, 0.9329, 0.8865, 0.9948],
}


def test_agrees_with_crowd_kit_where_answers_are_many() -> None:
    """It estimates the share of yes and shrinks no rate; with 3,750 answers of each person neither counts."""
    sensitivity = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.9, 0.8]
    specificity = [0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.9, 0.995]
    answers, truth = crowd(sensitivity, specificity, questions=6000, each=5, seed=3)

    found = fit(answers, num_questions=6000, num_people=8)

    assert found.sensitivity == pytest.approx(CROWD_KIT["sensitivity"], abs=0.006)
    assert found.specificity == pytest.approx(CROWD_KIT["specificity"], abs=0.002)
    assert ((found.probability_yes > 0.5) != truth).sum() == 20  # its answers are wrong as often


def test_agrees_with_the_textbook() -> None:
    answers, _ = crowd([0.9, 0.7, 0.5], [0.98, 0.9, 0.6], questions=40, each=2)

    found = fit(answers, num_questions=40, num_people=3)

    np.testing.assert_allclose(found.probability_yes, textbook(answers, 40, 3), atol=1e-4)


def test_one_answer_by_hand() -> None:
    # One person, whose rates are held at 4/5 and 9/10 by known questions: yes is right with
    # 1/10 * 4/5 / (1/10 * 4/5 + 9/10 * 1/10) = 8/17 after a yes.
    many = 2_000
    known = [1.0] * 5 * many + [0.0] * 10 * many + [math.nan]
    said = [True] * 4 * many + [False] * many + [False] * 9 * many + [True] * many + [True]
    answers = [(question, 0, is_yes) for question, is_yes in enumerate(said)]

    found = fit(answers, num_questions=len(known), num_people=1, known=known)

    assert found.sensitivity[0] == pytest.approx(4 / 5, abs=1e-3)
    assert found.specificity[0] == pytest.approx(9 / 10, abs=1e-3)
    assert found.probability_yes[-1] == pytest.approx(8 / 17, abs=2e-3)


def test_people_are_found_out_without_knowing_any_answer() -> None:
    sensitivity, specificity = [0.9, 0.9, 0.8, 0.8, 0.5, 0.05], [0.99, 0.97, 0.98, 0.95, 0.5, 0.99]
    answers, truth = crowd(sensitivity, specificity, questions=6_000, each=3)

    found = fit(answers, num_questions=6_000, num_people=6)

    np.testing.assert_allclose(found.sensitivity, sensitivity, atol=0.09)
    np.testing.assert_allclose(found.specificity, specificity, atol=0.04)  # shrunk a little
    # Calibrated: of what is called p right, a share of p is right.
    assert found.probability_yes.mean() == pytest.approx(truth.mean(), abs=0.01)
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        within = (found.probability_yes >= low) & (found.probability_yes <= high)
        assert truth[within].mean() == pytest.approx(found.probability_yes[within].mean(), abs=0.08)


def test_beats_the_majority_where_people_differ() -> None:
    answers, truth = crowd([0.9, 0.9, 0.5, 0.5, 0.5], [0.99, 0.99, 0.5, 0.5, 0.5], questions=4_000, each=3)
    votes = np.zeros(4_000)
    for question, _, is_yes in answers:
        votes[question] += 1 if is_yes else -1

    found = fit(answers, num_questions=4_000, num_people=5)

    wrong = ((found.probability_yes > 0.5) != truth).mean()
    assert wrong < ((votes > 0) != truth).mean() / 3


def test_nobody_has_a_rate_of_zero_or_one() -> None:
    found = fit([(0, 0, True), (1, 0, False), (2, 1, False)], num_questions=3, num_people=2)

    for rates in (found.sensitivity, found.specificity):
        assert ((rates > 0) & (rates < 1)).all()


@pytest.mark.parametrize("num_classes", [2, 10, 1000])
def test_one_answer_says_what_it_says(num_classes: int) -> None:
    # Nothing is known of anybody yet: yes is more probably right than wrong, no surer than the draw.
    for is_yes in (True, False):
        found = estimate(
            np.array([0]),
            np.array([0]),
            np.array([is_yes]),
            prior=1 / num_classes,
            known=np.array([np.nan]),
            num_people=1,
        )
        assert (found.probability_yes[0] > 0.5) if is_yes else (found.probability_yes[0] < 1 / num_classes)


def test_without_answers_nothing_is_said() -> None:
    nobody = np.array([], dtype=np.int64)

    found = estimate(nobody, nobody, nobody.astype(bool), prior=PRIOR, known=np.array([]), num_people=0)

    assert len(found.probability_yes) == len(found.sensitivity) == 0


def test_questions_answered_alike_may_come_counted() -> None:
    answers = [(0, 0, True), (1, 0, False), (2, 0, False), (3, 1, False), (3, 0, False), (4, 1, True)]
    many = [*answers, *((5 + n, 0, False) for n in range(30)), *((35 + n, 1, True) for n in range(4))]
    questions, people, is_yes = map(np.array, zip(*answers, strict=True))

    plain = fit(many, num_questions=39, num_people=2)
    counted = estimate(
        questions,
        people,
        is_yes,
        prior=PRIOR,
        known=np.full(5, np.nan),
        num_people=2,
        times=np.array([1, 1, 31, 1, 5.0]),
    )

    assert counted.sensitivity == pytest.approx(plain.sensitivity)
    assert counted.specificity == pytest.approx(plain.specificity)
    assert counted.probability_yes == pytest.approx(plain.probability_yes[:5])


def test_what_the_model_did_not_see_has_no_probability() -> None:
    fitted = Reliability(
        places={"ann": 0},
        sensitivity=np.array([0.8]),
        specificity=np.array([0.9]),
        prior=0.25,
        question_ids=np.array([3, 5]),
        probability=np.array([0.2, 0.9]),
    )

    def answered(id_: int, yes: int, no: int, by: str = "ann") -> Any:
        return SimpleNamespace(id=id_, yes=yes, no=no, by=by)

    seen = [fitted.probability_yes(answered(id_, 1, 1)) for id_ in (2, 3, 4, 5, 6)]
    assert seen == [None, 0.2, None, 0.9, None]
    assert fitted.probability_yes(answered(6, 1, 0)) == pytest.approx(0.2 / (0.2 + 0.075))  # Bayes
    assert fitted.probability_yes(answered(6, 0, 1)) == pytest.approx(0.05 / (0.05 + 0.675))
    assert fitted.probability_yes(answered(6, 1, 0, by="somebody new")) is None
    judge = Judge(confirm_yes=False, num_classes=4, reliability=fitted, decisions={})
    assert judge(answered(6, 2, 0)).kind is None
