"""Numbers and draws that a step takes from the host: handed over as they come, or put where a graph reads.

A CUDA graph repeats what the device did in one step. So what differs between two steps of a phase comes
through here under a name. It is a function of the step, which can be asked again without the rest of the
step.
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

    # A name stands for one function of the step: who asks twice under it is told the same.

    def number(self, name: str, of: Callable[[int], float]) -> float | Tensor:  # noqa: ARG002
        """A number of the step, to be multiplied by: a float, or float32 () on the device."""
        return of(self.step)

    def tensors(self, name: str, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:  # noqa: ARG002
        """Tensors of the step on the device; their shapes are those of every other step of the phase."""
        return self._handed_over(of(self.step))

    def drawn(self, name: str, of: Callable[[int], Drawn]) -> Drawn:  # noqa: ARG002
        """Draws of the step on the device.

        Where all steps must have the same shapes, the first row comes again in the place of each that is
        missing. So what is done to a row may be done to it twice.
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
    """The inputs of a phase's first step, which remember by name what was asked for."""

    def __init__(self, step: int, device: torch.device) -> None:
        super().__init__(step, device)
        self.asked: dict[str, _Asked] = {}

    def number(self, name: str, of: Callable[[int], float]) -> float | Tensor:
        """See Inputs."""
        self.asked[name] = _Asked(lambda step: [torch.tensor(of(step))])
        return super().number(name, of)

    def tensors(self, name: str, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:
        """See Inputs."""
        self.asked[name] = _Asked(of)
        return super().tensors(name, of)

    def drawn(self, name: str, of: Callable[[int], Drawn]) -> Drawn:
        """See Inputs."""
        drawn = super().drawn(name, of)

        def filled_up(step: int) -> Sequence[Tensor]:
            most, rows, others = of(step)
            return [*(_filled_up(value, most) for value in rows), *others]

        self.asked[name] = _Asked(filled_up, rows=len(drawn.rows))
        return drawn


class FixedInputs(Inputs):
    """Inputs at fixed places of the device's memory, for the steps of one phase after its first.

    Args:
        recorded: what the first step asked for.
    """

    def __init__(self, recorded: RecordedInputs) -> None:
        super().__init__(recorded.step, recorded.device)
        self._asked = recorded.asked
        self._places: dict[str, list[Tensor]] = {}

    def go_to(self, step: int) -> bool:
        """Put the inputs of a step into their places; false, with nothing done, where no row is chosen."""
        values = {name: asked.of(step) for name, asked in self._asked.items()}
        if any(value.numel() == 0 for several in values.values() for value in several):
            return False
        if not self._places:
            self._places = {
                name: [torch.empty_like(value, device=self.device) for value in several]
                for name, several in values.items()
            }
        for name, several in values.items():
            for place, value in zip(self._places[name], several, strict=True):
                place.copy_(handed_over(value, self.device), non_blocking=True)
        self.step = step
        return True

    # What is asked for was recorded, and is where `go_to` put it; a KeyError says that it was not.

    def number(self, name: str, of: Callable[[int], float]) -> float | Tensor:  # noqa: ARG002
        """See Inputs."""
        return self._places[name][0]

    def tensors(self, name: str, of: Callable[[int], Sequence[Tensor]]) -> Sequence[Tensor]:  # noqa: ARG002
        """See Inputs."""
        return self._places[name]

    def drawn(self, name: str, of: Callable[[int], Drawn]) -> Drawn:  # noqa: ARG002
        """See Inputs."""
        places, count = self._places[name], self._asked[name].rows
        rows = places[:count]
        return Drawn(len(rows[0]), rows, places[count:])


def _filled_up(value: Tensor, most: int) -> Tensor:
    """(most, ...) of (R, ...): the first row again for each that is missing; nothing of nothing."""
    if len(value) in {0, most}:
        return value
    return torch.cat([value, value[:1].expand(most - len(value), *value.shape[1:])])
