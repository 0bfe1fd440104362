"""Layers that torch lacks: batch normalisation that knows domains, and dropout from random bits."""

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.distributed.batch_norm import normalised_together

BITS = 8  # of a random byte


class DomainInForce:
    """The domain of the pass under way: owned by a classifier, read by all of its batch normalisations."""

    def __init__(self) -> None:
        self.number = 0


class DomainBatchNorm(nn.Module):
    """Batch normalisation with one scale and offset, and running statistics per domain or shared by both.

    A batch is always normalised by its own statistics in training. The domain in force says which running
    statistics that moves and which are used in eval mode. A batch with a single
    value per channel has no spread and takes the running statistics in training as well.

    Args:
        channels: C of inputs (B, C) or (B, C, H, W).
        per_domain: whether each domain has running statistics of its own.
        domain: in force; None has one of its own.
        eps, momentum: as in torch.
    """

    def __init__(
        self,
        channels: int,
        *,
        per_domain: bool,
        domain: DomainInForce | None = None,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
    ) -> None:
        super().__init__()
        rows = 2 if per_domain else 1
        self.domain = DomainInForce() if domain is None else domain
        self.in_parts = False  # whether other processes hold the rest of each batch: see `spreading`
        self.eps = eps
        self.momentum = 0.1 if momentum is None else momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(rows, channels))
        self.register_buffer("variance", torch.ones(rows, channels))

    @classmethod
    def like(
        cls, norm: nn.BatchNorm1d | nn.BatchNorm2d, *, per_domain: bool, domain: DomainInForce | None = None
    ) -> Self:
        """Take over values and statistics of torch's batch normalisation, the latter for each domain."""
        made = cls(
            norm.num_features, per_domain=per_domain, domain=domain, eps=norm.eps, momentum=norm.momentum
        )
        with torch.no_grad():
            for own, given in (
                (made.weight, norm.weight),
                (made.bias, norm.bias),
                (made.mean, norm.running_mean),
                (made.variance, norm.running_var),
            ):
                if given is not None:
                    own.copy_(given)
        return made.train(norm.training)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C) or (B, C, H, W), normalised; the same shape and type."""
        row = self.domain.number if len(self.mean) > 1 else 0
        if self.in_parts and self.training:
            return self._together(x, row)
        return F.batch_norm(
            x,
            self.mean[row],
            self.variance[row],
            self.weight,
            self.bias,
            training=self.training and x.numel() > x.shape[1],
            momentum=self.momentum,
            eps=self.eps,
        )

    def _together(self, x: Tensor, row: int) -> Tensor:
        out, mean, variance = normalised_together(x, self.weight, self.bias, self.eps)
        with torch.no_grad():
            self.mean[row].lerp_(mean, self.momentum)
            self.variance[row].lerp_(variance, self.momentum)
        return out


class DomainBatchNormAct(DomainBatchNorm):
    """The same in the place of timm's BatchNormAct2d, which drops and activates what it has normalised."""

    drop: nn.Module
    act: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        """The input's shape and type, normalised and activated."""
        out: Tensor = self.act(self.drop(super().forward(x)))
        return out


def _replacing(
    norm: nn.BatchNorm1d | nn.BatchNorm2d, *, per_domain: bool, domain: DomainInForce | None
) -> DomainBatchNorm:
    parts = dict(norm.named_children())
    if not parts:
        return DomainBatchNorm.like(norm, per_domain=per_domain, domain=domain)
    if set(parts) != {"drop", "act"}:
        raise TypeError(
            f"{type(norm).__name__} is a batch normalisation with parts unknown here: {list(parts)}"
        )
    made = DomainBatchNormAct.like(norm, per_domain=per_domain, domain=domain)
    made.drop, made.act = parts["drop"], parts["act"]
    return made


def replace_batch_norms(network: nn.Module, *, per_domain: bool, domain: DomainInForce | None = None) -> None:
    """Put a DomainBatchNorm with the same values in the place of each batch normalisation."""
    for name, child in list(network.named_children()):
        if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d):
            setattr(network, name, _replacing(child, per_domain=per_domain, domain=domain))
        else:
            replace_batch_norms(child, per_domain=per_domain, domain=domain)


class HalfDropout(nn.Module):
    """nn.Dropout(0.5) with other draws, in a sixth of the time on the CPU.

    There, torch draws a whole number for each value, which makes dropout as dear as a convolution. Elsewhere
    this is torch's. The draws come from the device's global generator.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Any shape: in training zero half of the values and double the others; in eval mode change none."""
        if not self.training or x.device.type != "cpu":
            return F.dropout(x, 0.5, self.training)
        draws = torch.empty((x.numel() + BITS - 1) // BITS, 1, dtype=torch.uint8).random_()
        bits = (draws >> torch.arange(BITS, dtype=torch.uint8)) & 1  # (draws, 8)
        return x * bits.flatten()[: x.numel()].view(x.shape).to(x.dtype).mul_(2)
