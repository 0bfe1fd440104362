"""The state of a run between two steps, and its way to disk and back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.config import DEFAULTS, TrainConfig, flattened
from clarinet.recipes.errors import CheckpointError, CheckpointMismatch
from clarinet.run.building import Networks
from clarinet.run.results import EpochReport
from clarinet.run.tensor_files import read_tensors, write_tensors

AFRESH = "name another checkpoint, or delete this one to begin anew"


@dataclass(slots=True, eq=False)
class RunState:
    """All that changes while a run trains.

    Every draw is a function of the seed and the step (see `seeding`), so the step stands for all generators,
    permutations, schedules and positions.

    Of a run in two steps this is the state of one of them: its networks, and its own steps. The reports and
    seconds are those of both.

    Args:
        features: kept ones of all images by domain, each (N, F); none until they are computed.
        neighbours: what similar images' labels say, None until the pretraining has ended.
        pseudo_labels: (N,) int64 that the first of two steps gave the source, None until it has ended.
    """

    networks: Networks
    optimizer: torch.optim.Optimizer
    step: int = 0
    seconds: float = 0.0
    totals: dict[str, Tensor] = field(default_factory=dict)
    reports: list[EpochReport] = field(default_factory=list)
    pseudo_labels: Tensor | None = None
    neighbours: NeighbourLabels | None = None
    features: dict[str, Tensor] = field(default_factory=dict)


def save(path: Path, state: RunState, config: TrainConfig, data_digest: str) -> None:
    """Write a checkpoint; the file before it stays whole until the new one is complete.

    Raises:
        CheckpointNotWritten: the disk refuses it.
    """
    tensors = {f"totals/{name}": total for name, total in state.totals.items()}
    tensors |= {f"features/{name}": values for name, values in state.features.items()}
    for part, module in _modules(state).items():
        tensors |= {f"{part}/{name}": value for name, value in module.state_dict().items()}
    for index, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in values.items() if value is not None}
    if state.pseudo_labels is not None:
        tensors["pseudo_labels"] = state.pseudo_labels
    if state.neighbours is not None:
        tensors["neighbours"] = state.neighbours.probabilities
    header = {
        "config": config.to_dict(),
        "data": data_digest,
        "step": state.step,
        "seconds": state.seconds,
        "label_noise": state.neighbours.label_noise if state.neighbours else None,
        "pretrained": state.networks.pretrained.digest if state.networks.pretrained else None,
        "tensors": sorted(tensors),
        "reports": [report.to_dict() for report in state.reports],
    }
    write_tensors(path, tensors, header, kind="checkpoint")


def restore(path: Path, state: RunState, config: TrainConfig, data_digest: str) -> None:
    """Bring a fresh state to where a checkpoint stood.

    Raises:
        CheckpointMismatch: it was written by another config, for other data or from other trained weights;
            the message names the first field.
        CheckpointError: it is damaged.
    """
    tensors, header = _read(path, config, data_digest)
    began, begins = header.get("pretrained"), state.networks.pretrained
    if began and begins and began != begins.digest:
        raise CheckpointMismatch(
            f"{path} began with trained weights of SHA-256 {began}, but {begins.name} has {begins.digest}; "
            f"{AFRESH}"
        )
    try:
        _check_complete(tensors, header["tensors"])
        for part, module in _modules(state).items():
            module.load_state_dict(_below(tensors, part))
        optimizer = state.optimizer.state_dict()
        optimizer["state"] = {}
        for name, value in _below(tensors, "optimizer").items():
            index, key = name.split("/")
            optimizer["state"].setdefault(int(index), {})[key] = value
        state.optimizer.load_state_dict(optimizer)
        _lay_out(state.optimizer)
        device = next(state.networks.classifier.parameters()).device
        state.totals = {name: value.to(device) for name, value in _below(tensors, "totals").items()}
        state.step = int(header["step"])
        state.seconds = float(header["seconds"])
        state.pseudo_labels = tensors.get("pseudo_labels")
        if "neighbours" in tensors:
            noise = header["label_noise"]
            noise = None if noise is None else float(noise)
            state.neighbours = NeighbourLabels(tensors["neighbours"].to(device), noise)
        state.reports = [EpochReport.from_dict(report) for report in header["reports"]]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not fit its own description: {error}") from error


@dataclass(slots=True, eq=False)
class Kept:
    """What a run on kept features goes on from: it repeats the rounds since, with the same result.

    Args:
        turn: of fine-tuning, after which the features were computed; 0 before the first.
        features: of all images by domain, each (N, D).
        weights: of the fine-tuned network below the label predictor, by name; none before the first turn.
        losses: of that turn, which the report of the next round tells.
        reports: of the rounds before these features.
        seconds: trained so far.
    """

    turn: int = 0
    features: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    reports: list[EpochReport] = field(default_factory=list)
    seconds: float = 0.0


def save_kept(path: Path, kept: Kept, config: TrainConfig, *, data_digest: str, weights_digest: str) -> None:
    """Write what a run on kept features goes on from as its checkpoint.

    Raises:
        CheckpointNotWritten: the disk refuses it.
    """
    header = {
        "config": config.to_dict(),
        "data": data_digest,
        "pretrained": weights_digest,
        "seconds": kept.seconds,
        "turn": kept.turn,
        "losses": kept.losses,
        "reports": [report.to_dict() for report in kept.reports],
    }
    tensors = {f"features/{name}": values for name, values in kept.features.items()}
    tensors |= {f"extractor/{name}": values for name, values in kept.weights.items()}
    write_tensors(path, tensors, header, kind="checkpoint")


def restored_kept(path: Path, config: TrainConfig, *, data_digest: str, weights_digest: str) -> Kept:
    """What such a checkpoint holds, on the CPU.

    Raises:
        CheckpointMismatch: it was written by another config, for other data or from other trained weights.
        CheckpointError: it is damaged.
    """
    tensors, header = _read(path, config, data_digest)
    if header.get("pretrained") != weights_digest:
        raise CheckpointMismatch(f"{path} began with other trained weights; {AFRESH}")
    features = _below(tensors, "features")
    if not {"source", "target"} <= set(features):
        raise CheckpointError(f"{path} holds no features")
    try:
        return Kept(
            turn=int(header["turn"]),
            features=features,
            weights=_below(tensors, "extractor"),
            losses={name: float(loss) for name, loss in header["losses"].items()},
            reports=[EpochReport.from_dict(report) for report in header["reports"]],
            seconds=float(header["seconds"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} does not fit its own description: {error}") from error


def stored_pseudo_labels(path: Path, config: TrainConfig, data_digest: str) -> Tensor | None:
    """The labels with which a checkpoint's second step trains, (N,) int64 of the source images.

    None while the run is in its first step, or has one only.

    Raises:
        CheckpointMismatch, CheckpointError: as `restore`.
    """
    return _read(path, config, data_digest)[0].get("pseudo_labels")


def stored_features(
    path: Path, config: TrainConfig, data_digest: str, device: torch.device
) -> dict[str, Tensor]:
    """The kept features by domain that a checkpoint holds, on the device; none where the run keeps none.

    Raises:
        CheckpointMismatch, CheckpointError: as `restore`.
    """
    tensors, _ = _read(path, config, data_digest)
    return {name: values.to(device) for name, values in _below(tensors, "features").items()}


def _read(path: Path, config: TrainConfig, data_digest: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, header = read_tensors(path, kind="checkpoint")
    _check_same_run(path, header.get("config", {}), config)
    if header.get("data") != data_digest:
        raise CheckpointMismatch(f"{path} was written for other images or labels; {AFRESH}")
    return tensors, header


def _check_complete(tensors: dict[str, Tensor], names: list[str]) -> None:
    """Modules notice what they lack; the optimiser and the sums would start from nothing in silence."""
    differing = set(tensors) ^ set(names)
    if differing:
        raise ValueError(f"the tensor {min(differing)} is missing or too many")


def _lay_out(optimizer: torch.optim.Optimizer) -> None:
    """Give the optimiser's values the memory layout of their parameters, which the file does not keep.

    Fused optimisers go through memory without looking at strides: convolutions that are channels last would
    move by the momentum of other weights.
    """
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            if value is not None and value.shape == parameter.shape:
                values[name] = torch.empty_like(parameter).copy_(value)


def _modules(state: RunState) -> dict[str, torch.nn.Module]:
    networks = state.networks
    modules: dict[str, torch.nn.Module] = {"classifier": networks.classifier}
    if networks.averaged is not networks.classifier:
        modules["averaged"] = networks.averaged
    if networks.adaptation is not None:
        modules["discriminator"] = networks.adaptation  # as files have called it from the first on
    if networks.encoder is not None:
        modules["encoder"] = networks.encoder
    return modules


def _below(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(f"{part}/"): value for name, value in tensors.items() if name.startswith(f"{part}/")
    }


def _check_same_run(path: Path, stored: dict[str, object], config: TrainConfig) -> None:
    wanted = config.flat()
    stored = {**DEFAULTS, **flattened(stored)}
    # How often to write checkpoints changes no weight.
    for name in sorted((set(stored) | set(wanted)) - {"checkpoint_every"}):
        if stored.get(name) != wanted.get(name):
            raise CheckpointMismatch(
                f"{path} has {name} = {stored.get(name)!r}, this run has {wanted.get(name)!r}; {AFRESH}"
            )
