"""Two processes train one run: what each step learns is what one process learns from the same batches."""

import json
import multiprocessing
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from clarinet.commands.cli import main
from clarinet.data.training_data import TrainData
from clarinet.distributed.group import Group
from clarinet.distributed.joining import joined
from clarinet.networks.layers import DomainBatchNorm, HalfDropout
from clarinet.networks.spreading import spread_over
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError, Interrupted
from clarinet.recipes.methods import config_for
from clarinet.run.training import train
from tests.clarinet.factories import make_case, make_config, make_data, write_digits

# Forked from a process that has torch, and no threads: a child starts in milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["clarinet.run.training", "tests.clarinet.factories"])
CPU = torch.device("cpu")
PATIENCE_S = 120.0

Work = Callable[..., None]
Runs = dict[str, tuple[TrainConfig, TrainData, dict[str, Any]]]


def take_part(work: Work, rank: int, folder: Path, *arguments: object) -> None:
    torch.set_num_threads(1)
    with joined(rank, 2, f"file://{folder}/meeting", device=CPU) as group:
        work(group, folder, *arguments)


def together(work: Work, folder: Path, *arguments: object) -> None:
    """Let two processes do some work, which both must end well."""
    (folder / "meeting").unlink(missing_ok=True)
    processes = [
        PROCESSES.Process(target=take_part, args=(work, rank, folder, *arguments)) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)
        process.kill()
    assert [process.exitcode for process in processes] == [0, 0]


def numbers_of(config: TrainConfig, data: TrainData, **more: Any) -> dict[str, Tensor]:
    """The weights of a run, the mean losses of its epochs, and its accuracy."""
    result = train(config, data, **more)
    losses = {
        f"loss/{report.epoch}/{name}": torch.tensor(value, dtype=torch.float64)
        for report in result.reports
        for name, value in report.losses.items()
    }
    weights = {name: value.contiguous() for name, value in result.model.state_dict().items()}
    return {**weights, **losses, "accuracy": torch.tensor(float(result.target_accuracy or 0))}


def train_and_save(group: Group, folder: Path, runs: Runs) -> None:
    for name, (config, data, more) in runs.items():
        save_file(numbers_of(config, data, group=group, **more), folder / f"{name}-{group.rank}")


def trained_together(folder: Path, runs: Runs) -> dict[str, list[dict[str, Tensor]]]:
    """What each of the two processes has at the end of each run."""
    together(train_and_save, folder, runs)
    return {name: [load_file(folder / f"{name}-{rank}") for rank in (0, 1)] for name in runs}


def told_of(where: str, told: str) -> str:
    return f"{where}: {told}"


def assert_close(
    found: dict[str, Tensor], expected: dict[str, Tensor], run: str, *, rtol: float, atol: float
) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        torch.testing.assert_close(
            found[name], values, rtol=rtol, atol=atol, msg=partial(told_of, f"{run}, {name}")
        )


def make_run(case: str, **changes: Any) -> tuple[TrainConfig, TrainData, dict[str, Any]]:
    config, data = make_case(case)
    # A batch that two processes share unequally.
    return config.changed(precision="float32", batch_size=15, **changes), data, {}


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    runs: Runs = {
        "clarinet": make_run("paper cc"),
        "clarinet pc, dann network": make_run("paper pc colour"),
        "clarinet-plus": make_run("plus pc"),
        # By SGD: of the rounding that is all the gradient of a bias before a norm AdamW would make steps.
        "clarinet-plus, norms per domain": make_run("plus colour target", optimizer="sgd"),
        "dan": make_run("dan"),
        "cdan_e": make_run("cdan_e"),
        "two steps": (make_config("gac+dann", epochs=4), make_data(), {}),
    }

    together_each = trained_together(tmp_path, runs)

    for name, (config, data, _) in runs.items():
        first, second = together_each[name]
        assert_close(second, first, name, rtol=0, atol=0)
        assert_close(first, numbers_of(config, data), name, rtol=2e-3, atol=2e-4)


def stop_and_go_on(group: Group, folder: Path, config: TrainConfig, data: TrainData) -> None:
    """Train until one process alone wants to stop, then go on from what the first one wrote."""
    path = folder / f"checkpoint-{group.rank}"  # as on a host of its own
    asked = iter([False] * 5 + [group.rank == 1])
    with pytest.raises(Interrupted):
        train(config, data, group=group, checkpoint=path, should_stop=lambda: next(asked))
    assert path.exists() == group.leads
    save_file(numbers_of(config, data, group=group, checkpoint=path), folder / f"resumed-{group.rank}")


