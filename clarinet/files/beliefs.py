"""What a model believes of images, and how often a question then asks about each class. No torch.

Beliefs are kept as whole numbers, and so are the weights of the classes: whoever recomputes a draw gets the
same one on any machine. Of the classes that an image may still have, R of them, class k is asked about with

    q_k = (1 - e) p_k / (sum over R of p) + e / R,

p the belief and e a floor: no class is impossible, so that an answer can be weighted by 1/q.
"""

import numpy as np
from numpy.typing import NDArray

UNIT = 2**16 - 1  # a belief of 1
PERCENT = 100
FLOOR_PERCENT = 20  # of a question's probability shared out equally

Beliefs = NDArray[np.uint16]


def beliefs_of(probabilities: NDArray[np.floating]) -> Beliefs:
    """(N, K) probabilities in [0, 1] as whole numbers."""
    return np.rint(np.asarray(probabilities, np.float64) * UNIT).astype(np.uint16)


def question_weights(
    beliefs: Beliefs, possible: NDArray[np.bool_], *, floor_percent: int = FLOOR_PERCENT
) -> NDArray[np.int64]:
    """How likely each class is to be asked about, as whole numbers: q is the weight over its row's sum.

    Args:
        beliefs: (N, K).
        possible: (N, K), the classes that an image may still have; at least two in each row.
        floor_percent: 100 e, in 1..100; 100 asks about all possible classes alike.

    Returns:
        (N, K), at least 1 where a class is possible and 0 elsewhere.
    """
    if not 1 <= floor_percent <= PERCENT:
        raise ValueError(f"floor_percent is {floor_percent}; it must lie in 1..{PERCENT}")
    if not bool((possible.sum(1) > 1).all()):
        raise ValueError("a question needs two classes that are possible")
    believed = np.where(possible, beliefs.astype(np.int64), 0)  # (N, K)
    believed = np.where(believed.sum(1, keepdims=True) == 0, possible.astype(np.int64), believed)
    total, classes = believed.sum(1, keepdims=True), possible.sum(1, keepdims=True)  # (N, 1)
    weights = (PERCENT - floor_percent) * classes * believed + floor_percent * total
    return np.where(possible, weights, 0).astype(np.int64)


def question_probabilities(weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, K) rows that sum to 1, of `question_weights`."""
    shares: NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
    return shares
