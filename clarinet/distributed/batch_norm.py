"""Batch normalisation by the statistics of a batch whose parts several processes hold.

torch's own, SyncBatchNorm, refuses the CPU, and knows no domains.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def normalised_together(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise the own part of a batch by the whole batch's mean and variance.

    Args:
        x: (R, C) or (R, C, H, W), of any floating type; computed in float32 at least.
        weight, bias: (C,).
        eps: added to the variance.

    Returns:
        The same shape and type as x; and, without gradient, the mean and the unbiased variance, (C,) each.
    """
    out, mean, variance = _Together.apply(x, weight, bias, eps)
    return out, mean, variance


class _Together(torch.autograd.Function):
    """With n values of a channel in all processes, y = w (x - m) r + b and r = (v + eps)^(-1/2),

        dx = w r (dy - sum dy / n - (x - m) r sum(dy (x - m) r) / n),

    where the sums run over all processes. Weight and bias get the own part's gradients, as all weights do.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:  # ctx is untyped in torch
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        over = [place for place in range(x.ndim) if place != 1]
        total = torch.cat([wide.sum(over), wide.new_full((1,), x.numel() // x.shape[1])])
        dist.all_reduce(total)
        mean, count = total[:-1] / total[-1], total[-1]
        centred = wide - _by_channel(mean, x)
        squares = centred.square().sum(over)  # apart from the mean: a difference of squares loses digits
        dist.all_reduce(squares)
        scale = (squares / count + eps).rsqrt()
        unbiased = squares / (count - 1)
        ctx.save_for_backward(x, weight, mean, scale, count)
        out = centred * _by_channel(scale * weight, x) + _by_channel(bias, x)
        ctx.mark_non_differentiable(mean, unbiased)
        return out.to(x.dtype), mean, unbiased

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, mean, scale, count = ctx.saved_tensors
        wide = gradients[0].to(mean.dtype)
        over = [place for place in range(x.ndim) if place != 1]
        unit = (x.to(mean.dtype) - _by_channel(mean, x)) * _by_channel(scale, x)
        own = torch.stack([wide.sum(over), (wide * unit).sum(over)])  # (2, C)
        whole = own.clone()
        dist.all_reduce(whole)
        of_mean, of_scale = whole / count
        inner = wide - _by_channel(of_mean, x) - unit * _by_channel(of_scale, x)
        of_x = inner * _by_channel(scale * weight, x)
        return of_x.to(x.dtype), own[1].to(weight.dtype), own[0].to(weight.dtype), None


def _by_channel(values: Tensor, x: Tensor) -> Tensor:
    """(C,) values where they multiply x, (R, C) or (R, C, H, W)."""
    return values.view(1, -1, *[1] * (x.ndim - 2))
