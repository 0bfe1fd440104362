"""Logits, probabilities and weights for tests of losses."""

import torch
from torch import Tensor

from clarinet.data.seeding import generator


def random_logits(n: int, k: int) -> Tensor:
    """(n, k) logits, the same each time."""
    draws = generator(5, f"nonuniform/{n}/{k}")
    return 2 * torch.randn(n, k, generator=draws, dtype=torch.float64)


def random_shares(n: int, k: int) -> Tensor:
    """(n, k) probabilities, none near 0."""
    draws = generator(6, f"shares/{n}/{k}")
    return (0.5 * torch.randn(n, k, generator=draws, dtype=torch.float64)).softmax(1)


def ones(n: int) -> Tensor:
    """(n,) weights."""
    return torch.ones(n, dtype=torch.float64)
