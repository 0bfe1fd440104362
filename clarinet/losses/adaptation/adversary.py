"""The adversarial losses: the paper's scattered conditional one (sections 4.2 and 4.3), CDAN+E and DANN."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.networks.classifier import discriminator
from clarinet.networks.precision import mixed
from clarinet.recipes.choices import AdversarialGradient, DomainLoss, SourceTerms
from clarinet.recipes.config import TrainConfig


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


def entropy_weights(log_probabilities: Tensor, epsilon: float = 0.0) -> Tensor:
    """The entropy weight w = 1 + exp(-H): (N,) of (N, K) log-probabilities, 2 if certain, 1 + 1/K if uniform.

        H = -sum_k p_k log(p_k + epsilon)

    Source: Zhang et al., section 4.2, w(x), where the probabilities are T(f) and epsilon is 0; that of the
    published code is 1e-5.
    """
    probabilities = log_probabilities.exp()
    logarithms = torch.log(probabilities + epsilon) if epsilon else log_probabilities
    return 1 + torch.exp((probabilities * logarithms).sum(1))


def conditioned(features: Tensor, probabilities: Tensor) -> Tensor:
    """Conditioning, the input g of D: outer product of (N, D) features and (N, K) probabilities, (N, K * D).

    Source: Zhang et al., section 4.2, g(x) = G(x) outer T(f(x)).
    """
    # A broadcast product says the same, but its gradient sums N * K * D values that bmm never writes down.
    return torch.bmm(probabilities[:, :, None], features[:, None, :]).flatten(1)


def scattered_adversarial_loss(
    discriminator: nn.Module,
    source_parts: Sequence[DomainBatch],
    target: DomainBatch,
    *,
    sharpening: float,
    reversal: float | Tensor,
    entropy_reversal: float | Tensor | None = None,
    conditioning: bool = True,
    gradient: AdversarialGradient = "whole",
    entropy_epsilon: float = 0.0,
    source_terms: SourceTerms = "sum",
    domain_loss: DomainLoss = "sum",
) -> Tensor:
    """The binary cross-entropy of D, which D minimises and, through a reversed gradient, F and G maximise.

        -sum_s w_s log D(g_s) / sum_s w_s - sum_t w_t log(1 - D(g_t)) / sum_t w_t,
        g = f (x) T(softmax(logits)), w = 1 + exp(-H(T))

    The sum of the source's weighted mean of -log D(g) and the target's of -log(1 - D(g)), with entropy
    weights normalised in each part. With two source parts (complementary and true, eq. advP) it is the sum of
    three such means. Source is 1. Line 17 of the paper's algorithm ascends on all of it, so T(f) inside g and
    the entropy weights carry a gradient, which moves F as well.

    With l = 1 and the gradient "weights" this is CDAN+E, without conditioning DANN.

    Args:
        discriminator: (N, K * D) to (N, 1) logits; without conditioning from (N, D).
        source_parts: one or two parts of the source batch.
        target: the target batch, of any length of its own.
        sharpening: l of T, in (0, 1].
        reversal: strength of the reversal, >= 0.
        entropy_reversal: that for the entropy weights under the gradient "weights"; None is the same.
        conditioning: false gives D the bare features, each image with its own weight alone.
        gradient: what carries it to F and G: "whole" all that depends on them; "weights" the features and the
            entropy weights, T(f) inside g and the sum that normalises the weights being constants, as in the
            published code; "features" these alone.
        entropy_epsilon: see `entropy_weights`.
        source_terms: "mean" averages two source parts, so that source and target stay in balance.
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
        moved = reversed_gradient(logits, reversal) if gradient == "whole" else logits.detach()
        log_t = log_sharpened(moved, sharpening)  # (N, K)
        certainty = entropy_weights(log_t, entropy_epsilon)  # (N,)
        if gradient == "weights":
            certainty = reversed_gradient(
                entropy_weights(log_sharpened(logits, sharpening), entropy_epsilon),
                reversal if entropy_reversal is None else entropy_reversal,
            )
        seen, weights = conditioned(seen, log_t.exp()), certainty * weights  # (N, K * D), (N,)
    scores = discriminator(seen).squeeze(1)  # (N,)
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    is_source = torch.arange(len(scores), device=scores.device) < len(scores) - len(target.weights)
    losses = F.binary_cross_entropy_with_logits(scores, is_source.to(scores.dtype), reduction="none")  # (N,)
    means = [
        (w * loss).sum() / (w if gradient == "whole" else w.detach()).sum()
        for w, loss in zip(torch.split(weights, sizes), torch.split(losses, sizes), strict=True)
    ]  # () each
    of_source = torch.stack(means[:-1])
    both: Tensor = (of_source.sum() if source_terms == "sum" else of_source.mean()) + means[-1]
    return both if domain_loss == "sum" else both / 2


def full_reversal(config: TrainConfig) -> float:
    """The strength of the reversal once the adaptation has its whole weight.

    All networks move in one summed step: D with gamma_2, F and G with gamma_1. Scaled by the discriminator, F
    and G feel gamma_2 * lambda as in the paper; by the classifier, gamma_1 * lambda as in the published code.
    """
    strength, rates = config.adaptation.adaptation_weight, config.optimisation
    if config.adaptation.reversal_scale == "classifier":
        return strength
    return strength * rates.discriminator_learning_rate / rates.learning_rate


class Adversary:
    """A discriminator that tells the domains apart, and features that keep it from doing so."""

    name = "adversarial"

    def __init__(self, config: TrainConfig, network: nn.Module | None) -> None:
        if network is None:
            raise ValueError("an adversary needs its discriminator")
        self._config = config
        self._discriminator = network

    @staticmethod
    def network(config: TrainConfig, features: int, num_classes: int) -> nn.Module:
        """The discriminator."""
        inputs = features * (num_classes if config.adaptation.conditioning else 1)
        return discriminator(inputs, weights=config.adaptation.discriminator_weights)

    def __call__(self, source: Sequence[DomainBatch], target: DomainBatch, shares: Shares) -> Tensor:
        """See AdaptationLoss. D always learns with all its weight; the shares are of what F and G feel."""
        options, whole = self._config.adaptation, full_reversal(self._config)
        with mixed(self._config.network.precision, target.features.device):
            return scattered_adversarial_loss(
                self._discriminator,
                source,
                target,
                sharpening=options.sharpening,
                reversal=shares.loss * whole,
                entropy_reversal=shares.entropy * whole,
                conditioning=options.conditioning,
                gradient=options.adversarial_gradient,
                entropy_epsilon=options.entropy_epsilon,
                source_terms=options.source_terms,
                domain_loss=options.domain_loss,
            )
