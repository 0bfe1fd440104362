"""Whether somebody looks at the pictures, told without known ones. Pure.

Who does not look says yes at a rate of his own, whatever is shown: never, always, every other time. Who looks
says yes to a match with 1 - e and to others with e / (K - 1), for some share e of pictures seen wrongly. Two
things tell them apart. The other people's answers to the same questions say which were matches: the
probability of a match, given theirs alone, stands in for the truth. And of the questions that nobody else
answered as many are matches as of the others' questions: one in K, or fewer where some pictures show none of
the classes.

`evidence` is the logarithm of how many times more probable a person's answers are if he looks, with the e
that fits best, than if he does not, with the rate that fits best. Which questions were put to others does not
matter: it depends on answers that both explanations have in common. Answers to questions by a model's belief
say nothing here: who answered no others is judged by haste and known pictures alone.
"""

import numpy as np
from numpy.typing import NDArray

from app.quality.dawid_skene import (
    NODES,
    SHARES,
    Answered,
    Estimate,
    Floats,
    Integers,
    chances,
    spreads,
)

# Who looks sees fewer pictures wrongly than this share of what somebody who guesses does. The worst of honest
# crowd workers see three in ten wrongly.
WORST = 0.4
ERRORS = 12  # values of e that are tried
MARKED = -2.3  # ten times more probable that he does not look
PAUSED = -4.6  # a hundred times
FEWEST = 50  # yes and no answers before anything is said of anybody
USUAL = 100.0  # questions of others that weigh as much as what classes were drawn for, 1 / K


def evidence(
    questions: Integers,
    people: Integers,
    is_yes: NDArray[np.bool_],
    *,
    prior: float,
    known: Floats,
    found: Estimate,
    times: Floats | None = None,
) -> Floats:
    """(P,) of each person; 0 for who said nothing.

    Arguments as of `dawid_skene.estimate`, which gave `found`.
    """
    num_people = found.thresholds.shape[1]
    answered = Answered.of(questions, people, is_yes)
    alike = (np.ones(len(known)) if times is None else times)[answered.questions]  # (A,)
    priors = _shares_of_others(answered, alike, found, prior=prior, known=known)  # (P,)
    match = _match_by_others(answered, found, priors=priors[answered.people], known=known)  # (A,)
    worst = WORST * (1 - prior)
    errors = np.linspace(worst / ERRORS, worst, ERRORS)
    yes = match[:, None] * (1 - errors) + (1 - match[:, None]) * errors * prior / (1 - prior)  # (A, E)
    told = np.log(np.where(answered.yes[:, None] == 1, yes, 1 - yes)) * alike[:, None]
    looks = answered.per_person(told, num_people).sum(0).max(1)  # (P,)
    no_yes = answered.per_person(alike[:, None], num_people)[:, :, 0]  # (2, P)
    total = no_yes.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        idles = np.where(no_yes > 0, no_yes * np.log(no_yes / total), 0.0).sum(0)
    return np.asarray(np.where(total > 0, looks - idles, 0.0))


def _shares_of_others(
    answered: Answered, alike: Floats, found: Estimate, *, prior: float, known: Floats
) -> Floats:
    """(P,) share of matches among the questions that each person did not answer."""
    num_people = found.thresholds.shape[1]
    drawn = np.isnan(known)[answered.questions]  # of known pictures half are matches
    first = np.zeros(len(answered.questions), dtype=np.bool_)
    first[answered.starts] = True
    match = found.probability_yes[answered.questions]
    every, own = alike * (drawn & first), alike * drawn
    matches = every @ match - np.bincount(answered.people, own * match, num_people)
    count = every.sum() - np.bincount(answered.people, own, num_people)
    return np.asarray((matches + USUAL * prior) / (count + USUAL))


def _match_by_others(answered: Answered, found: Estimate, *, priors: Floats, known: Floats) -> Floats:
    """(A,) that the question of each answer is a match, by what the other people said to it."""
    logs = np.log(chances(found.thresholds, spreads(found.dependence)))  # (2, P, 2, M)
    joint = np.empty((2, len(answered.questions), NODES))
    for truth, share in enumerate((priors, 1 - priors)):
        told = logs[truth, answered.people, answered.yes]  # (A, M)
        others = answered.per_question(told, len(known))[answered.questions] - told
        joint[truth] = np.log(share)[:, None] + np.log(SHARES) + others
    joint = np.exp(joint - joint.max((0, 2), initial=-np.inf)[:, None])
    match = joint[0].sum(1) / joint.sum((0, 2))
    truths = known[answered.questions]
    return np.asarray(np.where(np.isnan(truths), match, truths))
