"""Where a network places images: its features, and the directions in which these vary most."""

from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.feeding import Pixels, StreamedImages
from clarinet.data.images import resized
from clarinet.data.seeding import generator
from clarinet.data.streams import ImageStream
from clarinet.networks.classifier import Classifier, Domain
from clarinet.networks.heads import CommonSpaceHead
from clarinet.recipes.doing import OnPart, silently
from clarinet.run.evaluation import in_batches

STREAM = "feature map"  # of the draw
SAMPLE_SEED = 0  # the same for all seeds of a run: their maps show the same images


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Principal components.

    Args:
        places: (N, C) float32, of mean 0, the first component varies most.
        shares: (C,) float64 of the variance that each has, in falling order.
    """

    places: Tensor
    shares: Tensor


def sample_rows(count: int, *, most: int) -> Tensor:
    """(R,) int64 rows in rising order, at most so many of them: all, or a draw that is always the same."""
    order = torch.randperm(count, generator=generator(SAMPLE_SEED, STREAM))
    return order[:most].sort().values


def pixels_at(
    model: Classifier, images: Tensor | ImageStream, rows: Tensor, *, on_part: OnPart = silently
) -> Pixels:
    """Some images as a network takes them.

    Args:
        model: a classifier.
        images: uint8, (N, H, W) or (N, H, W, 3), or a stream of such.
        rows: (R,) int64, R >= 1.
        on_part: called after some of a tensor.
    """
    if isinstance(images, Tensor):
        return resized(images[rows.to(images.device)], model.spec, on_part=on_part)
    return StreamedImages(images, model.spec, next(model.parameters()).device)[rows]


def features_of(model: Classifier, images: Pixels, *, domain: Domain, on_part: OnPart = silently) -> Tensor:
    """The features from which the classes are read off: (N, D) float32 on the CPU.

    Behind kept features these are the places in the space that both domains share.

    Args:
        model: a classifier.
        images: from `pixels_at`.
        domain: whose they are.
        on_part: called after some of them, again and again.
    """
    head = model.predictor

    def features(pixels: Tensor) -> Tensor:
        found = model.features_of(pixels, domain)
        return head.placed(found) if isinstance(head, CommonSpaceHead) else found

    return in_batches(model, images, features, columns=head.in_features, on_part=on_part)


def principal_components(features: Tensor, *, most: int) -> Components:
    """Principal components of features (N, D), on the CPU and in double precision.

    Equal features give equal bytes: each direction points to where its largest entry is positive. Features
    that vary in fewer directions have zeros in the components beyond these; there are two at least.
    """
    centred = features.double() - features.double().mean(0)
    count, width = centred.shape
    # The smaller of both products has the same eigenvalues; the other's vectors follow from its own.
    if width <= count:
        values, vectors = torch.linalg.eigh(centred.T @ centred)  # in rising order
        directions = vectors
    else:
        values, vectors = torch.linalg.eigh(centred @ centred.T)
        directions = centred.T @ vectors / values.clamp(min=torch.finfo().tiny).sqrt()
    values, directions = values.flip(0).clamp(min=0), directions.flip(1)
    kept = min(most, len(values))
    is_there = values[:kept] > values.max() * 1e-12
    directions = directions[:, :kept] * is_there
    if len(directions):
        largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
        directions = directions * torch.where(largest < 0, -1.0, 1.0)
    total = values.sum()
    shares = values[:kept] * is_there / total if float(total) > 0 else torch.zeros(kept).double()
    lacking = max(0, 2 - kept)
    return Components(
        places=torch.nn.functional.pad(centred @ directions, (0, lacking)).float(),
        shares=torch.nn.functional.pad(shares, (0, lacking)),
    )
