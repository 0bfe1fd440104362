"""train(): the one loop, for every method."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from clarinet.data.domains import prepare
from clarinet.data.fingerprint import fingerprint
from clarinet.data.seeding import seed_global
from clarinet.data.training_data import TrainData
from clarinet.distributed.group import ALONE, Group
from clarinet.distributed.same import leaders_file, require_same
from clarinet.networks.own import NOTHING, Own
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.doing import Doing, OnPart, silently
from clarinet.recipes.errors import Interrupted
from clarinet.recipes.lengths import steps_in_epoch
from clarinet.recipes.methods import two_steps
from clarinet.run.asked import Asked
from clarinet.run.building import Networks, build_networks, build_optimizer, set_rates
from clarinet.run.graphs import Reported, updates_of
from clarinet.run.kept import train_on_kept
from clarinet.run.objective import Objective
from clarinet.run.relabelling import pseudo_labels, with_pseudo_labels
from clarinet.run.reporting import epoch_report, run_result
from clarinet.run.results import EpochReport, TrainResult
from clarinet.run.resuming import RunState, restore, stored_pseudo_labels
from clarinet.run.stages import Stage
from clarinet.run.turns import Run, finished

__all__ = ["Doing", "EpochReport", "TrainResult", "ignore", "never", "train", "train_in_steps"]


def ignore(told: object) -> None:
    """Do nothing with what a run tells."""


def never() -> bool:
    """The should_stop of a run that nobody stops."""
    return False


def train(
    config: TrainConfig,
    data: TrainData,
    *,
    device: torch.device = torch.device("cpu"),  # noqa: B008 - a value, immutable
    on_epoch: Callable[[EpochReport], None] = ignore,
    on_doing: Callable[[Doing], None] = ignore,
    on_part: OnPart = silently,
    checkpoint: str | Path | None = None,
    should_stop: Callable[[], bool] = never,
    weights_folder: str | Path | None = None,
    own: Own = NOTHING,
    group: Group = ALONE,
) -> TrainResult:
    """Train a classifier for the target from complementary (and true) labels of the source.

    With `first_step_share` above 0 the run has two steps: GAC, whose predictions label the whole source, and
    ordinary adaptation of networks that start anew. Epochs and steps count through both.

    On the CPU of one machine with one set of versions and one thread count, equal arguments give bit-equal
    weights, also when the run was interrupted or killed and resumed from its checkpoint.

    Args:
        config: hyper-parameters and seed.
        data: both domains, on any device.
        device: where to train.
        on_epoch: called after each epoch; what it raises ends the training. After a kill the epochs since the
            last checkpoint are reported once more.
        on_doing: called with what the run does while no epoch ends, as often as it gets on, while features
            are computed that are kept; what it raises ends the training.
        on_part: called after each part of what takes long beside the steps: some images resized or predicted.
        checkpoint: file that training writes every `checkpoint_every` epochs and resumes from if it exists.
        should_stop: asked before each step; when true, a checkpoint is written and Interrupted raised.
        weights_folder: where the file of trained weights is that the config names without a path.
        own: a network or a distortion in the place of the config's; without a checkpoint only.
        group: the processes that train this run together, from `clarinet.distributed.joining.join`; each
            calls this with the same config and data. The first one's checkpoint counts, and it alone writes
            and is told of epochs. Weights are those of one process with the same batches, up to rounding.

    Returns:
        The model of the last step, with all reports and its score on all images that score.

    Raises:
        DataError: the data does not fit the setting.
        ConfigError: the pretrained weights that the config names cannot be had or fit another network.
        CheckpointMismatch: the checkpoint belongs to another config or other data.
        CheckpointError: it cannot be read; CheckpointNotWritten: it cannot be written.
        Diverged: the mean loss of an epoch is not finite.
        Interrupted: should_stop said so, of any of the processes.
    """
    return finished(
        train_in_steps(
            config,
            data,
            device=device,
            on_epoch=on_epoch,
            on_doing=on_doing,
            on_part=on_part,
            checkpoint=checkpoint,
            should_stop=should_stop,
            weights_folder=weights_folder,
            own=own,
            group=group,
        )
    )


def train_in_steps(
    config: TrainConfig,
    data: TrainData,
    *,
    device: torch.device = torch.device("cpu"),  # noqa: B008 - a value, immutable
    on_epoch: Callable[[EpochReport], None] = ignore,
    on_doing: Callable[[Doing], None] = ignore,
    on_part: OnPart = silently,
    checkpoint: str | Path | None = None,
    should_stop: Callable[[], bool] = never,
    weights_folder: str | Path | None = None,
    own: Own = NOTHING,
    group: Group = ALONE,
) -> Run[TrainResult]:
    """`train` as a generator that stops after each step, for runs that take turns: see `take_turns`.

    Args:
        config, data, device, on_epoch, on_doing, on_part: as in `train`.
        checkpoint, should_stop, weights_folder, own, group: as in `train`.

    Returns:
        A generator that yields nothing and returns what `train` does; its steps raise what `train` raises.
    """
    checkpoint = Path(checkpoint) if checkpoint else None
    digest = "" if checkpoint is None and group.is_alone else fingerprint(data)
    require_same(group, config, digest)
    with (
        leaders_file(group, checkpoint) as stored,
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
    ):
        run = Asked(
            config=config,
            device=device,
            on_epoch=on_epoch if group.leads else ignore,
            on_doing=on_doing if group.leads else ignore,
            on_part=on_part,
            should_stop=lambda: group.any(should_stop()),
            checkpoint=checkpoint,
            digest=digest,
            weights_folder=Path(weights_folder) if weights_folder else None,
            own=own,
            group=group,
        )
        if config.length.first_step_share > 0:
            return (yield from _train_in_two_steps(run, data, stored))
        stage = Stage(config=config, domains=prepare(data, config, device, own, group, on_part=on_part))
        if config.network.kept_features:
            return (yield from train_on_kept(run, stage))
        state = _fresh(run, stage)
        if stored:
            restore(stored, state, config, run.digest)
        yield from _train_stage(run, stage, state)
        return run_result(config, state, stage)


def _train_in_two_steps(run: Asked, data: TrainData, stored: Path | None) -> Run[TrainResult]:
    """GAC, its labels for the whole source, and the ordinary adaptation of new networks to those labels.

    A checkpoint of the second step holds the labels; one without them belongs to the first. `stored` is the
    one to go on from, if there is one.
    """
    first, second = two_steps(run.config)
    rest = second.length.epochs * steps_in_epoch(second, len(data.source_images), len(data.target_images))
    stage = Stage(
        config=first,
        domains=prepare(data, first, run.device, run.own, run.group, on_part=run.on_part),
        steps_after=rest,
    )
    first_steps, uniformity = stage.steps, stage.domains.uniformity
    labels = stored_pseudo_labels(stored, run.config, run.digest) if stored else None
    in_second = labels is not None
    reports: list[EpochReport] = []
    seconds = 0.0
    if labels is None:
        state = _fresh(run, stage)
        if stored:
            restore(stored, state, run.config, run.digest)
        yield from _train_stage(run, stage, state)
        labels = run.group.same(
            pseudo_labels(state.networks.averaged, data.source_images, on_part=run.on_part)
        )
        reports, seconds = state.reports, state.seconds
    del stage  # and with it the first copy of the images
    relabelled = with_pseudo_labels(data, labels, setting=run.config.setting)
    stage = Stage(
        config=second,
        domains=replace(
            prepare(relabelled, second, run.device, run.own, run.group, on_part=run.on_part),
            uniformity=uniformity,
        ),
        epochs_before=first.length.epochs,
        steps_before=first_steps,
    )
    state = _fresh(run, stage)
    state.pseudo_labels, state.reports, state.seconds = labels, reports, seconds
    if stored and in_second:
        restore(stored, state, run.config, run.digest)
    yield from _train_stage(run, stage, state)
    return run_result(run.config, state, stage)


def _fresh(run: Asked, stage: Stage) -> RunState:
    """The state before a stage's first step."""
    networks = build_networks(stage.config, stage.domains, run.device, weights_folder=run.weights_folder)
    return RunState(networks=networks, optimizer=build_optimizer(stage.config, networks))


