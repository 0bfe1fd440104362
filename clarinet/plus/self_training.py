"""Learning from pseudo-labels: those of the averaged network, and those of similar images."""

import torch.nn.functional as F
from torch import Tensor

from clarinet.losses.adaptation.adversary import log_sharpened
from clarinet.plus.votes import NeighbourLabels

CONFIDENCE = 0.9  # probability above which a class becomes a pseudo-label
SOURCE_WEIGHT, TARGET_WEIGHT = 0.5, 1.0  # of the losses; the source has labels of its own as well
RAMP = 0.075  # share of the run over which a loss rises to its weight: a teacher that begins knows little
NEIGHBOUR_SHARPENING = 0.5  # temperature of what neighbours say: 3/4 against one other class is then 0.9


def risen(step: int, steps: int, start: float) -> float:
    """How far self-training has risen at a step: 0 until start, a share of the run, then rising to 1."""
    progress = step / steps
    if progress < start:
        return 0.0
    return min(1.0, (progress - start + 1 / steps) / RAMP)


def pseudo_label_loss(logits: Tensor, probabilities: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean of the cross-entropy towards the likeliest class, 0 for images where that is not sure.

    Args:
        logits: (B, K) of the network that learns.
        probabilities: (B, K) of whoever teaches.
        weights: (B,) >= 0, not all 0.

    Returns:
        () loss in nats.
    """
    confidence, labels = probabilities.max(1)  # (B,), (B,)
    sure = (confidence > CONFIDENCE).to(logits.dtype)
    return (weights * sure * F.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()


def share_of_sure(probabilities: Tensor) -> float:
    """Of which share of images (M, K) the likeliest class is sure enough to be a pseudo-label."""
    return float((probabilities.max(1).values > CONFIDENCE).double().mean())


def neighbour_loss(neighbours: NeighbourLabels, images: Tensor, logits: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy towards the class on which an image's neighbours agree, sharpened, where they do.

    Args:
        neighbours: of all source images.
        images: (B,) int64, which of them.
        logits, weights: as in `pseudo_label_loss`.

    Returns:
        () loss in nats; 0 where neighbours agree on nothing.
    """
    if neighbours.label_noise is None:
        return logits.new_zeros(())
    agreed = neighbours.probabilities[images]  # (B, K)
    return pseudo_label_loss(logits, log_sharpened(agreed.log(), NEIGHBOUR_SHARPENING).exp(), weights)
