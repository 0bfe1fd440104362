"""What the tests of the rows of differences between text and published code start from."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from clarinet import TrainConfig, TrainData, config_for
from clarinet.data.domains import Domains, prepare
from clarinet.data.seeding import generator
from clarinet.losses.adaptation.kinds import adaptation_loss
from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.run.building import Networks, build_networks, build_optimizer
from clarinet.run.objective import Objective
from clarinet.run.resuming import RunState
from tests.clarinet.factories import make_data

CPU = torch.device("cpu")
PRESETS = ["paper", "published"]
SHORT: dict[str, Any] = {"epochs": 3, "steps_per_epoch": 4, "batch_size": 16, "adaptation_start_epoch": 1}
ACTIVE = EPOCH_STEPS = 4  # the first step with an adversary


def make_config(preset: str, **changes: Any) -> TrainConfig:
    return config_for("clarinet", preset, **SHORT | changes)


def make_uneven_data(**changes: Any) -> TrainData:
    """Nine of ten complementary labels name class 0 or 1: batches of 16 may lack class 2."""
    labels = make_data().complementary
    rare = (labels == 2) & (torch.arange(96) % 4 > 0)
    uneven: dict[str, Any] = {"complementary": torch.where(rare, torch.arange(96) % 2, labels)}
    return make_data(**uneven | changes)


def make_objective(config: TrainConfig, data: TrainData | None = None) -> tuple[Objective, Domains, Networks]:
    """Without dropout, so that the same step twice is the same."""
    domains = prepare(data if data is not None else make_uneven_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    networks.classifier.eval()
    if networks.adaptation is not None:
        networks.adaptation.eval()
    return Objective(config, domains, networks, steps=12, epoch_steps=4), domains, networks


class Says(nn.Module):
    """A discriminator that always gives the same score."""

    def __init__(self, score: float) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.tensor(score))

    def forward(self, x: Tensor) -> Tensor:
        return self.score + 0 * x.sum(1, keepdim=True)


def make_part(n: int, stream: str) -> DomainBatch:
    draws = generator(5, stream)
    features, logits = (torch.randn(n, width, generator=draws, dtype=torch.float64) for width in (4, 3))
    return DomainBatch(features.requires_grad_(), logits.requires_grad_(), torch.ones(n, dtype=torch.float64))


def loss_of(
    config: TrainConfig, network: nn.Module, source: list[DomainBatch], target: DomainBatch, share: float
) -> Tensor:
    """The adaptation loss of a run with that network in the place of its own."""
    loss = adaptation_loss(config, network)
    assert loss is not None
    return loss(source, target, Shares(share, share))


def adversarial_loss(
    config: TrainConfig, score: float, *, parts: int = 1, share: float = 1.0
) -> tuple[Tensor, Says]:
    says = Says(score)
    source = [make_part(3 + 2 * i, f"source {i}") for i in range(parts)]
    loss = loss_of(config, says, source, make_part(9, "target"), share)
    return loss, says


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def make_state(config: TrainConfig) -> tuple[RunState, Objective, list[int]]:
    """A run before its first step, and the sizes of the classifier's batches as they come."""
    domains = prepare(make_uneven_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    passes: list[int] = []
    networks.classifier.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0])))
    objective = Objective(config, domains, networks, steps=12, epoch_steps=4)
    return RunState(networks=networks, optimizer=build_optimizer(config, networks)), objective, passes