def test_a_run_of_two_that_one_stops_goes_on_bit_equal(tmp_path: Path) -> None:
    run = make_run("plus pc")
    undisturbed, _ = trained_together(tmp_path, {"undisturbed": run})["undisturbed"]

    together(stop_and_go_on, tmp_path, *run[:2])

    for rank in (0, 1):
        assert_close(load_file(tmp_path / f"resumed-{rank}"), undisturbed, "resumed", rtol=0, atol=0)


class Small(nn.Module):
    """Batch normalisation and every kind of noise."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = DomainBatchNorm(3, per_domain=True)
        self.of_vectors = DomainBatchNorm(3, per_domain=False)
        self.drop_maps, self.drop_half, self.drop_few = nn.Dropout2d(0.3), HalfDropout(), nn.Dropout(0.2)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        x = self.drop_half(self.drop_maps(self.norm(x)))
        return (self.drop_few(self.of_vectors(x.mean((2, 3)))),)


def pass_through(network: Small, group: Group) -> dict[str, Tensor]:
    """Output, gradients and running statistics of a batch of 7, for a loss that is no sum over images."""
    torch.manual_seed(0)
    images = torch.randn(7, 3, 4, 5, dtype=torch.float64) * 3 + 100
    spread_over(group, network.double())
    own: Tensor = images.clone().requires_grad_()
    (out,) = group.spread(own, network)
    torch.autograd.backward(out.std().log())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    group.sum_gradients(optimizer)
    assert own.grad is not None
    gradients = {f"gradient/{name}": value.grad for name, value in network.named_parameters()}
    found = {"out": out.detach(), "images": own.grad, **gradients, **dict(network.named_buffers())}
    return {name: value.clone() for name, value in found.items() if value is not None}


def pass_and_save(group: Group, folder: Path) -> None:
    found = pass_through(Small(), group)
    parts = found["images"].clone()
    torch.distributed.all_reduce(parts)  # each process has the gradient of its own images, and else zeros
    save_file(found | {"images": parts}, folder / f"pass-{group.rank}")


def test_norms_and_noise_of_a_part_are_those_of_the_batch(tmp_path: Path) -> None:
    together(pass_and_save, tmp_path)

    alone = pass_through(Small(), Group())
    for rank in (0, 1):
        assert_close(load_file(tmp_path / f"pass-{rank}"), alone, "pass", rtol=1e-9, atol=1e-9)


def refuse(group: Group, _folder: Path) -> None:
    data = make_data()
    with pytest.raises(ConfigError, match="do not have the same images or labels"):
        train(make_config(), make_data(seed=group.rank), group=group)
    with pytest.raises(ConfigError, match="do not have the same configuration"):
        train(make_config(seed=group.rank), data, group=group)
    with pytest.raises(ConfigError, match="a batch of 1 images cannot be shared by 2 processes"):
        group.spread(torch.zeros(1, 3), lambda images: (images,))
    with pytest.raises(ConfigError, match="photographs-quick computes the features of each image once"):
        train(config_for("clarinet-plus", "photographs-quick"), data, group=group)


def test_what_two_processes_cannot_share_is_refused_in_words(tmp_path: Path) -> None:
    together(refuse, tmp_path)


def test_the_command_trains_in_processes_and_one_of_them_speaks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, name in enumerate(("source", "target")):
        write_digits(tmp_path / f"{name}.npz", 60, seed=number)
    files = [word for name in ("source", "target") for word in (f"--{name}", str(tmp_path / f"{name}.npz"))]
    short = ["--method", "gac", "--preset", "short", "--epochs", "2", "--set", "steps_per_epoch=2"]
    words = ["train", *files, *short, "--device", "cpu", "--json"]
    assert main(words) == 0
    alone = json.loads(capfd.readouterr().out)

    assert main([*words, "--processes", "2", "--out", str(tmp_path / "model")]) == 0

    told = json.loads(capfd.readouterr().out)  # one object: the others say nothing
    assert told["processes"] == 2
    assert told["trials"][0]["target_accuracy"] == alone["trials"][0]["target_accuracy"]
    assert (tmp_path / "model" / "MODEL_CARD.md").exists()
    assert main([*words, "--processes", "2", "--source", str(tmp_path / "nowhere.npz")]) == 1
