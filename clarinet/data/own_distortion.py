"""A caller's own distortion. Takes what `digits` takes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.seeding import on_device
from clarinet.networks.own import Transform
from clarinet.recipes.errors import ConfigError


@dataclass(frozen=True, slots=True, eq=False)
class OwnDistortion:
    """A function of pixels, (R, C, S, S) in [0, 1], in the place of ours.

    What it draws comes from torch's global generators, which each step seeds.
    """

    transform: Transform

    def __call__(self, pixels: Tensor, chosen: Tensor, draws: torch.Generator) -> Tensor:
        """Distort the chosen rows of (B, C, S, S); `chosen` is (B,) bool on the CPU."""
        drawn = self.drawn(chosen, pixels.shape[-1], draws)
        return self.applied(pixels, [on_device(value, pixels.device) for value in drawn])

    def drawn(self, chosen: Tensor, side: int, draws: torch.Generator) -> list[Tensor]:  # noqa: ARG002
        """The chosen rows (R,) int64: see `digits.Distortion`."""
        return [chosen.nonzero().squeeze(1)]

    def applied(self, pixels: Tensor, drawn: Sequence[Tensor]) -> Tensor:
        """Distort rows of (B, C, S, S) in [0, 1]; gives the same shape.

        Raises:
            ConfigError: the function gives something else.
        """
        (rows,) = drawn
        if len(rows) == 0:
            return pixels
        images = pixels[rows]  # (R, C, S, S)
        found = self.transform(images)
        if not isinstance(found, Tensor) or found.shape != images.shape or found.dtype != images.dtype:
            given = (
                f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            )
            raise ConfigError(
                f"transform gives {given} for images {images.dtype} {tuple(images.shape)}; it must keep type "
                "and shape"
            )
        return pixels.index_copy(0, rows, found)
