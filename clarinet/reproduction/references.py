"""What true labels are worth on a frozen backbone: the references beside runs of photographs.

The *source head* learns from the true classes of all images of the source and scores on all of the target.
The *ceiling* learns from the true classes of two thirds of the target's images, and scores on each third one.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.feeding import pixels_of
from clarinet.networks.classifier import SOURCE, spec_for
from clarinet.recipes.config import TrainConfig
from clarinet.reproduction.tasks import Task, load_task
from clarinet.run.building import build_network
from clarinet.run.features import features_by_chunks

PENALTY = 1e-3  # on half the squared weights, beside the mean cross-entropy
ITERATIONS = 200  # of L-BFGS, at most
THIRD = 3  # of each so many images of the target one scores the ceiling


def head_accuracy(train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], num_classes: int) -> float:
    """The accuracy in [0, 1] of a multinomial logistic regression.

    Args:
        train, test: features (N, D), which are standardised by those of `train`, and classes (N,).
        num_classes: K.
    """
    features, classes = train
    mean, spread = features.mean(0), features.std(0, correction=0).clamp(min=1e-6)
    inputs = (features - mean) / spread
    weight = torch.zeros(num_classes, features.shape[1], requires_grad=True)
    bias = torch.zeros(num_classes, requires_grad=True)
    search = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        search.zero_grad()
        loss = F.cross_entropy(F.linear(inputs, weight, bias), classes)
        loss = loss + PENALTY / 2 * weight.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]  # of torch
        return loss.item()

    search.step(closure)  # type: ignore[no-untyped-call]  # of torch
    with torch.no_grad():
        told = F.linear((test[0] - mean) / spread, weight, bias).argmax(1)
    return float((told == test[1]).float().mean())


def references(tasks: list[Task], folder: Path, config: TrainConfig) -> Mapping[str, tuple[float, float]]:
    """The source head and the ceiling of each task, in [0, 1], by its name.

    Args:
        tasks: pairs whose target scores on images in the order of their names.
        folder: where their data is.
        config: names the backbone, its trained weights and the images' size.

    Raises:
        DataError, ConfigError: no data, or no weights.
    """
    known: dict[str, Tensor] = {}
    found = {}
    for task in tasks:
        data = load_task(task, folder)
        of_source = _features(known, task.source, data.source.x_train, config, len(task.classes))
        assert data.target.x_test is not None
        assert data.target.y_test is not None
        of_target = _features(known, task.target, data.target.x_test, config, len(task.classes))
        classes = data.target.y_test
        by_source = head_accuracy(
            (of_source, data.source.y_train), (of_target, classes), num_classes=len(task.classes)
        )
        third = torch.arange(len(classes)) % THIRD == THIRD - 1
        ceiling = head_accuracy(
            (of_target[~third], classes[~third]), (of_target[third], classes[third]), len(task.classes)
        )
        found[task.name] = by_source, ceiling
    return found


def _features(
    known: dict[str, Tensor], name: str, images: Tensor, config: TrainConfig, num_classes: int
) -> Tensor:
    """(N, D) of a domain, computed once."""
    if name not in known:
        device = torch.device("cpu")
        spec = spec_for(config, colour=True, num_classes=num_classes)
        network, _ = build_network(spec, config, device, None)
        pixels = pixels_of(images, spec, device)
        known[name] = torch.cat(list(features_by_chunks(network.eval(), pixels, SOURCE, device)))
    return known[name].clone()  # out of inference mode
