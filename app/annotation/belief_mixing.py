"""How confirmations come between the questions of a round by a model's belief. Pure.

More of these are yes than one in K, and each yes returns to a second person. The law is that of more than two
classes, for the share of yes that the round itself expects: the mean of the probabilities with which its
questions were drawn. So about as many return among first questions as arise there, and none are left as a
block at the end. The share of yes stays as high as the round's questions make it; nothing can make it rare.
"""

from dataclasses import replace

from app.annotation.mixing import EXTRA, Mixture, mixture

LARGEST = 0.49  # share of yes for which the law of more than two classes is made


def mixture_by_belief(expected: float, *, least: int = 1) -> Mixture:
    """The law for questions of which this share will be yes.

    Args:
        expected: the mean of the probabilities with which their classes were drawn.
        least: yes and no answers that each question needs at least.
    """
    law = mixture(min(expected, LARGEST), least=least)
    if expected <= LARGEST:
        return law
    # Behind each first question stands what returns, if anything does, and later nothing can hide it: there
    # are fewer noes than yeses.
    return replace(law, probability=expected, returning=1.0, answers=least + expected + EXTRA)
