"""Who answers how reliably, and which answers are therefore right. Pure.

The model of Dawid and Skene (1979), with pictures that are hard for everybody. Class k is asked about a
picture that shows it (a match) with the probability 1 / K, which is given: classes are drawn uniformly. Each
question has a difficulty z ~ N(0, 1) that all who answer it share. Person j says yes to it with

    Phi(a_j + b z)    if it is a match, and with
    Phi(c_j + d z)    if it is none,

independently of the others once z is given. So for everybody

    sensitivity_j = Phi(a_j / sqrt(1 + b^2)),    specificity_j = 1 - Phi(c_j / sqrt(1 + d^2)),

and two people's impressions of one question are normal variables that correlate with the dependence rho = b^2
/ (1 + b^2) (d likewise). With rho = 0 this is the model of Dawid and Skene. One person's answer alone tells
the same whatever rho is; a second one tells the less, the larger rho is.

Expectation maximisation alternates between the probabilities of truth and difficulty of each question, which
stands in a few nodes of Gauss and Hermite, and everybody's two thresholds, moved by one step of Fisher
scoring. Rates are shrunk towards those of all people together, because most people answer few questions that
others answered as well.

That a question is asked again only after some answers does no harm: whether it was depends on answers that
are in the model. `app/quality/dependence.py` finds rho.

Sources: Dawid and Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM algorithm";
Qu, Tan and Kutner 1996, "Random effects models in latent class analysis for evaluating accuracy of diagnostic
tests".
"""

from dataclasses import dataclass
from math import erfc, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS = 100
TOLERANCE = 1e-6  # largest change of a rate at which it ends
START_ERROR = 0.2  # share of images seen as another class, before the first look
# Answers, to questions to which yes is right, that weigh as much: as this start for everybody together, and
# as everybody together for each person. Where no is right it is K - 1 times as many, as they are drawn.
START_STRENGTH = 20.0
STRENGTH = 10.0
NODES = 11  # of the difficulty
FARTHEST = 6.0  # thresholds lie within: nobody has a rate of 0 or 1
LONGEST_STEP = 0.5

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_erfc = np.frompyfunc(erfc, 1, 1)
_DIFFICULTY, _weights = np.polynomial.hermite_e.hermegauss(NODES)  # (M,)
SHARES: Floats = _weights / _weights.sum()  # (M,) of questions of each difficulty


class Dependence(NamedTuple):
    """How far people err together, 0 <= rho < 1: where yes is right, and where no is."""

    match: float
    other: float


