"""Labels that a trained network gives to the source: between the two steps, or shared by several methods.

    labels = pseudo_labels(train(config_for("gac"), data), data.source_images)
    for method in ("dan", "dann", "cdan_e"):
        train(config_for(method), with_pseudo_labels(data, labels, setting="cc"))

gives what "gac+dan" and the others give with the same seed and as many epochs, but trains GAC once.
"""

from dataclasses import replace

import torch
from torch import Tensor

from clarinet.data.domains import asked_again, in_unit
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData
from clarinet.data.uniformity import check_uniformity
from clarinet.files.names import NO_LABEL
from clarinet.networks.classifier import SOURCE, Classifier
from clarinet.recipes.choices import Setting
from clarinet.recipes.doing import OnPart, silently
from clarinet.recipes.errors import DataError
from clarinet.run.evaluation import predict
from clarinet.run.results import TrainResult


def pseudo_labels(
    model: Classifier | TrainResult, images: Tensor | ImageStream, *, on_part: OnPart = silently
) -> Tensor:
    """The class that a model predicts for each source image, always in eval mode.

    The published code made them with dropout on, which costs ten points on USPS -> MNIST.

    Args:
        model: a classifier or the result of `train`.
        images: uint8, (N, H, W) or (N, H, W, 3), of the source, or a stream of such.
        on_part: called after some of them, again and again.

    Returns:
        (N,) int64 on the CPU.

    Raises:
        DataError: the images have another type or shape.
    """
    return predict(model, images, domain=SOURCE, on_part=on_part).argmax(1)


def with_pseudo_labels(data: TrainData, labels: Tensor, *, setting: Setting) -> TrainData:
    """The same domains, every source image with a true label: a pseudo-label, or the one it has in pc.

    Train an ordinary method ("dan", "dann", "cdan_e") on it, which takes the setting pc. A pseudo-label
    weighs 1, a given true label what it weighed against the mean of all labels. Those methods learn from no
    complementary label. The held-out ones still estimate the accuracy, by the probabilities of their
    questions or as uniform ones. They are left out where neither is possible.

    Args:
        data: the data that the labels were made for.
        labels: (N,) int64 in [0, K), from `pseudo_labels`, one for each source image.
        setting: cc ignores true labels in the data, pc keeps them as they are.

    Raises:
        DataError: another number of labels, another type, or a label out of range.
    """
    count = len(data.source_images)
    if labels.shape != (count,) or labels.dtype != torch.int64:
        raise DataError(
            f"pseudo-labels have type {labels.dtype} and shape {tuple(labels.shape)}; "
            f"expected torch.int64 and ({count},), one for each source image"
        )
    example = torch.arange(count) if data.example is None else data.example.cpu()  # (L,)
    complementary, weights = data.complementary.cpu(), data.weights.cpu()
    candidates = (complementary != NO_LABEL) & ~asked_again(data)  # (L,)
    classes, trust = labels.cpu().clone(), torch.ones(count)  # (N,), (N,)
    if setting == "pc":
        known = (data.true.cpu() != NO_LABEL) & (weights > 0)  # (L,)
        if data.held_out is not None:
            known &= ~torch.isin(example, example[data.held_out.cpu() & (weights > 0)])
        given = known.nonzero().squeeze(1)
        classes[example[given]] = data.true.cpu()[given]
        trust[example[given]] = in_unit(weights[given], weights[weights > 0].double().mean())
        candidates &= ~torch.isin(example, example[given])
    kept = candidates.nonzero().squeeze(1)  # (R,) labels that may be held out
    if data.probabilities is not None:
        asked = data.probabilities.cpu()  # (L,)
    else:
        # Asked here, as pseudo-labels must not be taken for the true ones of a random part of the images.
        found = check_uniformity(complementary, data.true, data.num_classes, weights=weights)
        if found is not None and found.is_rejected:
            kept = kept[:0]
        asked = torch.full((len(complementary),), 1 / data.num_classes)
    return replace(
        data,
        complementary=torch.cat([torch.full((count,), NO_LABEL), complementary[kept]]),
        true=torch.cat([classes, torch.full((len(kept),), NO_LABEL)]),
        weights=torch.cat([trust, weights[kept]]),
        example=torch.cat([torch.arange(count), example[kept]]),
        held_out=(
            None
            if data.held_out is None
            else torch.cat([torch.zeros(count, dtype=torch.bool), data.held_out.cpu()[kept]])
        ),
        probabilities=torch.cat([torch.ones(count), asked[kept]]),
        excluded=None,
        pseudo_labelled=True,
    )
