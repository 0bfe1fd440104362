"""Transition matrices: Q[y, k] = P(complementary label = k | true class = y), given or estimated."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.training_data import check_labels
from clarinet.recipes.counting import many, there_are
from clarinet.recipes.errors import DataError


def uniform_transition(num_classes: int, *, label_noise: float = 0.0) -> Tensor:
    """(K, K) float64: each wrong class alike, and the true one with probability `label_noise`."""
    wrong = (1 - torch.eye(num_classes, dtype=torch.float64)) / (num_classes - 1)
    return _with_noise(wrong, label_noise)


def transition_of_questions(
    complementary: Tensor,
    class_shares: Tensor,
    *,
    weights: Tensor | None = None,
    label_noise: float = 0.0,
) -> Tensor:
    """Estimate Q from how often each class is named, for questions that prefer classes but look at no image.

    Asked with probabilities r_k, an image of class y gets the label k with r_k / (1 - r_y). "Not k" is said
    with probability r_k (1 - pi_k). Hence r_k is proportional to named_k / (1 - pi_k). Of the images that got
    a label, those of class k are in the proportion pi_k (1 - r_k). Where a share rho of the labels names the
    true class instead,

        Z named_k = (1 - rho) r_k (1 - pi_k) + rho pi_k (1 - r_k),    Z = 1 - sum_j r_j pi_j,

    which is linear in r_k for a given Z, and Z follows from sum_k r_k = 1. Nothing here can see choices that
    depend on the image or its class, nor how many answers are wrong; see `estimate_transition`.

    Args:
        complementary: (N,) int64 complementary labels in [0, K).
        class_shares: (K,) pi_k, each below 1 - label_noise, summing to 1.
        weights: (N,) >= 0, how much each label counts; None counts them alike.
        label_noise: share of labels that name the true class.

    Returns:
        (K, K) float64 on the CPU, rows sum to 1. Each class counts as named once more than it is, so that no
        label is impossible.

    Raises:
        DataError: a class has too large a share for its questions to be told from the rest.
    """
    shares = class_shares.double().cpu()
    told = 1 - label_noise - shares  # (K,)
    if bool((told <= 0).any()):
        raise DataError(
            f"class_shares has {float(shares.max()):.3g} for class {int(shares.argmax())}, which questions "
            f"cannot tell at a label_noise of {label_noise}; give shares below {1 - label_noise:.3g}"
        )
    trust = torch.ones(len(complementary)) if weights is None else weights.cpu()
    counts = torch.bincount(complementary.cpu(), trust.double(), minlength=len(shares)) + 1  # (K,)
    named = counts / counts.sum()
    asked_in_all = (1 + (label_noise * shares / told).sum()) / (named / told).sum()  # Z
    asked = (asked_in_all * named - label_noise * shares) / told  # (K,) r_k
    asked = asked.clamp(min=float(1 / counts.sum()))  # by chance even fewer than its wrong answers alone
    asked = asked / asked.sum()
    matrix = asked.expand(len(shares), -1) * (1 - torch.eye(len(shares), dtype=torch.float64))
    return _with_noise(matrix / matrix.sum(1, keepdim=True), label_noise)


def estimate_transition(
    class_probabilities: Tensor,
    complementary: Tensor,
    *,
    weights: Tensor | None = None,
    confidence: float = 0.9,
    prior_count: float = 1.0,
) -> Tensor:
    """Count which complementary labels the images of each class got.

    One-hot rows come from examples of which both is known: a yes and a no, gold answers, images labelled
    twice. Then this is the maximum-likelihood matrix, whatever made the labels: uneven questions, classes
    that people take for each other, wrong answers (the diagonal).

    With a network's probabilities it rests on anchors, the images whose class the network is sure of. Their
    classes must be right, which the labels cannot confirm. The diagonal then also holds errors of the
    network. Sure images may be the easy ones, which are answered better than the rest. A network that has
    learnt its labels by heart finds no wrong ones. So predict on images that it was not trained on, or with
    an averaged network early in the run.

    Args:
        class_probabilities: (N, K), rows sum to 1.
        complementary: (N,) int64 complementary labels in [0, K).
        weights: (N,) >= 0, how much each label counts; None counts them alike.
        confidence: rows whose largest probability is below it are left out.
        prior_count: labels of each class that are made up, uniform over the wrong ones; what is left of a
            class without anchors, and keeps every wrong class possible.

    Returns:
        (K, K) float64 on the CPU, rows sum to 1.

    Raises:
        DataError: lengths differ, a label out of range, or a prior_count that is not above 0.

    Source: Yu et al., Learning with Biased Complementary Labels, 2018, section 4.2.
    """
    if len(class_probabilities) != len(complementary):
        raise DataError(
            f"{there_are(len(class_probabilities), 'prediction')} for "
            f"{many(len(complementary), 'complementary label')}"
        )
    num_classes = class_probabilities.shape[-1]
    check_labels("complementary", complementary, count=len(complementary), lowest=0, num_classes=num_classes)
    if not prior_count > 0:
        raise DataError(f"prior_count is {prior_count}; it must be above 0, for classes without any label")
    probabilities = class_probabilities.double().cpu()
    num_classes = probabilities.shape[1]
    trust = torch.ones(len(complementary)) if weights is None else weights.cpu()
    trust = trust.double() * (probabilities.amax(1) >= confidence)  # (N,)
    labels = F.one_hot(complementary.cpu(), num_classes).double()  # (N, K)
    counts = (trust[:, None] * probabilities).T @ labels  # (K, K)
    counts = counts + prior_count * uniform_transition(num_classes)
    return counts / counts.sum(1, keepdim=True)


def _with_noise(matrix: Tensor, label_noise: float) -> Tensor:
    """Let a share of the labels name the true class, and the others be as in the matrix."""
    return (1 - label_noise) * matrix + label_noise * torch.eye(len(matrix), dtype=torch.float64)
