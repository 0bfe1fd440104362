"""Prediction and scores. Networks predict in eval mode and float32, always."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.feeding import Pixels, StreamedImages, parts
from clarinet.data.images import normalised, resized
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import SUM_TOLERANCE, check_images
from clarinet.networks.classifier import TARGET, Classifier, Domain
from clarinet.recipes.binomial import Interval, share_interval
from clarinet.recipes.counting import many, there_are
from clarinet.recipes.doing import OnPart, silently
from clarinet.recipes.errors import DataError
from clarinet.recipes.source_accuracy import accuracy_interval
from clarinet.run.results import TrainResult

BATCH = 512  # images predicted at once
BATCH_PIXELS = 2**21  # or fewer of them, if they are large


def predict(
    model: Classifier | TrainResult,
    images: Tensor | ImageStream,
    *,
    domain: Domain = TARGET,
    on_part: OnPart = silently,
) -> Tensor:
    """Class probabilities of images of any size.

    Args:
        model: a classifier or the result of `train`.
        images: uint8, (N, H, W) or (N, H, W, 3), or a stream of such; N may be 0. A network for grey images
            sees those in colour as its spec's `greying` says.
        domain: whose batch statistics to use, where the network keeps them.
        on_part: called after some of them, again and again.

    Returns:
        (N, K) float32 on the CPU, rows sum to 1.

    Raises:
        DataError: the images have another type or shape.
    """
    check_images("images", images, least=0)
    network = model if isinstance(model, Classifier) else model.model
    if len(images) == 0:  # which interpolation would refuse
        return torch.empty(0, network.spec.num_classes)
    device = next(network.parameters()).device
    pixels = (
        resized(images, network.spec, on_part=on_part)
        if isinstance(images, Tensor)
        else StreamedImages(images, network.spec, device)
    )
    return predict_resized(network, pixels, domain=domain, on_part=on_part)


def predict_resized(
    network: Classifier, images: Pixels, *, domain: Domain, on_part: OnPart = silently
) -> Tensor:
    """`predict` for images already in the network's size and channels: uint8 (N, C, S, S)."""

    def probabilities(pixels: Tensor) -> Tensor:
        logits: Tensor = network(pixels, domain)[1]
        return logits.softmax(1)

    return in_batches(network, images, probabilities, columns=network.spec.num_classes, on_part=on_part)


