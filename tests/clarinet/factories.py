"""Tiny domains and configs: two strokes that a network tells apart within seconds."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clarinet import TrainConfig, TrainData, config_for
from clarinet.data.seeding import generator
from clarinet.data.streams import ImageStream, NpyImages
from clarinet.networks.classifier import Classifier, spec_for
from clarinet.recipes.choices import Architecture
from clarinet.reproduction.results import FORMAT_VERSION
from clarinet.reproduction.running import trial_run
from clarinet.reproduction.trials import Trial
from clarinet.run.turns import finished

NUM_CLASSES = 3
SHORT_TRIAL = {"epochs": 3, "steps_per_epoch": 2, "batch_size": 16, "checkpoint_every": 1}


def make_images(labels: Tensor, *, seed: int = 0, brightness: int = 200, colour: bool = False) -> Tensor:
    """uint8 images, (N, 28, 28) or (N, 28, 28, 3): a bar whose place says the class, on a noisy ground."""
    draws = generator(seed, "images")
    images = torch.randint(0, 40, (len(labels), 28, 28), generator=draws, dtype=torch.uint8)
    for image, label in zip(images, labels.tolist(), strict=True):
        start = 4 + 7 * label
        image[start : start + 4, 5:23] = brightness
    return images[..., None].expand(-1, -1, -1, 3).contiguous() if colour else images


def write_digits(path: Path, images: int, *, seed: int) -> None:
    """Grey 28x28 images of ten classes: a block whose place says which."""
    draws = generator(seed, "digits")
    arrays: dict[str, Any] = {}
    for part in ("train", "test"):
        labels = torch.randint(10, (images,), generator=draws)
        pixels = torch.randint(0, 40, (images, 28, 28), generator=draws, dtype=torch.uint8)
        for image, label in zip(pixels, labels.tolist(), strict=True):
            image[2 + 8 * (label // 4) :, 1 + 7 * (label % 4) :][:6, :5] = 220
        arrays |= {f"x_{part}": pixels.numpy(), f"y_{part}": labels.numpy().astype(np.uint8)}
    np.savez(path, **arrays)


def in_memory(images: Tensor | ImageStream) -> Tensor:
    """The images that `make_data` makes are tensors."""
    assert isinstance(images, Tensor)
    return images


def make_data(
    count: int = 96, *, seed: int = 0, colour_target: bool = False, true_rows: int = 0, **changes: Any
) -> TrainData:
    """A source with one label each, the first `true_rows` of them true, and a darker target, both of bars."""
    draws = generator(seed, "classes")
    source_labels = torch.randint(NUM_CLASSES, (count,), generator=draws)
    target_labels = torch.randint(NUM_CLASSES, (count,), generator=draws)
    target = make_images(target_labels, seed=seed + 1, brightness=150, colour=colour_target)
    wrong = (source_labels + torch.randint(1, NUM_CLASSES, (count,), generator=draws)) % NUM_CLASSES
    known = torch.arange(count) < true_rows
    values: dict[str, Any] = {
        "source_images": make_images(source_labels, seed=seed),
        "complementary": wrong.masked_fill(known, -1),
        "true": source_labels.masked_fill(~known, -1),
        "weights": torch.ones(count),
        "target_images": target,
        "target_test_images": target,
        "target_test_labels": target_labels,
        "num_classes": NUM_CLASSES,
    }
    return TrainData(**values | changes)


def make_config(method: str = "clarinet-plus", **changes: Any) -> TrainConfig:
    """A run of 12 steps in 3 epochs that passes through every phase of its method."""
    short: dict[str, Any] = {"epochs": 3, "steps_per_epoch": 4, "batch_size": 16, "checkpoint_every": 1}
    if method == "clarinet-plus":
        short["pretraining_share"] = 0.34  # the first of three epochs, and none of one
    else:
        short["adaptation_start_epoch"] = 1
    return config_for(method, None, **short | changes)


def make_trial(**changes: Any) -> Trial:
    """A trial of `clarinet reproduce`, of six steps."""
    values: dict[str, Any] = {
        "task": "U->M",
        "method": "clarinet-plus",
        "preset": "digits",
        "setting": "cc",
        "true_labels": 0,
        "answers": 0,
        "label_noise": 0.0,
        "seed": 0,
        "changes": tuple(sorted(SHORT_TRIAL.items())),
    }
    return Trial(**values | changes)


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "plus grey cc": ("clarinet-plus", {}, {}),
    "plus colour target": ("clarinet-plus", {}, {"colour_target": True}),
    "plus pc": ("clarinet-plus", {"setting": "pc"}, {"true_rows": 20}),
    "paper cc": ("clarinet", {}, {}),
    "paper pc colour": (
        "clarinet",
        {"setting": "pc"},
        {"colour_target": True, "true_rows": 20},
    ),
    "gac": ("gac", {}, {}),
    "dan": ("dan", {}, {"true_rows": 40}),
    "dann": ("dann", {}, {"true_rows": 40}),
    "cdan_e": ("cdan_e", {}, {"true_rows": 40}),
    "cross-entropy": ("clarinet-ce", {}, {}),
}


def make_case(name: str) -> tuple[TrainConfig, TrainData]:
    """The config and the data of one of the CASES: methods, settings and colours."""
    method, changes, data = CASES[name]
    return make_config(method, **changes), make_data(**data)


def equal_weights(one: Classifier, other: Classifier) -> bool:
    """Whether two networks agree in each bit."""
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def run_trial(*arguments: Any, **more: Any) -> dict[str, Any] | None:
    """All steps of one trial of a reproduction; see `trial_run`."""
    return finished(trial_run(*arguments, **more))


def make_network(
    architecture: Architecture,
    *,
    size: int = 32,
    colour: bool = True,
    batch_norm: bool = True,
    classes: int = 9,
) -> Classifier:
    """A network with fresh weights, as a config means it."""
    config = config_for("clarinet", architecture=architecture, image_size=size, norm_per_domain=batch_norm)
    return Classifier(spec_for(config, colour=colour, num_classes=classes))


@dataclass
class Recorded:
    """A stream over a tensor that remembers what was read, and by which threads."""

    images: Tensor
    reads: list[list[int]] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.images.shape)

    def __len__(self) -> int:
        return len(self.images)

    def read(self, rows: Tensor) -> Tensor:
        self.reads.append(rows.tolist())
        self.threads.add(threading.current_thread().name)
        return self.images[rows]


def noise(*shape: int) -> Tensor:
    """Pixels in [0, 1), always the same ones."""
    return torch.rand(shape, generator=generator(0, "noise"))


def saved(path: Path, images: Tensor) -> NpyImages:
    """A stream of images that are written to a file first."""
    np.save(path, images.numpy())
    return NpyImages(path)


def noisy_levels(*shape: int) -> Tensor:
    """uint8 values of any shape, the same ones each time."""
    return torch.randint(256, shape, generator=generator(0, "noise"), dtype=torch.uint8)


def make_record(accuracy: float | None, *, finished: str = "2026-01-01", **changes: Any) -> dict[str, Any]:
    """A record as `trial_run` writes it; None is a trial that diverged."""
    trial = make_trial(**changes)
    result = {"target_accuracy": accuracy, "steps": 6, "epochs": 3, "seconds": 1.0, "curve": [[1, accuracy]]}
    ended = {"failure": "diverged"} if accuracy is None else {"result": result}
    return {
        "format_version": FORMAT_VERSION,
        "trial": trial.to_dict(),
        "config": trial.config().flat(),
        "data": {"source": "USPS", "target": "MNIST", "digest": "d"},
        "environment": {"torch": "2", "gpu": None},
        "command": "clarinet reproduce U-M",
        "finished_at": finished,
    } | ended
