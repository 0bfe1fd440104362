"""What callers bring of their own to a run: a module that gives features, and a distortion."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from clarinet.recipes.errors import ConfigError

OWN: Final = "own"  # as a spec's architecture; no configuration has it
CHANNELS: Final = 3  # of what such a module is given
VECTORS, MAPS = 2, 4  # dimensions of what it may give

Transform = Callable[[Tensor], Tensor]
"""Pixels (B, C, S, S), float32 in [0, 1], to as many of the same shape."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Own:
    """What no configuration can name.

    Args:
        backbone: gives features in the place of the network that the configuration means; None for none.
        transform: distorts images in the place of the configuration's distortion; None for none.
    """

    backbone: nn.Module | None = None
    transform: Transform | None = None

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return self.backbone is not None or self.transform is not None


NOTHING: Final = Own()


class OwnBackbone(nn.Module):
    """A copy of a caller's module behind a check: (B, 3, S, S) to (B, features).

    Maps (B, F, h, w) are pooled to their mean. The module that was given stays as it is.

    Args:
        given: gives (B, F) or (B, F, h, w).
        image_size: S.

    Raises:
        ConfigError: it cannot be copied, takes no such images, or gives something else.
    """

    def __init__(self, given: nn.Module, image_size: int) -> None:
        super().__init__()
        try:
            self.body = copy.deepcopy(given)
        except Exception as error:  # of a module that somebody wrote anything may come
            raise ConfigError(f"backbone {_name(given)} cannot be copied: {_first_line(error)}") from error
        self.features = self._features(image_size)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F) of a batch (B, 3, S, S)."""
        found: Tensor = self.body(x)
        return found.mean((2, 3)) if found.ndim == MAPS else found

    def _features(self, image_size: int) -> int:
        shape = (2, CHANNELS, image_size, image_size)
        was_training = self.body.training
        parameter = next(self.body.parameters(), torch.empty(0))
        pixels = torch.zeros(shape, device=parameter.device)
        try:
            with torch.inference_mode():
                found = self.body.eval()(pixels)
        except Exception as error:  # likewise
            raise ConfigError(
                f"backbone {_name(self.body)} does not take images {shape}: {_first_line(error)}; a backbone "
                "takes colour images of the recipe's image_size, grey ones three times over"
            ) from error
        self.body.train(was_training)
        if not isinstance(found, Tensor) or found.ndim not in {VECTORS, MAPS} or len(found) != shape[0]:
            given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ConfigError(
                f"backbone {_name(self.body)} gives {given} for two images; expected features (2, F), or "
                "maps (2, F, h, w), of which the mean is taken"
            )
        return int(found.shape[1])


def _name(module: nn.Module) -> str:
    return type(module).__name__


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
