"""train(): the one loop, for every method."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clarinet.data.domains import Domains, fingerprint, prepare
from clarinet.data.seeding import seed_global
from clarinet.data.training_data import TrainData
from clarinet.networks.backbones import Backbone, load_pretrained
from clarinet.networks.classifier import Classifier, ModelSpec, discriminator
from clarinet.plus.pretraining import encoder_spec
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import Interrupted
from clarinet.recipes.lengths import steps_in_epoch
from clarinet.recipes.methods import two_steps
from clarinet.run.graphs import Reported, updates_of
from clarinet.run.objective import Networks, Objective
from clarinet.run.relabelling import pseudo_labels, with_pseudo_labels
from clarinet.run.reporting import epoch_report, run_result
from clarinet.run.results import EpochReport, TrainResult
from clarinet.run.resuming import RunState, restore, save, stored_pseudo_labels
from clarinet.run.stages import Stage
from clarinet.run.turns import Run, finished

__all__ = ["EpochReport", "TrainResult", "ignore", "never", "train", "train_in_steps"]

PRETRAINING_RATE = (0.15, 0.05)  # share of the time in which the step size rises, and what is left at its end


def ignore(report: EpochReport) -> None:
    """Do nothing with a report."""


def never() -> bool:
    """The should_stop of a run that nobody stops."""
    return False


def train(
    config: TrainConfig,
    data: TrainData,
    *,
    device: torch.device = torch.device("cpu"),  # noqa: B008 - a value, immutable
    on_epoch: Callable[[EpochReport], None] = ignore,
    checkpoint: str | Path | None = None,
    should_stop: Callable[[], bool] = never,
) -> TrainResult:
    """Train a classifier for the target from complementary (and true) labels of the source.

    With `config.pseudo_label_share` above 0 the run has two steps: GAC, whose predictions label the whole
    source, and ordinary adaptation of networks that start anew. Epochs and steps count through both.

    On the CPU of one machine with one set of versions and one thread count, equal arguments give bit-equal
    weights, also when the run was interrupted or killed and resumed from its checkpoint.

    Args:
        config: hyper-parameters and seed.
        data: both domains, on any device.
        device: where to train.
        on_epoch: called after each epoch; what it raises ends the training. After a kill the epochs since the
            last checkpoint are reported once more.
        checkpoint: file that training writes every `config.checkpoint_every` epochs and resumes from if it
            exists.
        should_stop: asked before each step; when true, a checkpoint is written and Interrupted raised.

    Returns:
        The model of the last step, with all reports and its score on the whole target test set.

    Raises:
        DataError: the data does not fit the setting.
        ConfigError: the pretrained weights that the config names cannot be had or fit another network.
        CheckpointMismatch: the checkpoint belongs to another config or other data.
        CheckpointError: it cannot be read; CheckpointNotWritten: it cannot be written.
        Diverged: the mean loss of an epoch is not finite.
        Interrupted: should_stop said so.
    """
    return finished(
        train_in_steps(
            config,
            data,
            device=device,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
            should_stop=should_stop,
        )
    )


def train_in_steps(
    config: TrainConfig,
    data: TrainData,
    *,
    device: torch.device = torch.device("cpu"),  # noqa: B008 - a value, immutable
    on_epoch: Callable[[EpochReport], None] = ignore,
    checkpoint: str | Path | None = None,
    should_stop: Callable[[], bool] = never,
) -> Run[TrainResult]:
    """`train` as a generator that stops after each step, for runs that take turns: see `take_turns`.

    Args:
        config, data, device, on_epoch, checkpoint, should_stop: as in `train`.

    Returns:
        A generator that yields nothing and returns what `train` does; its steps raise what `train` raises.
    """
    checkpoint = Path(checkpoint) if checkpoint else None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        run = _Run(
            config=config,
            device=device,
            on_epoch=on_epoch,
            should_stop=should_stop,
            checkpoint=checkpoint,
            digest=fingerprint(data) if checkpoint else "",
        )
        if config.pseudo_label_share > 0:
            return (yield from _train_in_two_steps(run, data))
        stage = Stage(config=config, domains=prepare(data, config, device))
        state = _fresh(stage, device)
        if checkpoint and checkpoint.exists():
            restore(checkpoint, state, config, run.digest)
        yield from _train_stage(run, stage, state)
        return run_result(config, state, stage)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """What a caller asked of `train`, and the digest of the data."""

    config: TrainConfig
    device: torch.device
    on_epoch: Callable[[EpochReport], None]
    should_stop: Callable[[], bool]
    checkpoint: Path | None
    digest: str

    def keep(self, state: RunState) -> None:
        """Write the checkpoint, if one is wanted."""
        if self.checkpoint:
            save(self.checkpoint, state, self.config, self.digest)


def _train_in_two_steps(run: _Run, data: TrainData) -> Run[TrainResult]:
    """GAC, its labels for the whole source, and the ordinary adaptation of new networks to those labels.

    A checkpoint of the second step holds the labels; one without them belongs to the first.
    """
    first, second = two_steps(run.config)
    rest = second.epochs * steps_in_epoch(second, len(data.source_images), len(data.target_images))
    stage = Stage(config=first, domains=prepare(data, first, run.device), steps_after=rest)
    first_steps, uniformity = stage.steps, stage.domains.uniformity
    stored = run.checkpoint if run.checkpoint and run.checkpoint.exists() else None
    labels = stored_pseudo_labels(stored, run.config, run.digest) if stored else None
    in_second = labels is not None
    reports: list[EpochReport] = []
    seconds = 0.0
    if labels is None:
        state = _fresh(stage, run.device)
        if stored:
            restore(stored, state, run.config, run.digest)
        yield from _train_stage(run, stage, state)
        labels = pseudo_labels(state.networks.averaged, data.source_images)
        reports, seconds = state.reports, state.seconds
    del stage  # and with it the first copy of the images
    relabelled = with_pseudo_labels(data, labels, setting=run.config.setting)
    stage = Stage(
        config=second,
        domains=replace(prepare(relabelled, second, run.device), uniformity=uniformity),
        epochs_before=first.epochs,
        steps_before=first_steps,
    )
    state = _fresh(stage, run.device)
    state.pseudo_labels, state.reports, state.seconds = labels, reports, seconds
    if stored and in_second:
        restore(stored, state, run.config, run.digest)
    yield from _train_stage(run, stage, state)
    return run_result(run.config, state, stage)


def _fresh(stage: Stage, device: torch.device) -> RunState:
    """The state before a stage's first step."""
    networks = build_networks(stage.config, stage.domains, device)
    return RunState(networks=networks, optimizer=build_optimizer(stage.config, networks))


