"""The paper's seven tasks, and our own of photographs: which data, how much of it, and the network."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.files.names import NO_LABEL
from clarinet.recipes.choices import Looks, Setting
from clarinet.recipes.counting import many
from clarinet.recipes.errors import ConfigError, DataError
from clarinet.reproduction.readers import PACS_CLASSES, Domain, read_domain, require_data

DIGITS = tuple("0123456789")
SHARED_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "horse", "ship", "truck")
CIFAR_CLASSES = (*SHARED_OBJECTS[:6], "frog", *SHARED_OBJECTS[6:])
STL_CLASSES = ("airplane", "bird", "automobile", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
PACS_LOOKS = ("art_painting", "photo", "sketch")
SMALL = 32  # pixels to which STL-10 is brought


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pair of data sets and what the paper says of it.

    Args:
        name: as in the paper's tables.
        source, target: names in DATA_SETS.
        classes: shared by both; a label counts them.
        looks: of the images, by which `clarinet-plus` takes its preset.
        network: fields of TrainConfig that give the paper's methods the paper's network. `clarinet-plus`
            takes none: it chooses by the images' shape.
    """

    name: str
    source: str
    target: str
    classes: tuple[str, ...] = DIGITS
    looks: Looks = "digits"
    network: Mapping[str, Any] = field(default_factory=dict)
    in_class_order: bool = False  # the source's images lie class by class: its first ones are of one class


_DTN = {"architecture": "dtn", "image_size": 32}
_TASKS = (
    Task(
        name="C->T",
        source="cifar10",
        target="stl10",
        classes=SHARED_OBJECTS,
        looks="photographs",
        network={"architecture": "conv-large", "image_size": 32},
    ),
    Task(name="U->M", source="usps", target="mnist", network={"architecture": "lenet"}),
    Task(name="M->U", source="mnist", target="usps", network={"architecture": "lenet"}),
    Task(name="S->M", source="svhn", target="mnist", network=_DTN),
    Task(name="M->m", source="mnist", target="mnist_m", network={"architecture": "dann"}),
    Task(name="Y->M", source="syn_digits", target="mnist", network=_DTN),
    Task(name="Y->S", source="syn_digits", target="svhn", network=_DTN),
)
PAPER_TASKS = tuple(task.name for task in _TASKS)
"""The paper's names of its tasks, in the order of its tables."""

_OWN = Task(
    name="P->p",
    source="camera_1",
    target="camera_2",
    classes=CIFAR_CLASSES,
    looks="photographs",
    network={"architecture": "resnet18", "image_size": 32},
)
_PACS = tuple(
    Task(
        name=f"{source}->{target}",
        source=source,
        target=target,
        classes=PACS_CLASSES,
        looks="photographs",
        network={"architecture": "resnet18", "image_size": 96},
        in_class_order=True,
    )
    for source, target in permutations(PACS_LOOKS, 2)
)
TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for task in (*_TASKS, _OWN, *_PACS)})
"""Name to task: the paper's, photographs by two cameras, and photographs, paintings and sketches of PACS."""


def task_called(name: str) -> Task:
    """The task of a name such as U->M, or U-M, which needs no quotes in a shell.

    Raises:
        ConfigError: there is no such task.
    """
    wanted = name if "->" in name else name.replace("-", "->")
    if wanted not in TASKS:
        raise ConfigError(f"no task {name!r}; the known ones are {', '.join(TASKS)} (or U-M for U->M)")
    return TASKS[wanted]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskData:
    """The images of a task, read and checked.

    Args:
        task: which.
        source, target: the domains, with the classes of the task.
        digest: of all images and labels, in hexadecimal.
    """

    task: Task
    source: Domain
    target: Domain
    digest: str


def load_task(task: Task, folder: Path, *, download: bool = False) -> TaskData:
    """Read both domains of a task from a folder.

    Raises:
        DataNotFound: one is not there, or both; the message says what to put where.
        DataError: one cannot be read, or has no test images to score on.
    """
    require_data((task.source, task.target), folder, download=download)
    source = _shared(read_domain(task.source, folder, download=download), task)
    target = _shared(read_domain(task.target, folder, download=download), task)
    if target.x_test is None or target.y_test is None:
        raise DataError(f"{target.name} has no test images, on which {task.name} is scored")
    digest = blake2b(digest_size=16)
    for part in (source.x_train, source.y_train, target.x_train, target.x_test, target.y_test):
        digest.update(f"{tuple(part.shape)}".encode())
        digest.update(part.contiguous().numpy().data)
    return TaskData(task=task, source=source, target=target, digest=digest.hexdigest())


