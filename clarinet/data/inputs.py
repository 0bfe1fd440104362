"""Numbers and draws that a step takes from the host: handed over as they come, or put where a graph reads.

A CUDA graph repeats what the device did in one step. What differs between two steps of a phase must then
come through here, as a function of the step that can be asked again without the rest of the step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from clarinet.data.seeding import handed_over, on_device


class Drawn(NamedTuple):
    """Draws for a batch, of which some rows are chosen.

    Args:
        most: B, how many may be chosen.
        rows: tensors with one entry for each chosen row, (R, ...).
        others: tensors whose shapes do not depend on how many are chosen.
    """

    most: int
    rows: Sequence[Tensor]
    others: Sequence[Tensor] = ()


class Inputs:
    """The inputs of one step, each handed to the device when it is asked for.

    Args:
        step: which one, counted from 0.
        device: where the step is taken.
    """

    def __init__(self, step: int, device: torch.device) -> None:
        self.step = step
        self.device = device

    def number(self, of: Callable[[int], float]) -> float | Tensor:
        """A number of the step, to be multiplied by: a float, or float32 () on the device."""
        return of(self.step)

    def tensors(self, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:
        """Tensors of the step on the device; their shapes are those of every other step of the phase."""
        return self._handed_over(of(self.step))

    def drawn(self, of: Callable[[int], Drawn]) -> Drawn:
        """Draws of the step on the device.

        Where all steps must have the same shapes, the first row comes again in the place of each that is
        missing: what is done to a row may be done to it twice.
        """
        most, rows, others = of(self.step)
        return Drawn(most, self._handed_over(rows), self._handed_over(others))

    def _handed_over(self, values: Sequence[Tensor]) -> Sequence[Tensor]:
        return [on_device(value, self.device) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Tensors of one shape in all steps of a phase, `rows` of them by row; no entry where none is chosen."""

    of: Callable[[int], Sequence[Tensor]]
    rows: int = 0


class RecordedInputs(Inputs):
    """The inputs of a phase's first step, which remember what was asked for, in which order."""

    def __init__(self, step: int, device: torch.device) -> None:
        super().__init__(step, device)
        self.asked: list[_Asked] = []

    def number(self, of: Callable[[int], float]) -> float | Tensor:
        """See Inputs."""
        self.asked.append(_Asked(lambda step: [torch.tensor(of(step))]))
        return super().number(of)

    def tensors(self, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:
        """See Inputs."""
        self.asked.append(_Asked(of))
        return super().tensors(of)

    def drawn(self, of: Callable[[int], Drawn]) -> Drawn:
        """See Inputs."""
        drawn = super().drawn(of)

        def filled_up(step: int) -> Sequence[Tensor]:
            most, rows, others = of(step)
            return [*(_filled_up(value, most) for value in rows), *others]

        self.asked.append(_Asked(filled_up, rows=len(drawn.rows)))
        return drawn


class FixedInputs(Inputs):
    """Inputs at fixed places of the device's memory, for the steps of one phase after its first.

    Args:
        recorded: what the first step asked for.
    """

    def __init__(self, recorded: RecordedInputs) -> None:
        super().__init__(recorded.step, recorded.device)
        self._asked = recorded.asked
        self._places: list[list[Tensor]] = []
        self._next = 0

    def go_to(self, step: int) -> bool:
        """Put the inputs of a step into their places; false, with nothing done, where no row is chosen."""
        if self._next not in {0, len(self._asked)}:
            raise RuntimeError(f"step {self.step} asked for {self._next} of {len(self._asked)} inputs")
        values = [asked.of(step) for asked in self._asked]
        if any(value.numel() == 0 for several in values for value in several):
            return False
        if not self._places:
            self._places = [
                [torch.empty_like(value, device=self.device) for value in several] for several in values
            ]
        for places, several in zip(self._places, values, strict=True):
            for place, value in zip(places, several, strict=True):
                place.copy_(handed_over(value, self.device), non_blocking=True)
        self.step, self._next = step, 0
        return True

    # What is asked for was recorded, and is where `go_to` put it.

    def number(self, of: Callable[[int], float]) -> float | Tensor:  # noqa: ARG002
        """See Inputs."""
        return self._taken()[1][0]

    def tensors(self, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:  # noqa: ARG002
        """See Inputs."""
        return self._taken()[1]

    def drawn(self, of: Callable[[int], Drawn]) -> Drawn:  # noqa: ARG002
        """See Inputs."""
        asked, places = self._taken()
        rows = places[: asked.rows]
        return Drawn(len(rows[0]), rows, places[asked.rows :])

    def _taken(self) -> tuple[_Asked, list[Tensor]]:
        at = self._next
        self._next += 1
        return self._asked[at], self._places[at]


def _filled_up(value: Tensor, most: int) -> Tensor:
    """(most, ...) of (R, ...): the first row again for each that is missing; nothing of nothing."""
    if len(value) in {0, most}:
        return value
    return torch.cat([value, value[:1].expand(most - len(value), *value.shape[1:])])
