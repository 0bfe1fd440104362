"""Features in one cluster per class, and answers about their images."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.plus.votes import Votes

K = 10
EACH = 200  # images of a class


def clusters(*, spread: float = 0.3, each: int = EACH) -> tuple[Tensor, Tensor]:
    """Features (K * each, 16) in a cluster per class, and the classes."""
    draws = generator(0, "clusters")
    centres = F.normalize(torch.randn(K, 16, generator=draws), dim=1)
    classes = torch.arange(K).repeat_interleave(each)
    noise = torch.randn(len(classes), 16, generator=draws) / math.sqrt(16)
    return centres[classes] + spread * noise, classes


def complementary(classes: Tensor, *, wrong: float, seed: int = 0) -> Tensor:
    draws = generator(seed, "labels")
    labels = (classes + torch.randint(1, K, classes.shape, generator=draws)) % K
    return torch.where(torch.rand(len(classes), generator=draws) < wrong, classes, labels)


def votes_of(labels: Tensor, *, known: Tensor | None = None, true: Tensor | None = None) -> Votes:
    votes = F.one_hot(labels, K).float()
    if known is None or true is None:
        return Votes(votes, torch.zeros_like(votes))
    return Votes(votes * ~known[:, None], F.one_hot(true, K) * known[:, None].float())


def accuracy(found: Tensor, classes: Tensor) -> float:
    return float((found.argmax(1) == classes).float().mean())