def _train_stage(run: Asked, stage: Stage, state: RunState) -> Run[None]:
    """Take the steps of a stage that the state has not taken yet."""
    config, steps, epoch_steps = stage.config, stage.steps, stage.epoch_steps
    objective = Objective(
        config,
        stage.domains,
        state.networks,
        steps=steps,
        epoch_steps=epoch_steps,
        neighbours=state.neighbours,
    )
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
        if report.epoch % config.reports.checkpoint_every == 0 or state.step == steps:
            run.keep(state)
        yield


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
    # Dropout, and what callers bring, are torch's global generator's only users; seeding it by step leaves no
    # state to save.
    seed_global(objective.device, config.seed, f"dropout/{state.step}")
    if objective.domains.own and objective.device.type != "cpu":  # which may draw on either side
        seed_global(torch.device("cpu"), config.seed, f"own/{state.step}")
    if objective.lacks_neighbours(state.step):
        state.neighbours = objective.find_neighbours()
    adapts = objective.phase(state.step).adapts
    set_rates(config, state.optimizer, state.step / steps, adapts=adapts)
    reported = updates(state.step)
    if config.optimisation.average_decay > 0:
        _average(state.networks, min(config.optimisation.average_decay, (1 + state.step) / (10 + state.step)))
    for name, value in reported.items():
        state.totals[name] = state.totals.get(name, 0.0) + value
    state.step += 1


def _average(networks: Networks, decay: float) -> None:
    """Move the averaged network towards the classifier: parameters and batch statistics alike."""
    averaged, student = _numbers(networks.averaged), _numbers(networks.classifier)
    torch._foreach_lerp_(averaged, student, 1 - decay)


def _numbers(network: nn.Module) -> list[Tensor]:
    """All that has a mean; a caller's own network may also keep indices and counts."""
    return [value for value in network.state_dict().values() if value.is_floating_point()]
