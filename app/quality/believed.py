"""What answers to questions by a model's belief are worth, by what their people answer to uniform ones. Pure.

Such a question asks about class k with the probability q, which is as probable as the model finds the class:
q is the prior of a yes. What somebody says moves it as their sensitivity and specificity do. These come from
uniform questions and known pictures alone, where a yes is right once in K whatever a model believes: so the
same holds for whether they look (`looking`). Of who answered neither nobody knows them, and what they say
moves nothing. People are taken to err independently of each other.
"""

from collections.abc import Iterable, Mapping
from math import exp, log
from typing import NamedTuple

from app.annotation.consensus import Verdict, weighed


class ByBelief(NamedTuple):
    """A question by a model's belief that has answers."""

    prior: float  # q
    probability_yes: float | None  # that yes is right; None where nobody knows how reliable its people are

    def weigh(self, found: Verdict, *, num_classes: int) -> Verdict:
        """The label that follows if all are trusted alike, weighing what it tells beyond q."""
        if self.probability_yes is None:
            return Verdict(None, found.answers, 0.0)
        return weighed(found, self.probability_yes, num_classes=num_classes, prior=self.prior)


def weigh_answers(
    rows: Iterable[tuple[int, str, int, float]], rates: Mapping[str, tuple[float, float]]
) -> dict[int, ByBelief]:
    """By question, from its answers: id, who said it, whether it is yes, and q.

    `rates`: sensitivity and specificity of whom the model knows, strictly between 0 and 1.
    """
    priors: dict[int, float] = {}
    odds: dict[int, float] = {}  # logarithms of
    for id_, by, is_yes, prior in rows:
        priors[id_] = prior
        if by in rates and 0 < prior < 1:
            sensitivity, specificity = rates[by]
            told = log(sensitivity / (1 - specificity)) if is_yes else log((1 - sensitivity) / specificity)
            odds[id_] = odds.get(id_, log(prior / (1 - prior))) + told
    return {
        id_: ByBelief(prior, 1 / (1 + exp(-odds[id_])) if id_ in odds else None)
        for id_, prior in priors.items()
    }
