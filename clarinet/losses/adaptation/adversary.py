"""The adversarial losses: the paper's scattered conditional one (sections 4.2 and 4.3), CDAN+E and DANN."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.recipes.choices import DomainLoss, EntropyGradient


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float | Tensor) -> Tensor:  # ctx is untyped in torch
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None


def reversed_gradient(x: Tensor, strength: float | Tensor) -> Tensor:
    """The identity forwards; backwards the gradient is multiplied by -strength (Ganin et al. 2016, DANN)."""
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

    Source: Zhang et al., section 4.2, the sharpening T.
    """
    return F.log_softmax(logits / sharpening, dim=1)


def entropy_weights(log_probabilities: Tensor) -> Tensor:
    """The entropy weight w = 1 + exp(-H): (N,) of (N, K) log-probabilities, 2 if certain, 1 + 1/K if uniform.

    Source: Zhang et al., section 4.2, w(x), where the probabilities are T(f).
    """
    entropy = -(log_probabilities.exp() * log_probabilities).sum(1)
    return 1 + torch.exp(-entropy)


def conditioned(features: Tensor, probabilities: Tensor) -> Tensor:
    """Conditioning, the input g of D: outer product of (N, D) features and (N, K) probabilities, (N, K * D).

    Source: Zhang et al., section 4.2, g(x) = G(x) outer T(f(x)).
    """
    # A broadcast product says the same, but its gradient sums N * K * D values that bmm never writes down.
    return torch.bmm(probabilities[:, :, None], features[:, None, :]).flatten(1)


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
    reversal: float | Tensor,
    conditioning: bool = True,
    entropy_gradient: EntropyGradient = "none",
    domain_loss: DomainLoss = "sum",
) -> Tensor:
    """The binary cross-entropy of D, which D minimises and, through a reversed gradient, G maximises.

        -sum_s w_s log D(g_s) / sum_s w_s - sum_t w_t log(1 - D(g_t)) / sum_t w_t,
        g = f (x) T(softmax(logits)), w = 1 + exp(-H(T))

    The sum of the source's weighted mean of -log D(g) and the target's of -log(1 - D(g)), with entropy
    weights normalised in each part. With two source parts (complementary and true, eq. advP) their terms are
    averaged, so that source and target stay in balance. Source is 1. T(f) inside g is a constant for the
    gradient, and so are the entropy weights unless they pass a reversed one; the paper does not say.

    With l = 1 and reversed entropy gradients this is CDAN+E, without conditioning DANN.

    Args:
        discriminator: (N, K * D) to (N, 1) logits; without conditioning from (N, D).
        source_parts: one or two parts of the source batch.
        target: the target batch, of any length of its own.
        sharpening: l of T, in (0, 1].
        reversal: strength of the reversal for the features, >= 0.
        conditioning: false gives D the bare features, each image with its own weight alone.
        entropy_gradient: "reversed" passes the gradient of the entropy weights to the logits, reversed like
            that of the features, the sum that normalises them being a constant, as the published code does.
        domain_loss: "mean" halves the sum, as the published code does.

    Returns:
        () loss in nats.

    Source: Zhang et al., eqs. (adv1) and (advP).
    """

    # One pass of all parts through D, whose first layer takes half as long at twice the rows.
    parts = [*source_parts, target]
    sizes = [len(part.weights) for part in parts]
    seen = reversed_gradient(torch.cat([part.features for part in parts]), reversal)  # (N, D)
    weights = torch.cat([part.weights for part in parts])  # (N,)
    if conditioning:
        logits = torch.cat([part.logits for part in parts])  # (N, K)
        log_t = log_sharpened(logits.detach(), sharpening)  # (N, K)
        certainty = entropy_weights(log_t)  # (N,)
        if entropy_gradient == "reversed":
            certainty = reversed_gradient(entropy_weights(log_sharpened(logits, sharpening)), reversal)
        seen, weights = conditioned(seen, log_t.exp()), certainty * weights  # (N, K * D), (N,)
    scores = discriminator(seen).float().squeeze(1)  # (N,)
    is_source = torch.arange(len(scores), device=scores.device) < len(scores) - len(target.weights)
    losses = F.binary_cross_entropy_with_logits(scores, is_source.to(scores.dtype), reduction="none")  # (N,)
    means = [
        (w * loss).sum() / w.detach().sum()
        for w, loss in zip(torch.split(weights, sizes), torch.split(losses, sizes), strict=True)
    ]  # () each
    both: Tensor = torch.stack(means[:-1]).mean() + means[-1]
    return both if domain_loss == "sum" else both / 2