def in_batches(
    network: Classifier,
    images: Pixels,
    of: Callable[[Tensor], Tensor],
    *,
    columns: int,
    on_part: OnPart = silently,
) -> Tensor:
    """What the network makes of images, some at a time, in eval mode and without gradients.

    Args:
        network: left in the mode in which it was.
        images: in its size and channels, uint8 (N, C, S, S).
        of: float (B, columns) of normalised images (B, C, S, S).
        columns: of what it gives.
        on_part: called after each batch.

    Returns:
        (N, columns) float32 on the CPU.
    """
    was_training = network.training
    device = next(network.parameters()).device
    size = max(1, min(BATCH, BATCH_PIXELS // network.spec.image_size**2))
    network.eval()
    found, done = torch.empty(len(images), columns), 0
    with torch.inference_mode():
        for batch in parts(images, size):
            pixels = normalised(batch.to(device).float() / 255, network.spec.input_normalisation)
            found[done : done + len(batch)] = of(pixels).cpu()
            done += len(batch)
            on_part()
    network.train(was_training)
    return found


@dataclass(frozen=True, slots=True)
class Scores:
    """Accuracy in [0, 1], per class (None without images of it), and counts [true class][predicted class]."""

    accuracy: float
    per_class: list[float | None]
    confusion: list[list[int]]


def score(predicted: Tensor, labels: Tensor, num_classes: int) -> Scores:
    """Compare (N,) predicted classes with (N,) true ones, N >= 1."""
    cells = torch.bincount(labels.cpu() * num_classes + predicted.cpu(), minlength=num_classes**2)
    table = cells.reshape(num_classes, num_classes)  # (K, K)
    totals = table.sum(1)
    return Scores(
        accuracy=float(table.diagonal().sum() / table.sum()),
        per_class=[
            float(hit / total) if total else None
            for hit, total in zip(table.diagonal().tolist(), totals.tolist(), strict=True)
        ],
        confusion=table.tolist(),
    )


def accuracy_from_complementary(
    predicted: Tensor,
    complementary: Tensor,
    num_classes: int,
    *,
    weights: Tensor | None = None,
    images: Tensor | None = None,
    label_noise: float = 0.0,
) -> Interval | None:
    """Estimate the accuracy from labels that say what an image is not.

    A wrong prediction hits the complementary label with probability 1/(K-1), a right one never; hence
    accuracy = 1 - (K-1) * share of hits. Where a share rho of the labels is wrong and names the true class,
    right predictions hit it too, rho of them, and wrong ones (1-rho)/(K-1); hence

        accuracy = (1 - rho - (K-1) share) / (1 - K rho),

    where rho comes from elsewhere, as from questions whose answer is known: estimated from predictions it
    reads the same share the other way round. With rho left at 0, wrong labels make the accuracy seem lower,
    by rho (K accuracy - 1).

    All this is for uniform labels. For questions drawn with recorded probabilities q it holds with weights
    1/q: a no that hits has expectation 1 (wrong) or 0 (right), any no has K - 1. Else a network that has
    learnt to avoid the class that is named too often seems too good.

    The interval is that of Clopper and Pearson for the share of hits, turned into accuracies. The number of
    hits is binomial, and its share near 0, where the intervals that rest on a standard error, Wilson's too,
    hold the truth too seldom; this one holds it at least as often as it says. Weighted labels, and several on
    an image, count as so many of equal weight as have the same standard error (`effective_count`). Estimate
    and ends are clipped to [0, 1]: the share of few labels may lie beyond what any accuracy gives.

    Args:
        predicted: (N,) classes.
        complementary: (N,) classes that the images are not, N may be 0.
        num_classes: K.
        weights: (N,) >= 0, how much each label counts; None counts them alike.
        images: (N,) int64, the image of each label, on which the hits of several labels hang together; None
            where each label has an image of its own.
        label_noise: rho, the share by these weights.

    Returns:
        Estimate and 95 % interval in [0, 1], or None without labels that count, or where so many of them are
        wrong (rho >= 1/K) that they say nothing.

    Raises:
        DataError: predictions, labels and weights differ in number.
    """
    found = _hit_share(predicted, complementary, weights, images)
    if found is None:
        return None
    return accuracy_interval(*found, num_classes=num_classes, label_noise=label_noise)


def label_noise_from_predictions(
    predicted: Tensor,
    complementary: Tensor,
    num_classes: int,
    *,
    accuracy: float = 1.0,
    weights: Tensor | None = None,
    images: Tensor | None = None,
) -> Interval | None:
    """Estimate which share of the complementary labels names the true class.

    With a share rho of wrong labels and predictions of accuracy a, both independent of the image's class, a
    prediction equals the label with probability

        share = rho a + (1 - rho) m,  m = (1 - a) / (K - 1),    so    rho = (share - m) / (a - m).

    What it cannot do: `accuracy` must be known from elsewhere, from true labels. Errors of the network and of
    people look alike here, and `accuracy_from_complementary` reads the same share the other way round. An
    accuracy taken too high makes rho too large. On labels that the network was trained on, rho comes out too
    small once it has learnt to avoid wrong ones too. On labels held out this does not happen.

    Args:
        predicted: (N,) classes.
        complementary: (N,) classes that people say the images are not, N may be 0.
        num_classes: K.
        accuracy: a, of the predictions on these images; above 1/K.
        weights: (N,) >= 0, how much each label counts; None counts them alike.
        images: (N,) int64, the image of each label; None where each label has an image of its own.

    Returns:
        Estimate and 95 % interval in [0, 1], which is that of `accuracy_from_complementary` for the share of
        hits; None without labels that count.

    Raises:
        DataError: the accuracy is not above that of guessing, or lengths differ.
    """
    if not 1 / num_classes < accuracy <= 1:
        raise DataError(
            f"accuracy is {accuracy}; noise shows only in predictions better than guessing (1/{num_classes})"
        )
    found = _hit_share(predicted, complementary, weights, images)
    if found is None:
        return None
    hits, missed = share_interval(*found), (1 - accuracy) / (num_classes - 1)
    ends = ((end - missed) / (accuracy - missed) for end in (hits.value, hits.low, hits.high))
    return Interval(*(min(max(end, 0.0), 1.0) for end in ends))


def _hit_share(
    predicted: Tensor, labels: Tensor, weights: Tensor | None, images: Tensor | None
) -> tuple[float, float] | None:
    """Weighted share of predictions that equal the label, and its standard error.

    The error is the larger of two. One is that of a share among so many labels of equal weight, smoothed
    because a share of 0 has an error too. The other is that of the images' deviations, for hits that come
    together: several on an image, or on heavy labels.
    """
    trust = torch.ones(len(labels)) if weights is None else weights.cpu()
    if not len(predicted) == len(labels) == len(trust):
        raise DataError(
            f"{there_are(len(predicted), 'prediction')}, {many(len(labels), 'label')} and "
            f"{many(len(trust), 'weight')}; expected as many of each"
        )
    trust = trust.double()
    total = float(trust.sum())
    if total == 0:
        return None
    hits = (predicted.cpu() == labels.cpu()).double()  # (N,)
    share = min(float((trust * hits).sum()) / total, 1.0)  # the two sums round differently
    count = total**2 / float(trust.square().sum())  # labels of equal weight that would tell as much
    # One success and one failure more than seen: an error of exactly 0 at no hits would be a lie.
    smoothed = (share * count + 1) / (count + 2)
    variance = smoothed * (1 - smoothed) / count
    deviations = trust * (hits - share) / total  # (N,)
    if images is not None:
        _, image = torch.unique(images.cpu(), return_inverse=True)
        deviations = torch.zeros_like(deviations).index_add_(0, image, deviations)
    return share, math.sqrt(max(variance, float(deviations.square().sum())))


def information(probabilities: Tensor) -> float:
    """Entropy of the mean prediction less the mean entropy of the predictions, in nats.

    Large when each image is classified surely and all classes are used; needs no labels. It is the criterion
    that information maximisation trains on, and a network that is surely wrong scores as well as a right one.

    Args:
        probabilities: (N, K), rows sum to 1, N >= 1.

    Returns:
        Between 0 and log K.

    Raises:
        DataError: no rows, or rows that are no probabilities.
    """
    if not len(probabilities) or float((probabilities.sum(-1) - 1).abs().max()) > SUM_TOLERANCE:
        raise DataError("information needs rows of probabilities that sum to 1; `predict` gives such")
    mean, single = probabilities.double().mean(0), probabilities.double()
    entropies = torch.special.entr(single).sum(1)  # (N,)
    return float(torch.special.entr(mean).sum() - entropies.mean())


def agreement(first: Tensor, second: Tensor) -> float:
    """Share of images that two predictions (N, K) put in the same class, N >= 1; needs no labels.

    Of an averaged network and the one in training it shows whether the run has settled. It does not notice
    that two classes have merged, in which both agree; the smallest predicted share does.

    Args:
        first, second: (N, K) scores or probabilities of the same images.

    Returns:
        In [0, 1].

    Raises:
        DataError: no rows, or as many of each do not stand beside each other.
    """
    if first.shape != second.shape or not len(first):
        raise DataError(
            f"predictions of shape {tuple(first.shape)} and {tuple(second.shape)}; "
            "expected two of the same images"
        )
    return float((first.argmax(1) == second.argmax(1)).double().mean())