def _train_stage(run: _Run, stage: Stage, state: RunState) -> Run[None]:
    """Take the steps of a stage that the state has not taken yet."""
    config, steps, epoch_steps = stage.config, stage.steps, stage.epoch_steps
    objective = Objective(config, stage.domains, state.networks, steps=steps, epoch_steps=epoch_steps)
    objective.neighbours = state.neighbours
    updates = updates_of(objective, state.optimizer)
    started = time.perf_counter() - state.seconds
    while state.step < steps:
        if run.should_stop():
            state.seconds = time.perf_counter() - started
            run.keep(state)
            raise Interrupted(stage.steps_before + state.step, run.checkpoint)
        train_step(config, state, objective, steps, updates)
        if state.step % epoch_steps:
            yield
            continue
        state.seconds = time.perf_counter() - started
        report = epoch_report(run.config, state, stage)
        state.reports.append(report)
        run.on_epoch(report)
        if report.epoch % config.checkpoint_every == 0 or state.step == steps:
            run.keep(state)
        yield


def build_networks(config: TrainConfig, domains: Domains, device: torch.device) -> Networks:
    """Networks in training mode (the averaged one in eval mode), initialised from the seed."""
    seed_global(torch.device("cpu"), config.seed, "initialisation")  # weights are drawn before they move
    classifier = _network(domains.spec, config, device)
    adversary = None
    if config.trade_off > 0:
        inputs = classifier.extractor.features * (domains.spec.num_classes if config.conditioning else 1)
        adversary = discriminator(inputs).to(device)
    # Without averaging the classifier itself predicts and teaches: one module under two names.
    averaged = copy.deepcopy(classifier).eval().requires_grad_(False) if config.averaging > 0 else classifier
    encoder = None
    if config.pretraining_epochs > 0:
        encoder = _network(encoder_spec(config, domains), config, device)
    return Networks(classifier, averaged, adversary, encoder)


