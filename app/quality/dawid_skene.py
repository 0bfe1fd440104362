"""Who answers how reliably, and which answers are therefore right: the model of Dawid and Skene. Pure.

Each person j says yes with the rate `sensitivity[j]` where yes is right and no with `specificity[j]` where no
is right, independently of other people. Expectation maximisation alternates between the probability that yes
is right for each question and everybody's two rates. Two departures from the paper:

* the share of questions with yes as the right answer is given, not estimated: classes are drawn uniformly, so
  it is 1 / K whatever the images show;
* rates are shrunk towards those of all people together (Beta priors), because most people answer few
  questions that others answered as well.

That a question is asked again only after some answers does no harm: whether it was depends on answers that
are in the model.

Source: Dawid and Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM algorithm".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS = 100
TOLERANCE = 1e-6  # largest change of a rate at which it ends
START_ERROR = 0.2  # share of images seen as another class, before the first look
# Answers, to questions to which yes is right, that weigh as much: as this start for everybody together, and
# as everybody together for each person. Where no is right it is K - 1 times as many, as they are drawn.
START_STRENGTH = 20.0
STRENGTH = 10.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What the answers say about questions and people."""

    probability_yes: Floats  # (Q,) that yes is right
    sensitivity: Floats  # (P,) rate of yes where yes is right
    specificity: Floats  # (P,) rate of no where no is right


def estimate(
    questions: Integers,
    people: Integers,
    is_yes: NDArray[np.bool_],
    *,
    prior: float,
    known: Floats,
    num_people: int,
    times: Floats | None = None,
) -> Estimate:
    """Fit the model to A answers.

    Args:
        questions: (A,) index of the question, 0 .. Q - 1.
        people: (A,) index of the person, 0 .. P - 1.
        is_yes: (A,) whether it was yes.
        prior: share of questions to which yes is right, in (0, 1).
        known: (Q,) 1 or 0 where the right answer is known, NaN where it is not.
        num_people: P.
        times: (Q,) how many questions were answered alike by the same people; once each if not given.
    """
    num_questions = len(known)
    alike = np.ones(len(questions)) if times is None else times[questions]  # (A,)
    is_known = ~np.isnan(known)
    start = starting_rates(prior)
    no_per_yes = (1 - prior) / prior
    sensitivity = np.full(num_people, start[0])
    specificity = np.full(num_people, start[1])
    yes = is_yes.astype(np.float64)  # (A,)
    for _ in range(MAX_ITERATIONS):
        evidence = np.where(  # (A,) log likelihood ratio of each answer
            is_yes,
            np.log(sensitivity)[people] - np.log1p(-specificity)[people],
            np.log1p(-sensitivity)[people] - np.log(specificity)[people],
        )
        log_odds = np.log(prior / (1 - prior)) + np.bincount(questions, evidence, num_questions)  # (Q,)
        probability = np.where(is_known, known, 1 / (1 + np.exp(-np.clip(log_odds, -500, 500))))
        weight = probability[questions]  # (A,)
        before = sensitivity, specificity
        matches, others = alike * weight, alike * (1 - weight)
        sensitivity = _rates(matches * yes, matches, people, num_people, shrink=(start[0], 1.0))
        specificity = _rates(others * (1 - yes), others, people, num_people, shrink=(start[1], no_per_yes))
        moved = max(
            float(np.abs(new - old).max(initial=0.0))
            for new, old in zip((sensitivity, specificity), before, strict=True)
        )
        if moved < TOLERANCE:
            break
    return Estimate(probability, sensitivity, specificity)


def starting_rates(prior: float) -> tuple[float, float]:
    """Sensitivity and specificity of people who see one class per image, in START_ERROR of them a wrong one.

    It is the class asked about with START_ERROR / (K - 1), and K is 1 / prior.
    """
    return 1 - START_ERROR, 1 - START_ERROR * prior / (1 - prior)


def _rates(
    hits: Floats, totals: Floats, people: Integers, num_people: int, *, shrink: tuple[float, float]
) -> Floats:
    """(P,) each person's rate of hits, shrunk towards the rate of all; strictly between 0 and 1.

    `shrink`: the start, and what the strengths are multiplied by.
    """
    start, times = shrink
    pooled = (hits.sum() + times * START_STRENGTH * start) / (totals.sum() + times * START_STRENGTH)
    own_hits = np.bincount(people, hits, num_people)
    own_totals = np.bincount(people, totals, num_people)
    return np.asarray((own_hits + times * STRENGTH * pooled) / (own_totals + times * STRENGTH))
