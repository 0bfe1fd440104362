"""Losses on labels: pure functions of logits, in float32 or wider, each with its weights.

`weights` (N,) are normalised so that the batch's labels count equally when all are 1.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.recipes.choices import SecondTermPrior


def one_hot(labels: Tensor, num_classes: int) -> Tensor:
    """(N, K) bool of (N,) labels, all false for -1; unlike torch's it looks at no value and never waits."""
    return labels[:, None] == torch.arange(num_classes, device=labels.device)


def class_proportions(labels: Tensor, weights: Tensor, num_classes: int) -> Tensor:
    """The weighted share of each label, pi_k: (K,) of (N,) labels and weights, N >= 1."""
    return (weights[:, None] * one_hot(labels, num_classes)).sum(0) / weights.sum()


def per_class_complementary_risk(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor,
    proportions: Tensor | None = None,
    *,
    second_term_prior: SecondTermPrior = "label",
) -> Tensor:
    """Split the unbiased complementary risk by class.

        risk_k = sum_j pi_j mean_j l(k) - (K - 1) pi_k mean_k l(k),

    with l(k) = -log softmax(logits)_k. mean_j is the mean over the images with complementary label j, by
    weight: sum_i w_i l_i(k) / sum_i w_i. The printed formula sums over n_j equal images and divides by n_j.

    Let each complementary label be uniform over the K - 1 wrong classes. Then the sum over classes, with the
    batch's own proportions, is an unbiased estimate of the cross-entropy risk. Single entries can be
    negative.

    With the proportions of the data set it is not quite unbiased. A label absent from the batch loses its
    term pi_j * mean_j. So the expectation over batches of n is sum_j (1 - (1 - pi_j)^n) term_j. With
    equal shares and n = 128 that is about a millionth too little at K = 10 and 28 % too little at K = 100.

    They are still the better choice where absence is rare. The losses of an untrained network are all alike.
    Then no entry is negative as long as every pi_k < 1/(K - 1) and no label is absent. Uniform labels have
    pi_k = (1 - share of class k) / (K - 1), which is below that. The batch's own shares exceed it by chance:
    for some class in nearly every batch of 128 at K = 10. The correction then trains towards the
    complementary labels.

    Args:
        logits: (N, K) scores before softmax.
        labels: (N,) int64 complementary labels in [0, K).
        weights: (N,) >= 0, not all 0.
        proportions: (K,) share pi_k of each complementary label; None takes the batch's own.
        second_term_prior: "label" weighs the second term of eq. E2 by pi_j of the image's label; "class" by
            pi_k of the class whose risk it is, as the published code does, which is biased.

    Returns:
        (K,) risk per class, in nats.

    Source: Zhang et al., Learning from a Complementary-label Source Domain, eq. (E2).
    """
    num_classes = logits.shape[1]
    loss = -F.log_softmax(logits, dim=1)  # (N, K) loss had class k been the truth
    given = one_hot(labels, num_classes).to(loss.dtype)  # (N, K)
    share = weights / weights.sum()  # (N,) equals pi_j / n_j for the batch's own pi
    mass = (share[:, None] * given).sum(0)  # (K,) the batch's own pi
    in_group = 1 / mass.clamp(min=torch.finfo(mass.dtype).tiny)  # (K,)
    if proportions is not None:
        share = share * (proportions * in_group)[labels]
    second = share.to(loss.dtype) @ loss  # (K,)
    if second_term_prior == "class":
        pi = mass if proportions is None else proportions
        second = pi * ((weights / weights.sum() * in_group[labels]).to(loss.dtype) @ loss)
    return second - (num_classes - 1) * (share[:, None] * given * loss).sum(0)


def corrected_objective(risk: Tensor, ascent_weights: Tensor | None = None) -> Tensor:
    """Descend the risk, or ascend its negative parts when any class has fitted below zero.

    Minimising this takes the same step as negating the gradients after a backward pass, without touching
    them.

    Args:
        risk: (K,) per-class risk.
        ascent_weights: (K,) >= 0 by which the negative parts are multiplied; None means 1, as in the paper.

    Returns:
        () objective to minimise. Its value is not the risk; report `risk.sum()`.

    Source: Zhang et al., eq. (E3) and Algorithm 1, lines 7-13.
    """
    negative = risk.clamp(max=0)
    ascended = negative if ascent_weights is None else ascent_weights * negative
    return torch.where((risk < 0).any(), -ascended.sum(), risk.sum())


