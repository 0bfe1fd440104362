"""What a step must not do: wait for the device, gather memory, or differ from the plain update."""

import gc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from clarinet.data.domains import prepare
from clarinet.data.seeding import generator
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.presets import METHODS
from clarinet.run.building import build_networks, build_optimizer
from clarinet.run.graphs import update, updates_of
from clarinet.run.objective import Objective
from clarinet.run.resuming import RunState
from clarinet.run.training import EpochReport, train, train_step
from tests.clarinet.factories import Recorded, in_memory, make_config, make_data

CPU = torch.device("cpu")
OF_THE_CHECK = "ignore:Synchronization debug mode"  # of torch about itself, where it is switched on
SHORT = {"epochs": 3, "steps_per_epoch": 4, "batch_size": 16}  # over a preset's own
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
    "plus quick": ("clarinet-plus", {**METHODS["clarinet-plus"]["digits-quick"], **SHORT}, {}),
    "plus pc": ("clarinet-plus", {"setting": "pc"}, {"true_rows": 20}),
    "plus recoloured": ("clarinet-plus", {"background_blending": False}, {"colour_target": True}),
    "photographs": ("clarinet-plus", {"distortion_kind": "photographs"}, {"colour_target": True}),
    "dtn": ("clarinet", {"architecture": "dtn"}, {"colour_target": True}),
    "published": ("clarinet", {**METHODS["clarinet"]["published"], **SHORT}, {}),
    # As the second of two steps trains, which is the same method on labels of every image.
    "dan": ("dan", {}, {"true_rows": 96}),
    "dann": ("dann", {}, {"true_rows": 96}),
    "cdan_e": ("cdan_e", {}, {"true_rows": 96}),
}


def make_run(case: str, device: torch.device = CPU, **more: Any) -> tuple[TrainConfig, RunState, Objective]:
    method, changes, data = CASES[case]
    config = make_config(method, **changes | more)
    domains = prepare(make_data(**data), config, device)
    networks = build_networks(config, domains, device)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
    return config, state, Objective(config, domains, networks, steps=12, epoch_steps=4)


# Operators whose result or its size is a tensor's content.
WAITING = {
    "aten::_local_scalar_dense",  # float(), int(), bool(), item()
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::bincount",
    "aten::repeat_interleave",
}
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
HANDING_OVER = {Tensor.tolist, Tensor.numpy, Tensor.cpu}  # on the CPU they call no operator


class Waits(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Counts, on the CPU, what would wait for a GPU: whatever needs a tensor's content to go on.

    Operators count wherever they are called from, also in the backward pass. What `Calls` knows to be on the
    CPU on every machine does not count.

    Not seen: copies that wait as their memory is not pinned (`torch.tensor(..., device=...)`, `to` without
    `non_blocking`), `to("cpu")`, other threads, and what a GPU's own operators wait for (those of linalg do).
    The test on a GPU sees those.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self._calls = Calls(self)

    def __enter__(self) -> Self:
        self._calls.__enter__()  # type: ignore[no-untyped-call]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._calls.__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Any, as torch hands over every kind of argument.
        name = func.name().partition(".")[0]
        by_mask = name in INDEXING and any(i is not None and i.dtype == torch.bool for i in args[1])
        self.count += name in WAITING or by_mask
        return func(*args, **(kwargs or {}))


class Calls(TorchFunctionMode):
    """Tells what stays on the CPU from what would be on a GPU, and counts calls that no operator shows.

    Torch makes a tensor on the CPU where no device is named, as for draws from a generator; so is what
    follows from such tensors alone, until `to` moves it to a device. All else counts as on the GPU.
    """

    def __init__(self, waits: Waits) -> None:
        super().__init__()
        self._waits = waits
        self._on_cpu: dict[int, Tensor] = {}  # by id, which is its own as long as the tensor is kept

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = tree_leaves((args, kwargs))
        named = any(isinstance(item, torch.device) for item in arguments)
        stays = all(id(item) in self._on_cpu for item in arguments if isinstance(item, Tensor)) and not named
        before = self._waits.count
        result = func(*args, **(kwargs or {}))
        if stays:
            self._waits.count = before
            self._on_cpu |= {id(item): item for item in tree_leaves(result) if isinstance(item, Tensor)}
        elif func is Tensor.to and id(result) in self._on_cpu:
            return result.view_as(result)  # the same values, now on the device
        else:
            self._waits.count += func in HANDING_OVER
        return result


WAITING_CALLS: dict[str, Callable[[Tensor], object]] = {
    "float": lambda x: float(x.sum()),
    "if": lambda x: bool(x.sum() > 0),
    "nonzero": torch.nonzero,
    "where of a mask": lambda x: torch.where(x > 0),
    "indexing by a mask": lambda x: x[x > 0],
    "writing by a mask": lambda x: x.clone().index_put_((x > 0,), torch.ones(2)),
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "equal": lambda x: torch.equal(x, x),
    "unique": torch.unique,
    "unique rows": lambda x: torch.unique(x[:, None], dim=0),
    "unique_consecutive": torch.unique_consecutive,
    "bincount": lambda x: torch.bincount(x.long()),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, x.long()),
    "tolist": Tensor.tolist,
    "numpy": Tensor.numpy,
    "cpu": Tensor.cpu,
    "a draw that was moved": lambda x: torch.ones(2, dtype=torch.bool).to(x.device).nonzero(),
}


