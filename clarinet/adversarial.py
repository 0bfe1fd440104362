"""The scattered conditional adversarial loss and its parts (sections 4.2 and 4.3 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:  # ctx is untyped in torch
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


def reversed_gradient(x: Tensor, strength: float) -> Tensor:
    """The identity forwards; backwards the gradient is multiplied by -strength."""
    out: Tensor = _Reversal.apply(x, strength)
    return out


def log_sharpened(logits: Tensor, sharpening: float) -> Tensor:
    """log T(f), where T(f)_k = f_k^(1/l) / sum_j f_j^(1/l) and l = sharpening.

    Equal to log_softmax(logits / l), which stays finite where powers of saturated probabilities do not.

    Args:
        logits: (N, K).
        sharpening: l in (0, 1].

    Returns:
        (N, K) log-probabilities.
    """
    return F.log_softmax(logits / sharpening, dim=1)


def entropy_weights(log_probabilities: Tensor) -> Tensor:
    """w = 1 + exp(-H) of (N, K) log-probabilities: (N,), 2 for certain rows and 1 + 1/K for uniform ones."""
    entropy = -(log_probabilities.exp() * log_probabilities).sum(1)
    return 1 + torch.exp(-entropy)


def conditioned(features: Tensor, probabilities: Tensor) -> Tensor:
    """The input of D: outer product of (N, D) features and (N, K) probabilities, as (N, K * D)."""
    return (probabilities[:, :, None] * features[:, None, :]).flatten(1)


@dataclass(frozen=True, slots=True)
class DomainBatch:
    """One part of a batch for the adversarial loss: features (N, D), logits (N, K), weights (N,)."""

    features: Tensor
    logits: Tensor
    weights: Tensor


def scattered_adversarial_loss(
    discriminator: nn.Module,
    source_parts: Sequence[DomainBatch],
    target: DomainBatch,
    *,
    sharpening: float,
    reversal: float,
) -> Tensor:
    """The binary cross-entropy of D, which D minimises and, through a reversed gradient, G maximises.

    The sum of the source's weighted mean of -log D(g) and the target's of -log(1 - D(g)), with entropy
    weights normalised in each part. With two source parts (complementary and true, eq. advP) their terms are
    averaged, so that source and target stay in balance. Source is 1. T(f) inside g and the entropy weights
    are constants for the gradient; the paper does not say.

    Args:
        discriminator: (N, K * D) to (N, 1) logits.
        source_parts: one or two parts of the source batch.
        target: the target batch, of any length of its own.
        sharpening: l of T.
        reversal: strength of the reversal for the features.

    Returns:
        () loss in nats.
    """

    def mean_loss(part: DomainBatch, label: float) -> Tensor:
        log_t = log_sharpened(part.logits.detach(), sharpening)  # (N, K)
        weights = entropy_weights(log_t) * part.weights  # (N,)
        joint = conditioned(reversed_gradient(part.features, reversal), log_t.exp())  # (N, K * D)
        scores = discriminator(joint).float().squeeze(1)  # (N,)
        losses = F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label), reduction="none")
        return (weights * losses).sum() / weights.sum()

    source = torch.stack([mean_loss(part, 1.0) for part in source_parts]).mean()
    return source + mean_loss(target, 0.0)