def true_label_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean cross-entropy.

    Args:
        logits: (N, K) scores before softmax.
        labels: (N,) int64 true classes.
        weights: (N,) >= 0, not all 0.

    Returns:
        () loss in nats.

    Source: Zhang et al., section 4.3, L_true of PC-UDA.
    """
    return (weights * F.cross_entropy(logits, labels, reduction="none")).sum() / weights.sum()


def bounded_complementary_loss(
    logits: Tensor, labels: Tensor, weights: Tensor, *, label_noise: float
) -> Tensor:
    """Weighted mean of -log((1 - rho) (1 - p) / (K - 1) + rho p), p being that of the complementary label.

    The negative log-likelihood of the answer when a share rho of the complementary labels names the true
    class. With rho = 0 it is -log(1 - p) up to a constant; with rho > 0 no single wrong label can cost more
    than -log rho.

    Args:
        logits: (N, K) scores before softmax.
        labels: (N,) int64 complementary labels.
        weights: (N,) >= 0, not all 0.
        label_noise: rho in [0, 1).

    Returns:
        () loss in nats, at least 0 up to rounding, with the constant log(K - 1) taken out.
    """
    num_classes = logits.shape[1]
    log_p = F.log_softmax(logits, dim=1)  # (N, K)
    given = one_hot(labels, num_classes)  # (N, K)
    # log(1 - p) as a sum over the other classes: 1 - exp(log p) loses every digit when p is near 1.
    log_rest = log_p.masked_fill(given, -torch.inf).logsumexp(1)  # (N,)
    likelihood = log_rest
    if label_noise > 0:
        log_given = log_p.gather(1, labels[:, None]).squeeze(1)  # (N,)
        honest = torch.as_tensor(1 - label_noise, dtype=log_p.dtype).log()
        wrong = torch.as_tensor(label_noise * (num_classes - 1), dtype=log_p.dtype).log()
        likelihood = torch.logaddexp(log_rest + honest, log_given + wrong)  # (N,)
    return -(weights * likelihood).sum() / weights.sum()


def estimated_class_ceiling(complementary: Tensor, weights: Tensor, num_classes: int) -> Tensor:
    """An upper bound of each class's share, from how often it is named as complementary.

    A class with share pi_k is named with probability (1 - pi_k) / (K - 1).

    Args:
        complementary: (N,) int64 complementary labels, N may be 0.
        weights: (N,) >= 0, times 1/q for questions drawn with probabilities q.
        num_classes: K.

    Returns:
        (K,) float32 estimate plus two standard errors, in [0, 1]; 1 where nothing is known.
    """
    if len(complementary) == 0:
        return torch.ones(num_classes, device=complementary.device)
    share = weights.double() / weights.double().sum()  # (N,)
    named = torch.bincount(complementary, share, minlength=num_classes)  # (K,)
    squares = torch.bincount(complementary, share.square(), minlength=num_classes)  # (K,)
    # Of sum share (1(label = k) - named_k): the labels k deviate by 1 - named_k, the others by named_k.
    error = (squares * (1 - named).square() + (squares.sum() - squares) * named.square()).sqrt()
    return (1 - (num_classes - 1) * (named - 2 * error)).clamp(0, 1).float()


def class_floor_loss(logits: Tensor, floor: Tensor) -> Tensor:
    """What a batch pays for classes that it predicts less often than their floor; 0 when there is none.

    Never predicting a class contradicts no complementary label, so with few labels whole classes die out.
    The loss is the part of KL(floor || mean prediction) that belongs to such classes.

    Args:
        logits: (N, K).
        floor: (K,) least share of each class, in (0, 1/K].

    Returns:
        () loss in nats, >= 0.
    """
    log_share = F.log_softmax(logits, dim=1).logsumexp(0) - math.log(len(logits))  # (K,)
    return (floor * (floor.log() - log_share).clamp(min=0)).sum()


def without_classes(logits: Tensor, excluded: Tensor) -> Tensor:
    """Probabilities after some classes of each row have been ruled out.

    Args:
        logits: (N, K).
        excluded: (N, M) int64 classes ruled out, -1 for none; a row that loses every class keeps them all.

    Returns:
        (N, K), rows sum to 1.
    """
    num_classes = logits.shape[1]
    ruled_out = torch.zeros(len(logits), num_classes + 1, dtype=torch.bool, device=logits.device)
    ruled_out.scatter_(1, excluded.remainder(num_classes + 1), value=True)  # -1 falls into the last column
    ruled_out = ruled_out[:, :num_classes]  # (N, K)
    ruled_out = ruled_out & ~ruled_out.all(1, keepdim=True)  # people contradict each other
    return logits.masked_fill(ruled_out, -torch.inf).softmax(1)
