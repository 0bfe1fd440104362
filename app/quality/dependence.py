"""How far people err together: from what several of them answered, and from what is usual. Pure.

Nobody tells how hard a picture is. But where people err independently, a third answer settles what two left
open; where the same pictures mislead them all, it does not. So the likelihood of all answers, with
everybody's rates fitted, is worked out at a few values of the two dependences of `dawid_skene`, and a
polynomial through its logarithm gives the values between. It is joined with what is usual, and the dependence
is the mean.

The answers of a campaign of a thousand questions tell little: the third answers are few. So what is usual
counts: mostly that pictures are hard for everybody, and in some campaigns that they are about as hard as each
other. A few thousand questions tell which of the two it is.

Between two classes a match is hard where a picture is, and so is the other class: there both dependences are
one.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from app.quality.dawid_skene import Dependence, Estimate, Floats, Integers, estimate, spreads

# Crowd workers on CIFAR-10 with the errors of their confusion matrix, a quarter of the pictures hard or any
# share between: a second yes leaves 2 to 5 % wrong (docs/results/quality.md), 1 % if they erred
# independently.
USUAL_MATCH, USUAL_OTHER = 0.55, 0.43
# 1 / K of it off the other one: among few classes an error meets the class asked about more often.
FEWER = 0.5
SPREAD = Dependence(0.15, 0.08)  # standard deviations of what is usual
SPREAD_OF_TWO = 0.2  # between two classes, where both are the first
# Of campaigns, the share whose pictures are about as hard as each other. There both dependences are near 0.
ALIKE, SPREAD_ALIKE = 0.3, 0.1
LOOKED_AT = (0.0, 0.25, 0.5, 0.75)  # dependences at which the likelihood is worked out
LOOKED_AT_OF_TWO = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
FINE = np.linspace(0, 0.8, 41)
ROUGHLY = 1e-3  # change of a rate at which a look ends
MOST_KINDS = 4_000  # of questions answered alike, at a look; of more, as many of each kind as their share


def usual(prior: float) -> Dependence:
    """What is taken where nothing is known; `prior` is 1 / K."""
    if prior >= 1 / 2:
        return Dependence(USUAL_MATCH, USUAL_MATCH)
    return Dependence(USUAL_MATCH, USUAL_OTHER - FEWER * prior)


def fit(
    questions: Integers,
    people: Integers,
    is_yes: NDArray[np.bool_],
    *,
    prior: float,
    known: Floats,
    num_people: int,
    times: Floats | None = None,
    dependence: Dependence | None = None,
) -> Estimate:
    """As `dawid_skene.estimate`, with the dependence that the answers tell, unless one is given."""
    alike = np.ones(len(known)) if times is None else times
    kind, first = _kinds(questions, people, is_yes, known, num_people)
    rows = np.isin(questions, first)
    if not len(first):
        return estimate(questions, people, is_yes, prior=prior, known=known, num_people=num_people)
    counts: Floats = np.bincount(kind, alike, len(first)).astype(np.float64)  # (Q',)
    of_kind = kind[questions[rows]]
    told = people[rows], is_yes[rows]
    if dependence is None:
        dependence = _mean(of_kind, *told, counts, prior=prior, known=known[first], num_people=num_people)
    found = estimate(
        of_kind,
        *told,
        prior=prior,
        known=known[first],
        num_people=num_people,
        times=counts,
        dependence=dependence,
    )
    return Estimate(
        probability_yes=found.probability_yes[kind],
        sensitivity=found.sensitivity,
        specificity=found.specificity,
        dependence=dependence,
        thresholds=found.thresholds,
        log_likelihood=found.log_likelihood,
    )


def _kinds(
    questions: Integers, people: Integers, is_yes: NDArray[np.bool_], known: Floats, num_people: int
) -> tuple[Integers, Integers]:
    """(Q,) the kind of each question, and one question of each: those that the same people answered alike.

    A question's mark is the sum of random numbers of 64 bits, one for each thing that can be said: two
    different questions share one about never.
    """
    chance = np.random.default_rng(0)
    numbers = chance.integers(0, 2**64, (num_people, 2), dtype=np.uint64)
    marks = np.zeros(len(known), dtype=np.uint64)
    np.add.at(marks, questions, numbers[people, is_yes.astype(np.int64)])
    truths = chance.integers(0, 2**64, 3, dtype=np.uint64)
    marks += truths[np.where(np.isnan(known), 2, known).astype(np.int64)]
    _, first, kind = np.unique(marks, return_index=True, return_inverse=True)
    return kind.astype(np.int64), first.astype(np.int64)


def _mean(
    questions: Integers,
    people: Integers,
    is_yes: NDArray[np.bool_],
    counts: Floats,
    *,
    prior: float,
    known: Floats,
    num_people: int,
) -> Dependence:
    """The dependence, over its likelihood."""
    if len(known) > MOST_KINDS:
        questions, people, is_yes, counts, known = _some(questions, people, is_yes, counts, known)
    is_tied = prior >= 1 / 2
    looked_at = LOOKED_AT_OF_TWO if is_tied else LOOKED_AT
    pairs = [(at, at) for at in looked_at] if is_tied else list(product(looked_at, looked_at))
    logs: list[float] = []
    begin: Floats | None = None  # thresholds of the last look, by the width of what they cut
    for pair in pairs:
        width = np.sqrt(1 + spreads(Dependence(*pair)) ** 2)[:, None]
        found = estimate(
            questions,
            people,
            is_yes,
            prior=prior,
            known=known,
            num_people=num_people,
            times=counts,
            dependence=Dependence(*pair),
            start=None if begin is None else begin * width,
            tolerance=ROUGHLY,
        )
        logs.append(found.log_likelihood)
        begin = found.thresholds / width
    between = _polynomials(looked_at)  # (F, G)
    if is_tied:
        before = np.log((1 - ALIKE) * _bell(USUAL_MATCH, SPREAD_OF_TWO) + ALIKE * _bell(0.0, SPREAD_ALIKE))
        rho = float(_shares(between @ np.array(logs) + before) @ FINE)
        return Dependence(rho, rho)
    of_match, of_other = (_bell(mean, sd) for mean, sd in zip(usual(prior), SPREAD, strict=True))
    alike = _bell(0.0, SPREAD_ALIKE)
    before = np.log((1 - ALIKE) * np.outer(of_match, of_other) + ALIKE * np.outer(alike, alike))
    table = np.array(logs).reshape(len(looked_at), -1)  # (G, G)
    shares = _shares(between @ table @ between.T + before)  # (F, F)
    return Dependence(float(shares.sum(1) @ FINE), float(shares.sum(0) @ FINE))


def _some(
    questions: Integers, people: Integers, is_yes: NDArray[np.bool_], counts: Floats, known: Floats
) -> tuple[Integers, Integers, NDArray[np.bool_], Floats, Floats]:
    """A sample of the questions, for a look: of each kind as large a share."""
    share = MOST_KINDS / len(known)
    kept = np.random.default_rng(0).poisson(share * counts) if len(counts) else counts
    is_kept = kept > 0
    rows = is_kept[questions]
    places = np.cumsum(is_kept) - 1
    return (
        places[questions[rows]],
        people[rows],
        is_yes[rows],
        kept[is_kept].astype(np.float64),
        known[is_kept],
    )


def _bell(mean: float, sd: float) -> Floats:
    """(F,) the normal distribution's shares of the values between, all together 1."""
    return _shares(-(((FINE - mean) / sd) ** 2) / 2)


def _shares(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _polynomials(looked_at: Sequence[float]) -> Floats:
    """(F, G) Lagrange's: what each value looked at adds to the values between."""
    return np.array(
        [
            [
                np.prod([(x - other) / (own - other) for other in looked_at if other != own])
                for own in looked_at
            ]
            for x in FINE
        ]
    )
