"""Steps from fixed places, as a CUDA graph takes them: what they compute, and when they are taken singly."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from clarinet.data.domains import prepare
from clarinet.data.inputs import Drawn, FixedInputs, Inputs, RecordedInputs
from clarinet.recipes.config import TrainConfig
from clarinet.run.building import build_networks, build_optimizer
from clarinet.run.graphs import GraphedUpdates, Reported, captured, update, updates_of
from clarinet.run.objective import Objective, Phase
from clarinet.run.resuming import RunState
from clarinet.run.training import train_step
from tests.clarinet.factories import Recorded, in_memory, make_config, make_data
from tests.clarinet.test_step import CASES

CPU = torch.device("cpu")
OF_THE_CHECK = "ignore:Synchronization debug mode"  # of torch about itself, where it is switched on
STEPS, EPOCH_STEPS = 24, 8
Run = tuple[TrainConfig, RunState, Objective]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Repeated:
    """Stands for a CUDA graph on the CPU: does the very work again that it was given, whatever the step."""

    def __init__(self) -> None:
        self.graphs = 0
        self.replays = 0

    def __call__(self, work: Callable[[], Reported]) -> tuple[Callable[[], None], Reported]:
        self.graphs += 1
        reported: Reported = {}

        def replay() -> None:
            self.replays += 1
            reported.update(work())

        return replay, reported


def make_long_run(case: str, device: torch.device, *, epoch_steps: int = EPOCH_STEPS, **more: Any) -> Run:
    """A run of three epochs, whose phases are long enough to be captured."""
    method, changes, data = CASES[case]
    config = make_config(method, **changes | {"steps_per_epoch": epoch_steps} | more)
    domains = prepare(make_data(**data), config, device)
    networks = build_networks(config, domains, device)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
    return config, state, Objective(config, domains, networks, steps=3 * epoch_steps, epoch_steps=epoch_steps)


def trained(run: Run, updates: Any) -> tuple[RunState, list[dict[str, float]]]:
    """The state after the last step, and the sums of losses after each."""
    config, state, objective = run
    take = updates(objective, state.optimizer)
    sums = []
    for _ in range(objective.steps):
        train_step(config, state, objective, objective.steps, take)
        sums.append({name: float(total) for name, total in state.totals.items()})
    return state, sums


def singly(objective: Objective, optimizer: torch.optim.Optimizer) -> Callable[[int], Reported]:
    return partial(update, objective, optimizer)


def weights(state: RunState) -> dict[str, Tensor]:
    networks = state.networks
    modules: dict[str, torch.nn.Module] = {"classifier": networks.classifier, "averaged": networks.averaged}
    modules |= {"discriminator": networks.adaptation} if networks.adaptation else {}
    return {
        f"{part}.{name}": value
        for part, module in modules.items()
        for name, value in module.state_dict().items()
    }


@pytest.mark.long(but=["plus quick"])
@pytest.mark.parametrize("case", CASES)
def test_steps_from_fixed_places_are_the_same_steps(case: str) -> None:
    repeated = Repeated()
    plain, plain_sums = trained(make_long_run(case, CPU), singly)
    state, sums = trained(make_long_run(case, CPU), partial(GraphedUpdates, capture=repeated))

    assert repeated.graphs > 0
    assert repeated.replays > STEPS / 3
    torch.testing.assert_close(weights(state), weights(plain), rtol=0, atol=0)
    assert sums == plain_sums


@pytest.mark.long
def test_so_are_those_that_see_the_target_for_its_statistics_alone() -> None:
    def make() -> Run:
        return make_long_run("plus colour", CPU, epoch_steps=28, target_self_training_start=0.95)

    repeated = Repeated()
    plain, plain_sums = trained(make(), singly)
    state, sums = trained(make(), partial(GraphedUpdates, capture=repeated))

    assert repeated.graphs == 4  # pretraining, steps that see the target, other steps, and self-training
    torch.testing.assert_close(weights(state), weights(plain), rtol=0, atol=0)
    assert sums == plain_sums


@needs_gpu
@pytest.mark.parametrize("case", CASES)
def test_a_cuda_graph_takes_the_same_steps(case: str) -> None:
    cuda = torch.device("cuda")
    _, sums = trained(make_long_run(case, cuda), singly)
    _, graphed = trained(make_long_run(case, cuda), updates_of)

    for one, other in zip(sums, graphed, strict=True):
        # Two starts of dann, whose adversary lets small differences grow, lay 1.6 % apart.
        assert one == pytest.approx(other, rel=3e-2, abs=3e-2)


@needs_gpu
@pytest.mark.filterwarnings(OF_THE_CHECK)
@pytest.mark.parametrize("case", CASES)
def test_no_replay_waits_for_the_gpu(case: str) -> None:
    config, state, objective = make_long_run(case, torch.device("cuda"))
    graphed: set[Phase] = set()

    def capture(work: Callable[[], Reported]) -> tuple[Callable[[], None], Reported]:
        graphed.add(objective.phase(state.step))
        return captured(objective.device, work)

    updates = GraphedUpdates(objective, state.optimizer, capture)
    for _ in range(objective.steps):
        torch.cuda.set_sync_debug_mode("error" if objective.phase(state.step) in graphed else "default")
        try:
            train_step(config, state, objective, objective.steps, updates)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    assert graphed


def test_a_batch_without_a_chosen_row_is_taken_singly(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated, refused = Repeated(), []
    go_to = FixedInputs.go_to

    def noted(inputs: FixedInputs, step: int) -> bool:
        done = go_to(inputs, step)
        refused.extend([step] * (not done))
        return done

    monkeypatch.setattr(FixedInputs, "go_to", noted)
    # Nothing is distorted at the start, and then ever more.
    changes: dict[str, Any] = {"distorted_share": 0.2, "distortion_full": 1.0, "batch_size": 4}
    config = make_config(
        **changes, step_share=0.0, steps_per_epoch=EPOCH_STEPS, pretraining_share=0.0, neighbour_weight=0.0
    )
    domains = prepare(make_data(), config, CPU)
    states = []
    for kind in (singly, partial(GraphedUpdates, capture=repeated)):
        networks = build_networks(config, domains, CPU)
        state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
        objective = Objective(config, domains, networks, steps=STEPS, epoch_steps=EPOCH_STEPS)
        take: Any = kind
        updates = take(objective, state.optimizer)
        for _ in range(STEPS):
            train_step(config, state, objective, STEPS, updates)
        states.append(state)

    assert repeated.replays > 0
    assert refused
    torch.testing.assert_close(weights(states[0]), weights(states[1]), rtol=0, atol=0)


def test_inputs_are_asked_for_anew_and_keep_their_place() -> None:
    def ask(inputs: Inputs) -> tuple[float | Tensor, Tensor, Drawn]:
        number = inputs.number("half", lambda step: step / 2)
        (tensor,) = inputs.tensors("twice", lambda step: [torch.full((2,), step)])
        drawn = inputs.drawn("rows", lambda step: Drawn(4, [torch.arange(step)], [torch.tensor([step])]))
        return number, tensor, drawn

    recorded = RecordedInputs(2, CPU)
    assert ask(recorded)[0] == 1.0
    fixed = FixedInputs(recorded)

    assert fixed.go_to(3)
    number, tensor, drawn = ask(fixed)
    assert isinstance(number, Tensor)
    assert number.item() == 1.5
    assert tensor.tolist() == [3, 3]
    assert drawn.rows[0].tolist() == [0, 1, 2, 0]  # filled up with the first
    assert drawn.others[0].tolist() == [3]
    assert not fixed.go_to(0)  # no row to fill up with
    assert tensor.tolist() == [3, 3]
    assert fixed.go_to(4)
    assert number.item() == 2.0
    assert drawn.rows[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(KeyError, match="third"):  # what no step asked for so far
        fixed.number("third", lambda step: step / 3)


def test_the_cpu_takes_steps_singly() -> None:
    _, state, objective = make_long_run("paper cc", CPU)

    assert objective.can_repeat
    assert not isinstance(updates_of(objective, state.optimizer), GraphedUpdates)


def test_photographs_networks_and_streams_are_not_repeated() -> None:
    backbone = {"architecture": "resnet18", "image_size": 32, "batch_size": 4}
    stream = Recorded(in_memory(make_data().target_images))
    for changes, data in ((backbone, make_data()), ({}, make_data(target_images=stream))):
        config = make_config("clarinet", **changes)
        domains = prepare(data, config, CPU)
        networks = build_networks(config, domains, CPU)
        objective = Objective(config, domains, networks, steps=STEPS, epoch_steps=EPOCH_STEPS)

        assert not objective.can_repeat
