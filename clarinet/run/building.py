"""What a run trains: its networks, drawn from the seed, and the optimiser with its step sizes."""

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clarinet.data.domains import Domains
from clarinet.data.seeding import seed_global
from clarinet.losses.adaptation.kinds import adaptation_network
from clarinet.networks.backbones import Backbone
from clarinet.networks.classifier import Classifier, ModelSpec
from clarinet.networks.spreading import spread_over
from clarinet.networks.weights import TrainedWeights, load_pretrained
from clarinet.plus.pretraining import encoder_spec
from clarinet.recipes.config import TrainConfig

MOMENTUM = 0.9  # of SGD, as in the paper
PRETRAINING_RATE = (0.15, 0.05)  # share of the time in which the step size rises, and what is left at its end


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """The networks of a run; `averaged` predicts and teaches, the last two are None where no loss asks.

    `adaptation` is that of the loss which brings the domains together (a discriminator), `encoder` that of
    the pretraining, whose features tell which images of the source are similar. `pretrained` says which
    trained weights classifier and encoder began with.
    """

    classifier: Classifier
    averaged: Classifier
    adaptation: nn.Module | None
    encoder: Classifier | None = None
    pretrained: TrainedWeights | None = None


def build_networks(
    config: TrainConfig, domains: Domains, device: torch.device, *, weights_folder: Path | None = None
) -> Networks:
    """Networks in training mode (the averaged one in eval mode), initialised from the seed.

    Args:
        config, domains: of the run.
        device: where the networks go.
        weights_folder: where the config's file of trained weights is, if it is named without a path.

    Raises:
        ConfigError: the trained weights cannot be had or fit another network.
    """
    seed_global(torch.device("cpu"), config.seed, "initialisation")  # weights are drawn before they move
    own = domains.own.backbone
    classifier, pretrained = build_network(domains.spec, config, device, weights_folder, own)
    beside = adaptation_network(config, classifier.extractor.features, domains.spec.num_classes)
    beside = None if beside is None else beside.to(device)
    # Without averaging the classifier itself predicts and teaches: one module under two names.
    averaged = (
        copy.deepcopy(classifier).eval().requires_grad_(False)
        if config.optimisation.average_decay > 0
        else classifier
    )
    encoder = None
    if config.pretraining_epochs > 0:
        encoder, _ = build_network(encoder_spec(config, domains), config, device, weights_folder, own)
        spread_over(domains.group, encoder)
    spread_over(domains.group, classifier)
    return Networks(classifier, averaged, beside, encoder, pretrained)


def build_network(
    spec: ModelSpec,
    config: TrainConfig,
    device: torch.device,
    weights_folder: Path | None,
    own: nn.Module | None = None,
) -> tuple[Classifier, TrainedWeights | None]:
    """One network on its device, with the weights that the config names or that `own` has.

    See `build_networks`.
    """
    network = Classifier(spec, own)
    pretrained = None
    if isinstance(network.backbone, Backbone) and config.network.pretrained:
        pretrained = load_pretrained(
            network.backbone,
            config.network.pretrained,
            folder=weights_folder,
            digest=config.network.pretrained_digest,
        )
    return network.to(device).to(memory_format=torch.channels_last), pretrained


def build_optimizer(config: TrainConfig, networks: Networks) -> torch.optim.Optimizer:
    """The config's optimiser: first the group of classifier and encoder, then that of the discriminator.

    On a GPU the step sizes are tensors there, which `set_rates` fills and a graph reads.
    """
    learning = list(networks.classifier.parameters())
    if networks.encoder is not None:
        learning += networks.encoder.parameters()
    groups: list[dict[str, Any]] = [{"params": learning, "lr": config.optimisation.learning_rate}]
    if networks.adaptation is not None:
        groups.append(
            {
                "params": list(networks.adaptation.parameters()),
                "lr": config.optimisation.discriminator_learning_rate,
            }
        )
    device = learning[0].device
    on_gpu = device.type == "cuda"
    if on_gpu:
        groups = [group | {"lr": torch.tensor(group["lr"], device=device)} for group in groups]
    # Fused, the update takes a third of the time on the CPU: one pass over the memory instead of five.
    if config.optimisation.optimizer == "sgd":
        return torch.optim.SGD(
            groups, momentum=MOMENTUM, weight_decay=config.optimisation.weight_decay, fused=True
        )
    return torch.optim.AdamW(
        groups, weight_decay=config.optimisation.weight_decay, fused=True, capturable=on_gpu
    )


def set_rates(
    config: TrainConfig, optimizer: torch.optim.Optimizer, progress: float, *, adapts: bool
) -> None:
    """Give the optimiser the step sizes of a point of the run, in [0, 1), and the classifier its decay.

    The decay depends on the phase of a step alone, for each of which a graph is captured: no tensor.
    """
    share = rate_share(config, progress)
    rates = (config.optimisation.learning_rate, config.optimisation.discriminator_learning_rate)
    for group, rate in zip(optimizer.param_groups, rates, strict=False):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * share)
        else:
            group["lr"] = rate * share
    if config.adaptation.second_decay:
        optimizer.param_groups[0]["weight_decay"] = config.optimisation.weight_decay * (2 if adapts else 1)


def rate_share(config: TrainConfig, progress: float) -> float:
    """Share of the step sizes to use at a point of the run: for the pretraining and for the rest alike."""
    before = config.pretraining_epochs / config.length.epochs
    if progress < before:
        return _rise_and_decay(progress / before, *PRETRAINING_RATE)
    return _rise_and_decay(
        (progress - before) / (1 - before),
        config.optimisation.warmup,
        config.optimisation.final_learning_rate,
    )


def _rise_and_decay(progress: float, warmup: float, final: float) -> float:
    """A linear rise over a share of the time, then a cosine decay to what is left."""
    if progress < warmup:
        return progress / warmup
    if final == 1 or warmup == 1:
        return 1.0
    phase = (progress - warmup) / (1 - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * phase)) / 2