def _shared(domain: Domain, task: Task) -> Domain:
    """A domain with the classes of the task alone; the nine that CIFAR-10 and STL-10 share, in one order."""
    if task.classes in (DIGITS, CIFAR_CLASSES, PACS_CLASSES):
        return domain
    own = CIFAR_CLASSES if domain.name.startswith("CIFAR") else STL_CLASSES
    for images, labels in ((domain.x_train, domain.y_train), (domain.x_test, domain.y_test)):
        if images is not None and labels is not None:
            _check(domain.name, images, labels, len(own))
    place = torch.tensor([task.classes.index(name) if name in task.classes else NO_LABEL for name in own])
    x_train, y_train = _kept(domain.x_train, place[domain.y_train])
    if domain.x_test is None or domain.y_test is None:
        return replace(domain, x_train=x_train, y_train=y_train)
    x_test, y_test = _kept(domain.x_test, place[domain.y_test])
    counts = f"{len(x_train):,} + {len(x_test):,} of the {len(task.classes)} shared classes at 32x32"
    return Domain(
        name=f"{domain.name}: {counts}", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test
    )


def _check(name: str, images: Tensor, labels: Tensor, num_classes: int) -> None:
    if images.ndim != 4 or labels.shape != images.shape[:1]:  # noqa: PLR2004 - (N, H, W, 3)
        raise DataError(
            f"{name} has images {tuple(images.shape)} and labels {tuple(labels.shape)}; "
            "expected colour images (N, H, W, 3) and labels (N,)"
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < num_classes:
        raise DataError(f"{name} has labels outside 0..{num_classes - 1}")


def _kept(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    rows = labels != NO_LABEL
    return _small(images[rows]), labels[rows]


def _small(images: Tensor) -> Tensor:
    """uint8 (N, H, W, 3) to (N, 32, 32, 3), smoothed."""
    if images.shape[1:3] == (SMALL, SMALL):
        return images
    parts = [
        F.interpolate(part.movedim(3, 1).float(), size=(SMALL, SMALL), mode="bilinear", antialias=True)
        for part in torch.split(images, 512)
    ]
    return (
        torch.cat([part.round().clamp(0, 255).to(torch.uint8) for part in parts]).movedim(1, 3).contiguous()
    )


def labelled(
    data: TaskData,
    *,
    seed: int,
    setting: Setting,
    true_count: int = 0,
    answers: int = 0,
    label_noise: float = 0.0,
) -> TrainData:
    """A task with labels drawn for one trial.

    Args:
        data: see `load_task`.
        seed, setting, label_noise: see `simulate_labels`.
        true_count: true labels of the pc setting.
        answers: only so many source images have a label; 0 means all. They are the first ones, or drawn with
            the seed where the first ones are of one class.

    Raises:
        DataError: more answers than images, or labels that cannot be drawn.
    """
    truth = data.source.y_train
    if not 0 <= answers <= len(truth):
        raise DataError(
            f"asked for: {many(answers, 'answer')}; {data.source.name} has {many(len(truth), 'image')}"
        )
    rows = torch.arange(len(truth))
    if data.task.in_class_order:
        rows = torch.randperm(len(truth), generator=generator(seed, "answers"))
    rows = rows[: answers or None].sort().values
    labels = simulate_labels(
        truth[rows],
        len(data.task.classes),
        seed=seed,
        setting=setting,
        true_count=true_count,
        label_noise=label_noise,
    )
    kinds, classes = np.zeros(len(truth), labels.kinds.dtype), np.full(len(truth), NO_LABEL)
    kinds[rows], classes[rows] = labels.kinds, labels.classes
    padded = replace(labels, kinds=kinds, classes=classes, weights=np.ones(len(truth), np.float32))
    test = data.target.x_test, data.target.y_test
    return TrainData.of(padded, data.source.x_train, target_images=data.target.x_train, test=test)
