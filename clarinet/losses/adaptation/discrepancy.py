"""The multi-kernel maximum mean discrepancy (MMD) between two sets of features, which DAN minimises."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.recipes.config import TrainConfig

WIDEST = 4  # the kernels' widths are the median squared distance times 1/4, 1/2, 1, 2 and 4
KERNELS = 5


def multi_kernel_discrepancy(
    source: Tensor,
    target: Tensor,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Tensor:
    """The squared MMD of two weighted sets under the sum of five Gaussian kernels.

    k(x, y) = sum over u = -2..2 of exp(-|x - y|^2 / (2^u m)), where m is the median squared distance between
    different rows of both sets together, a constant for the gradient. This is the biased estimate, which
    keeps the pairs of a row with itself: it is never negative, and 0 for equal sets.

    Args:
        source: (N, D) features in float32 or wider.
        target: (M, D).
        source_weights: (N,) >= 0, not all 0; None counts rows alike.
        target_weights: (M,) likewise.

    Returns:
        () in [0, 10] up to rounding.

    Source: Long et al., Learning Transferable Features with Deep Adaptation Networks (2015), eqs. 1 to 3,
    each kernel with weight 1, not 1/5.
    """
    rows = torch.cat([source, target])  # (N + M, D)
    rows = rows - rows.detach().mean(0)  # distances stay, and the sum below loses fewer digits
    lengths = rows.square().sum(1)  # (N + M,)
    distances = (lengths[:, None] + lengths - 2 * rows @ rows.T).clamp(min=0)  # (N + M, N + M), squared
    above, right = torch.triu_indices(len(rows), len(rows), 1, device=rows.device)
    median = distances.detach()[above, right].median().clamp(min=torch.finfo(rows.dtype).eps)
    kernel = torch.exp(-distances / (WIDEST * median))
    total = kernel
    for _ in range(KERNELS - 1):
        kernel = kernel.square()  # half as wide
        total = total + kernel
    signs = torch.cat([_shares(source, source_weights), -_shares(target, target_weights)])  # (N + M,)
    return signs @ total @ signs


def _shares(rows: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return torch.full_like(rows[:, 0], 1 / len(rows), requires_grad=False)
    return (weights / weights.sum()).to(rows.dtype)


class Discrepancy:
    """The discrepancy between the features of both domains."""

    name = "discrepancy"

    def __init__(self, config: TrainConfig, network: nn.Module | None) -> None:  # noqa: ARG002 - the protocol's
        self._weight = config.adaptation.adaptation_weight

    @staticmethod
    def network(config: TrainConfig, features: int, num_classes: int) -> None:
        """None: it learns nothing of its own."""

    def __call__(self, source: Sequence[DomainBatch], target: DomainBatch, shares: Shares) -> Tensor:
        """See AdaptationLoss."""
        discrepancy = multi_kernel_discrepancy(
            torch.cat([part.features for part in source]),
            target.features,
            torch.cat([part.weights for part in source]),
        )
        return shares.loss * self._weight * discrepancy