INDEPENDENT = Dependence(0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What the answers say about questions and people."""

    probability_yes: Floats  # (Q,) that yes is right
    sensitivity: Floats  # (P,) rate of yes where yes is right
    specificity: Floats  # (P,) rate of no where no is right
    dependence: Dependence
    thresholds: Floats  # (2, P) a and c above
    log_likelihood: float


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """A answers by P people to Q questions, ready to be added up by question, and by person and value."""

    questions: Integers  # (A,) ascending
    people: Integers  # (A,)
    yes: Integers  # (A,) 0 or 1
    starts: Integers  # where each question's answers begin, of those that have some
    ids: Integers  # those questions
    by_person: Integers  # (A,) the order by person and value
    person_starts: Integers
    person_values: tuple[Integers, Integers]

    @classmethod
    def of(cls, questions: Integers, people: Integers, is_yes: NDArray[np.bool_]) -> "Answered":
        """In any order."""
        order = np.argsort(questions, kind="stable")
        questions, people = questions[order], people[order].astype(np.int64)
        yes = is_yes[order].astype(np.int64)
        ids, starts = np.unique(questions, return_index=True)
        by_person = np.argsort(2 * people + yes, kind="stable")
        kinds, person_starts = np.unique((2 * people + yes)[by_person], return_index=True)
        values = (kinds // 2, kinds % 2)
        return cls(questions, people, yes, starts, ids, by_person, person_starts, values)

    def per_question(self, values: Floats, count: int) -> Floats:
        """(Q, M) sums of (A, M) values."""
        sums = np.zeros((count, values.shape[1]))
        if len(self.ids):
            sums[self.ids] = np.add.reduceat(values, self.starts, axis=0)
        return sums

    def per_person(self, values: Floats, count: int) -> Floats:
        """(2, P, M) sums of (A, M) values: of what each person said no and yes to."""
        sums = np.zeros((2, count, values.shape[1]))
        if len(self.person_starts):
            people, said = self.person_values
            sums[said, people] = np.add.reduceat(values[self.by_person], self.person_starts, axis=0)
        return sums


def estimate(
    questions: Integers,
    people: Integers,
    is_yes: NDArray[np.bool_],
    *,
    prior: float,
    known: Floats,
    num_people: int,
    times: Floats | None = None,
    dependence: Dependence = INDEPENDENT,
    start: Floats | None = None,
    tolerance: float = TOLERANCE,
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
        dependence: how far people err together.
        start: (2, P) thresholds to begin with.
        tolerance: largest change of a rate at which it ends.
    """
    answered = Answered.of(questions, people, is_yes)
    alike = np.ones(len(known)) if times is None else times  # (Q,)
    spread = spreads(dependence)
    first = thresholds_of(starting_rates(prior), spread)  # (2,)
    strengths = np.array([1.0, (1 - prior) / prior])
    pooled = first
    own = np.repeat(first[:, None], num_people, axis=1) if start is None else start  # (2, P)
    rates = marginals(own, spread)
    for _ in range(MAX_ITERATIONS):
        shares, log_likelihood = posterior(answered, own, spread, prior=prior, known=known)  # (2, Q, M)
        counts = np.stack(  # (2, 2, P, M) expected answers: match or not, no or yes
            [answered.per_person((alike[:, None] * part)[answered.questions], num_people) for part in shares]
        )
        extra = _as_answers(first, spread, START_STRENGTH * strengths)
        pooled = _moved(pooled[:, None], counts.sum(2, keepdims=True) + extra, spread)[:, 0]
        own = _moved(own, counts + _as_answers(pooled, spread, STRENGTH * strengths), spread)
        before, rates = rates, marginals(own, spread)
        if np.abs(rates - before).max(initial=0.0) < tolerance:
            break
    shares, log_likelihood = posterior(answered, own, spread, prior=prior, known=known)
    return Estimate(
        probability_yes=shares[0].sum(1),
        sensitivity=rates[0],
        specificity=1 - rates[1],
        dependence=dependence,
        thresholds=own,
        log_likelihood=float(alike @ log_likelihood),
    )


def posterior(
    answered: Answered, thresholds: Floats, spread: Floats, *, prior: float, known: Floats
) -> tuple[Floats, Floats]:
    """(2, Q, M) probabilities of truth and difficulty of each question, and (Q,) log likelihoods."""
    logs = np.log(chances(thresholds, spread))  # (2, P, 2, M)
    joint = np.empty((2, len(known), NODES))
    for truth, share in enumerate((prior, 1 - prior)):
        told = logs[truth, answered.people, answered.yes]  # (A, M)
        joint[truth] = np.log(share) + np.log(SHARES) + answered.per_question(told, len(known))
    joint[0, known == 0] = -np.inf
    joint[1, known == 1] = -np.inf
    top = joint.max((0, 2)) if len(known) else np.zeros(0)
    joint = np.exp(joint - top[:, None])
    total = joint.sum((0, 2))  # (Q,)
    return joint / total[:, None], top + np.log(total)


def chances(thresholds: Floats, spread: Floats) -> Floats:
    """(2, P, 2, M) probabilities of a no and a yes: by truth, person, answer and difficulty."""
    yes = normal(thresholds[:, :, None] + spread[:, None, None] * _DIFFICULTY)  # (2, P, M)
    return np.stack([1 - yes, yes], axis=2)


def normal(values: Any) -> Floats:
    """The normal distribution's share below; strictly between 0 and 1."""
    return np.clip(np.asarray(_erfc(-np.asarray(values) / sqrt(2)), dtype=np.float64) / 2, 1e-12, 1 - 1e-12)


def spreads(dependence: Dependence) -> Floats:
    """(2,) b and d above."""
    return np.array([sqrt(rho / (1 - rho)) for rho in dependence])


def marginals(thresholds: Floats, spread: Floats) -> Floats:
    """(2, P) rates of yes: where yes is right, and where no is; over all difficulties."""
    return normal(thresholds / np.sqrt(1 + spread**2)[:, None])


def thresholds_of(rates: tuple[float, float], spread: Floats) -> Floats:
    """(2,) thresholds that give a sensitivity and a specificity."""
    yes = np.clip((rates[0], 1 - rates[1]), 1e-9, 1 - 1e-9)
    quantiles: list[float] = [NormalDist().inv_cdf(rate) for rate in yes.tolist()]
    return np.asarray(np.array(quantiles) * np.sqrt(1 + spread**2), dtype=np.float64)


def starting_rates(prior: float) -> tuple[float, float]:
    """Sensitivity and specificity of people who see one class per image, in START_ERROR of them a wrong one.

    It is the class asked about with START_ERROR / (K - 1), and K is 1 / prior.
    """
    return 1 - START_ERROR, 1 - START_ERROR * prior / (1 - prior)


def _as_answers(thresholds: Floats, spread: Floats, strengths: Floats) -> Floats:
    """(2, 2, 1, M) so many answers as somebody with these thresholds gives."""
    each = chances(thresholds[:, None], spread)[:, 0]  # (2, 2, M)
    return np.asarray((strengths[:, None, None] * SHARES * each)[:, :, None])


def _moved(thresholds: Floats, counts: Floats, spread: Floats) -> Floats:
    """(2, P) thresholds after one step of Fisher scoring on (2, 2, P, M) expected answers."""
    at = thresholds[:, :, None] + spread[:, None, None] * _DIFFICULTY  # (2, P, M)
    density = np.exp(-(at**2) / 2) / sqrt(2 * np.pi)
    yes = normal(at)
    slope = (counts[:, 1] * density / yes - counts[:, 0] * density / (1 - yes)).sum(2)
    bend = (counts.sum(1) * density**2 / (yes * (1 - yes))).sum(2)
    step = np.clip(slope / np.maximum(bend, 1e-12), -LONGEST_STEP, LONGEST_STEP)
    return np.asarray(np.clip(thresholds + step, -FARTHEST, FARTHEST))
