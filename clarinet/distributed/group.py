"""The processes that train one run together.

Each of them knows the whole batch of a step, draws what one process alone would draw, and takes its part of
the batch through the networks. What comes out is joined, so that every process computes the whole loss: risks
and discrepancies that are no sums over images stay what they are. Gradients of the weights then are sums over
the parts.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from clarinet.recipes.errors import ConfigError


class Group:
    """This process among those of its run; by itself it is alone, and none of its methods does anything.

    Args:
        rank: which of them it is, counted from 0; the first one leads: it reports, and writes all files.
        size: how many they are. More than one must have called `joining.join`.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size
        self._images = 0  # of the pass under way, of all processes

    @property
    def is_alone(self) -> bool:
        """Whether this process trains by itself."""
        return self.size == 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that reports and writes."""
        return self.rank == 0

    def part(self, count: int) -> slice:
        """Which of so many rows are this process's."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def spread(self, images: Tensor, network: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """What a network makes of a batch, of which each process takes its part.

        Args:
            images: (B, ...) of the whole batch, the same in all processes.
            network: gives tensors (R, ...) of R images.

        Returns:
            The tensors of all images, (B, ...) each. The gradient of a loss that every process computes from
            them reaches the own part alone.

        Raises:
            ConfigError: there are fewer images than processes.
        """
        if self.is_alone:
            return network(images)
        if len(images) < self.size:
            raise ConfigError(
                f"a batch of {len(images)} images cannot be shared by {self.size} processes; take fewer "
                "processes or a larger batch_size"
            )
        self._images = len(images)
        return tuple(self.joined(found, len(images)) for found in network(images[self.part(len(images))]))

    def joined(self, part: Tensor, count: int) -> Tensor:
        """All processes' parts of so many rows: (count, ...); gradients reach the own part alone."""
        if self.is_alone:
            return part
        whole: Tensor = _Joined.apply(part, self.part(count), count)
        return whole

    def with_noise(self, own: Tensor, draw: Callable[[Tensor], Tensor], shape: tuple[int, ...]) -> Tensor:
        """Multiply the own part of a batch by noise that is drawn for all of it, as one process would.

        Args:
            own: (R, ...), of the pass under way.
            draw: multiplies a tensor by noise.
            shape: of the noise of one image; it fits `own` by broadcasting.
        """
        noise = draw(own.new_ones(self._images, *shape))
        return own * noise[self.part(self._images)]

    def sum_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Give all processes the same gradients, before the optimiser's step.

        Those of its first group of parameters, through which each takes its part of the batch, are summed.
        Each process has the whole gradient of the others, which see what was joined. Their mean keeps what
        rounding could set apart together.
        """
        if self.is_alone:
            return
        for number, parameters in enumerate(optimizer.param_groups):
            gradients = [each.grad for each in parameters["params"] if each.grad is not None]
            if not gradients:
                continue
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            dist.all_reduce(flat)
            if number > 0:
                flat /= self.size
            sizes = [gradient.numel() for gradient in gradients]
            for gradient, summed in zip(gradients, torch.split(flat, sizes), strict=True):
                gradient.copy_(summed.view_as(gradient))

    def any(self, wish: bool) -> bool:
        """Whether any process wants it."""
        if self.is_alone:
            return wish
        wishes = torch.tensor(int(wish))
        dist.all_reduce(wishes, dist.ReduceOp.MAX)
        return bool(wishes)

    def same(self, values: Tensor) -> Tensor:
        """The leader's values, of the shape and type that all have: (...)."""
        if not self.is_alone:
            values = values.contiguous()
            dist.broadcast(values, 0)
        return values

    def same_number(self, number: float | None) -> float | None:
        """The leader's number, or None."""
        told = self.same(torch.tensor(torch.nan if number is None else number, dtype=torch.float64))
        return None if bool(told.isnan()) else float(told)

    def same_bytes(self, content: bytes | None) -> bytes | None:
        """The leader's bytes, or None; the others' are not looked at."""
        if self.is_alone:
            return content
        length = self.same(torch.tensor(-1 if content is None else len(content)))
        if int(length) < 0:
            return None
        told = torch.zeros(int(length), dtype=torch.uint8)
        if content and self.leads:
            told = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        return self.same(told).numpy().tobytes()


ALONE = Group()
"""The process of a run that no other takes part in."""


class _Joined(torch.autograd.Function):
    """Rows of all processes. Zeros and a sum: parts may differ in length, and gloo knows nothing else."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, rows: slice, count: int) -> Tensor:
        ctx.rows = rows
        whole = part.new_zeros(count, *part.shape[1:])
        whole[rows] = part
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0][ctx.rows], None, None