@pytest.mark.parametrize("name", WAITING_CALLS)
def test_the_counter_of_waits_counts(name: str) -> None:
    x = torch.tensor([0.0, 1.0, 2.0])

    with Waits() as waits:
        WAITING_CALLS[name](x)

    assert waits.count == 1


def test_the_counter_of_waits_counts_in_other_functions_and_in_the_backward_pass() -> None:
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)

    with Waits() as forward:
        chosen = x[x > 0].sum()
    with Waits() as backward:
        torch.autograd.backward(chosen)
    with Waits() as within:
        F.one_hot(x.detach().long())  # looks for the smallest and the largest class

    assert (forward.count, backward.count, within.count) == (1, 1, 2)


def test_the_counter_of_waits_leaves_out_what_is_on_the_cpu_everywhere() -> None:
    x = torch.tensor([0.0, 1.0, 2.0])

    with Waits() as waits:
        rows = (torch.rand(3, generator=generator(0, "rows")) < 1).nonzero().squeeze(1)
        places = torch.randint(3, (2,), generator=generator(0, "places")).tolist()
        x[rows.to(x.device)].roll(places, dims=(0, 0))

    assert waits.count == 0


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("step", [0, 5, 11])
def test_no_step_waits_for_a_value(case: str, step: int) -> None:
    config, state, objective = make_run(case)
    state.step = step
    if objective.lacks_neighbours(step):  # they are found once, and that may wait
        state.neighbours = objective.find_neighbours()

    with Waits() as waits:
        train_step(config, state, objective, 12, updates_of(objective, state.optimizer))

    assert waits.count == 0


def test_no_step_waits_where_grounds_come_from_a_stream() -> None:
    config = make_config("clarinet-plus", pretraining_share=0.0, neighbour_weight=0.0)
    target = in_memory(make_data(colour_target=True).target_images)
    domains = prepare(make_data(colour_target=True, target_images=Recorded(target)), config, CPU)
    networks = build_networks(config, domains, CPU)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
    objective = Objective(config, domains, networks, steps=12, epoch_steps=4)

    with Waits() as waits:
        train_step(config, state, objective, 12, updates_of(objective, state.optimizer))

    assert waits.count == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings(OF_THE_CHECK)
@pytest.mark.parametrize("case", CASES)
def test_no_step_waits_for_the_gpu(case: str) -> None:
    config, state, objective = make_run(case, torch.device("cuda"))
    launched = partial(update, objective, state.optimizer)
    for _ in range(6):  # libraries set themselves up in the first steps of each phase
        train_step(config, state, objective, 12, launched)

    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(6):
            train_step(config, state, objective, 12, launched)
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
    options = {"momentum": 0.9} if optimizer == "sgd" else {}
    split = len(state.optimizer.param_groups[0]["params"])
    groups = [
        {"params": plain[:split], "lr": config.optimisation.learning_rate},
        {"params": plain[split:], "lr": config.optimisation.discriminator_learning_rate},
    ]
    reference = kind(
        groups, weight_decay=config.optimisation.weight_decay, foreach=False, fused=False, **options
    )

    for _ in range(6):  # the discriminator joins in at the fifth
        train_step(config, state, objective, 12, updates_of(objective, state.optimizer))
        for parameter, own in zip(parameters, plain, strict=True):
            own.grad = None if parameter.grad is None else parameter.grad.clone()
        reference.step()

    for parameter, own in zip(parameters, plain, strict=True):
        torch.testing.assert_close(parameter, own)


@pytest.mark.long
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
