"""A linear head by weighted ridge regression, whose scores are fair to each image."""

import torch
import torch.nn.functional as F
from torch import Tensor

RIDGE = 1.0  # penalty on the head's squared weights
LEAST_WEIGHT = 0.02  # of an image in the head whose class is quite open


def ridge(places: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted ridge regression to classes, with an intercept.

    An image counts the more, the surer its class is. The weights have mean 1, so that the penalty stays small
    where hardly any image's class is sure yet.

    Args:
        places: (N, P) of the images.
        classes: (N, K) probabilities.

    Returns:
        (N, K) scores, each row by a head that was fitted without it, and the head of all, (P + 1, K).
    """
    num_classes = classes.shape[1]
    entropy = torch.special.entr(classes).sum(1) / torch.tensor(float(num_classes)).log()  # (N,) in 0..1
    weights = (1 - entropy).clamp(min=LEAST_WEIGHT).double()[:, None]  # (N, 1)
    weights = weights / weights.mean()
    rows = F.pad(places.double(), (0, 1), value=1.0)  # (N, P + 1)
    penalty = torch.full((rows.shape[1],), RIDGE, dtype=torch.float64, device=rows.device)
    penalty[-1] = 1e-6  # the intercept is free
    factor = torch.linalg.cholesky(rows.T @ (weights * rows) + penalty.diag())
    head = torch.cholesky_solve(rows.T @ (weights * classes.double()), factor)  # (P + 1, K)
    scores = rows @ head
    solved = torch.linalg.solve_triangular(factor, rows.T, upper=False)  # (P + 1, N)
    leverage = solved.square().sum(0)[:, None] * weights  # (N, 1)
    without = (scores - leverage * classes.double()) / (1 - leverage).clamp(min=1e-3)
    return without.float(), head.float()