def _network(spec: ModelSpec, config: TrainConfig, device: torch.device) -> Classifier:
    network = Classifier(spec)
    if isinstance(network.extractor, Backbone) and config.pretrained:
        load_pretrained(network.extractor, config.pretrained)
    return network.to(device).to(memory_format=torch.channels_last)


def build_optimizer(config: TrainConfig, networks: Networks) -> torch.optim.Optimizer:
    """The config's optimiser: first the group of classifier and encoder, then that of the discriminator.

    On a GPU the step sizes are tensors there, which `set_rates` fills and a graph reads.
    """
    learning = list(networks.classifier.parameters())
    if networks.encoder is not None:
        learning += networks.encoder.parameters()
    groups: list[dict[str, Any]] = [{"params": learning, "lr": config.learning_rate}]
    if networks.discriminator is not None:
        groups.append(
            {"params": list(networks.discriminator.parameters()), "lr": config.discriminator_learning_rate}
        )
    device = learning[0].device
    on_gpu = device.type == "cuda"
    if on_gpu:
        groups = [group | {"lr": torch.tensor(group["lr"], device=device)} for group in groups]
    # Fused, the update takes a third of the time on the CPU: one pass over the memory instead of five.
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=config.momentum, weight_decay=config.weight_decay, fused=True)
    return torch.optim.AdamW(groups, weight_decay=config.weight_decay, fused=True, capturable=on_gpu)


def train_step(
    config: TrainConfig,
    state: RunState,
    objective: Objective,
    steps: int,
    updates: Callable[[int], Reported],
) -> None:
    """Take the step at which the state stands, of so many in all; waits for no device.

    Args:
        config, state, objective: of the run.
        steps: of the run.
        updates: moves the weights at a step and returns its losses, from `updates_of`.
    """
    # Dropout is the only user of torch's global generator; seeding it by step leaves no state to save.
    seed_global(objective.device, config.seed, f"dropout/{state.step}")
    if objective.lacks_neighbours(state.step):
        state.neighbours = objective.find_neighbours()
    set_rates(config, state.optimizer, state.step / steps)
    reported = updates(state.step)
    if config.averaging > 0:
        _average(state.networks, min(config.averaging, (1 + state.step) / (10 + state.step)))
    for name, value in reported.items():
        state.totals[name] = state.totals.get(name, 0.0) + value
    state.step += 1


def set_rates(config: TrainConfig, optimizer: torch.optim.Optimizer, progress: float) -> None:
    """Give the optimiser the step sizes of a point of the run, in [0, 1)."""
    share = rate_share(config, progress)
    rates = (config.learning_rate, config.discriminator_learning_rate)
    for group, rate in zip(optimizer.param_groups, rates, strict=False):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * share)
        else:
            group["lr"] = rate * share


def rate_share(config: TrainConfig, progress: float) -> float:
    """Share of the step sizes to use at a point of the run: for the pretraining and for the rest alike."""
    before = config.pretraining_epochs / config.epochs
    if progress < before:
        return _rise_and_decay(progress / before, *PRETRAINING_RATE)
    return _rise_and_decay((progress - before) / (1 - before), config.warmup, config.final_learning_rate)


def _rise_and_decay(progress: float, warmup: float, final: float) -> float:
    """A linear rise over a share of the time, then a cosine decay to what is left."""
    if progress < warmup:
        return progress / warmup
    if final == 1 or warmup == 1:
        return 1.0
    phase = (progress - warmup) / (1 - warmup)
    return final + (1 - final) * (1 + math.cos(math.pi * phase)) / 2


def _average(networks: Networks, decay: float) -> None:
    """Move the averaged network towards the classifier: parameters and batch statistics alike."""
    averaged: list[Tensor] = list(networks.averaged.state_dict().values())
    torch._foreach_lerp_(averaged, list(networks.classifier.state_dict().values()), 1 - decay)
