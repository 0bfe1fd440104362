"""What a step must not do: wait for the device, gather memory, or differ from the plain update."""

import gc
import warnings
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clarinet.config import TrainConfig
from clarinet.domains import prepare
from clarinet.objective import Objective
from clarinet.resuming import RunState
from clarinet.training import EpochReport, build_networks, build_optimizer, train, train_step
from tests.clarinet.factories import make_config, make_data

CPU = torch.device("cpu")
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "paper cc": ("clarinet", {}, {}),
    "paper pc": ("clarinet", {"setting": "pc"}, {"true_rows": 20}),
    "forward": ("clarinet", {"complementary_loss": "forward"}, {}),
    "scarce": ("clarinet", {"complementary_loss": "scarce", "setting": "pc"}, {"true_rows": 20}),
    "inverse": (
        "clarinet",
        {"complementary_loss": "inverse", "setting": "pc"},
        {"true_rows": 20, "probabilities": torch.full((96,), 1 / 3)},
    ),
    "plus grey": ("clarinet-plus", {}, {}),
    "plus colour": ("clarinet-plus", {}, {"colour_target": True}),
}


def make_run(case: str, device: torch.device = CPU, **more: Any) -> tuple[TrainConfig, RunState, Objective]:
    method, changes, data = CASES[case]
    config = make_config(method, **changes | more)
    domains = prepare(make_data(**data), config, device)
    networks = build_networks(config, domains, device)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
    return config, state, Objective(config, domains, networks, steps=12, epoch_steps=4)


class Waits(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Counts the operators that hand a tensor's value to Python: on a GPU each of them is a wait."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Any, as torch hands over every kind of argument.
        self.count += func.name() == "aten::_local_scalar_dense"
        return func(*args, **(kwargs or {}))


def test_the_counter_of_waits_counts() -> None:
    with Waits() as waits:
        float(torch.ones(1).sum())
        bool(torch.ones(1) > 0)

    assert waits.count == 2


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", [0, 5, 11])
def test_no_step_waits_for_a_value(case: str, step: int) -> None:
    config, state, objective = make_run(case)
    state.step = step
    if objective.lacks_neighbours(step):  # they are found once, and that may wait
        state.neighbours = objective.find_neighbours()

    with Waits() as waits:
        train_step(config, state, objective, 12)

    assert waits.count == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", CASES)
def test_no_step_waits_for_the_gpu(case: str) -> None:
    config, state, objective = make_run(case, torch.device("cuda"))
    for _ in range(6):  # libraries set themselves up in the first steps of each phase
        train_step(config, state, objective, 12)

    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(6):
            train_step(config, state, objective, 12)
    finally:
        torch.cuda.set_sync_debug_mode("default")

    assert state.step == 12


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_fused_update_is_the_plain_one(optimizer: str) -> None:
    config, state, objective = make_run("paper cc", optimizer=optimizer, learning_rate=1e-3)
    parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
    assert not all(p.is_contiguous() for p in parameters)  # some are channels last
    plain = [torch.nn.Parameter(p.detach().clone(memory_format=torch.contiguous_format)) for p in parameters]
    kind: Any = torch.optim.SGD if optimizer == "sgd" else torch.optim.AdamW
    options = {"momentum": config.momentum} if optimizer == "sgd" else {}
    split = len(state.optimizer.param_groups[0]["params"])
    groups = [
        {"params": plain[:split], "lr": config.learning_rate},
        {"params": plain[split:], "lr": config.discriminator_learning_rate},
    ]
    reference = kind(groups, weight_decay=config.weight_decay, foreach=False, fused=False, **options)

    for _ in range(6):  # the discriminator joins in at the fifth
        train_step(config, state, objective, 12)
        for parameter, own in zip(parameters, plain, strict=True):
            own.grad = None if parameter.grad is None else parameter.grad.clone()
        reference.step()

    for parameter, own in zip(parameters, plain, strict=True):
        torch.testing.assert_close(parameter, own)


def test_memory_does_not_grow_with_epochs() -> None:
    counts: list[int] = []

    def count(report: EpochReport) -> None:
        if report.epoch % 10 == 0:
            gc.collect()
            counts.append(sum(torch.is_tensor(item) for item in gc.get_objects()))

    config = make_config("clarinet-plus", epochs=40, steps_per_epoch=1, precision="float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # looking at every object touches deprecated attributes of some
        train(config, make_data(), on_epoch=count)

    assert len(counts) == 4
    assert max(counts[1:]) <= counts[1] + 2  # by the second all phases have begun
