"""The updates of a run on a GPU: each phase captured once as a CUDA graph and then replayed.

A step of small networks is hundreds of kernels of a few microseconds each, which take longer to launch than
to run. A graph launches all of them at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from clarinet.data.inputs import FixedInputs, Inputs, RecordedInputs
from clarinet.run.objective import Objective, Phase

STEPS_BEFORE = 3  # of a phase before it is captured: libraries set themselves up in them

Reported = dict[str, Tensor]
Capture = Callable[[Callable[[], Reported]], tuple[Callable[[], None], Reported]]


def update(
    objective: Objective, optimizer: torch.optim.Optimizer, step: int, inputs: Inputs | None = None
) -> Reported:
    """Forwards, backwards and the new weights of a step; returns its losses, detached scalars by name."""
    loss, reported = objective.losses(step, inputs)
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    objective.domains.group.sum_gradients(optimizer)
    optimizer.step()
    return reported


def updates_of(objective: Objective, optimizer: torch.optim.Optimizer) -> Callable[[int], Reported]:
    """`update` of a run as a function of the step: on a GPU by graphs, where steps can be repeated."""
    if objective.device.type == "cuda" and objective.can_repeat:
        return GraphedUpdates(objective, optimizer)
    return partial(update, objective, optimizer)


def captured(device: torch.device, work: Callable[[], Reported]) -> tuple[Callable[[], None], Reported]:
    """What repeats some work on a GPU, which is not done yet, and where it leaves its results."""
    graph = torch.cuda.CUDAGraph()
    # cuBLAS has a workspace for each stream, with counters that kernels wait for. Torch would capture all
    # graphs on one stream. They would share its workspace, and hang the GPU as soon as two of them run at
    # once.
    stream = torch.cuda.current_stream(device)
    if stream == torch.cuda.default_stream(device):  # which cannot be captured
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch has no types here
    # On another device than the current one nothing would be captured, and the replay do nothing.
    with (
        torch.cuda.device(device),
        torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
    ):
        reported = work()
    return graph.replay, reported


@dataclass(slots=True, eq=False)
class _Steps:
    """How the steps of a phase are taken after its first one."""

    inputs: FixedInputs
    taken: int = 1
    graph: tuple[Callable[[], None], Reported] | None = None


class GraphedUpdates:
    """`update` with the same results, up to the order of sums, at a fraction of the launches.

    Args:
        objective: of which `can_repeat` is true.
        optimizer: whose step sizes are tensors.
        capture: makes a function that repeats what another one does; None captures a CUDA graph.
    """

    def __init__(
        self, objective: Objective, optimizer: torch.optim.Optimizer, capture: Capture | None = None
    ) -> None:
        self._objective = objective
        self._optimizer = optimizer
        self._capture = capture or partial(captured, objective.device)
        self._phases: dict[Phase, _Steps] = {}

    def __call__(self, step: int) -> Reported:
        """Take a step; the next one of its phase writes over the losses that are returned."""
        phase = self._objective.phase(step)
        if phase not in self._phases:
            recorded = RecordedInputs(step, self._objective.device)
            reported = self._update(step, recorded)
            self._phases[phase] = _Steps(FixedInputs(recorded))
            return reported
        steps = self._phases[phase]
        if not steps.inputs.go_to(step):
            return self._update(step, None)
        steps.taken += 1
        if steps.taken <= STEPS_BEFORE:
            return self._update(step, steps.inputs)
        if steps.graph is None:
            steps.graph = self._capture(lambda: self._update(step, steps.inputs))
        replay, reported = steps.graph
        replay()
        return reported

    def _update(self, step: int, inputs: Inputs | None) -> Reported:
        return update(self._objective, self._optimizer, step, inputs)
