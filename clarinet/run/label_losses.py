"""The losses for labels that are not uniform, put to a step's batch with what a run knows of its labels."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.batches import SourceBatch
from clarinet.data.domains import Domains
from clarinet.data.transitions import transition_of_questions, uniform_transition
from clarinet.files.names import NO_LABEL
from clarinet.losses.complementary import class_proportions, corrected_objective, true_label_loss
from clarinet.losses.nonuniform import (
    corrected_scarce_objective,
    forward_complementary_loss,
    per_class_question_risk,
    scarce_risks,
)
from clarinet.recipes.config import TrainConfig

NON_UNIFORM = ("forward", "scarce", "inverse")  # the complementary losses of this module


@dataclass(frozen=True, slots=True, eq=False)
class LabelFacts:
    """What these losses must know of the labels as a whole; shares are by weight.

    Args:
        proportions: (K,) share of each complementary label among those that train.
        presence: (K,) how often a batch has each complementary label at all.
        answered_no: share of the complementary labels among all labels, true ones and held-out ones too.
        counted_no: the same in the pc setting, 1 in the cc setting, which counts no image with a yes.
        class_shares: (K,) share of each class in the source.
        transition: (K, K) P(complementary = k | true = y), given or estimated from the proportions.
    """

    proportions: Tensor
    presence: Tensor
    answered_no: float
    counted_no: float
    class_shares: Tensor
    transition: Tensor

    @classmethod
    def of(cls, config: TrainConfig, domains: Domains, batch_size: int) -> "LabelFacts":
        """Of a run; on its device. There must be complementary labels to train on.

        Raises:
            DataError: the loss needs a transition matrix that cannot be estimated from these class shares.
        """
        num_classes, weights = domains.spec.num_classes, domains.weights
        labels, trust = domains.complementary[domains.complementary_rows], weights[domains.complementary_rows]
        equal = torch.full((num_classes,), 1 / num_classes)
        shares = equal if domains.class_shares is None else domains.class_shares
        transition = domains.transition
        if transition is None:
            transition = uniform_transition(num_classes)
            if config.losses.complementary_loss == "forward":
                transition = transition_of_questions(
                    labels, shares, weights=trust, label_noise=config.losses.label_noise
                )
        answers_no = float(weights[domains.complementary != NO_LABEL].sum())
        answers_yes = float(weights[domains.true != NO_LABEL].sum())
        answered_no = answers_no / (answers_no + answers_yes)
        return cls(
            proportions=class_proportions(labels, trust, num_classes),
            presence=presence_in_batches(labels, num_classes, batch_size),
            answered_no=answered_no,
            counted_no=answered_no if len(domains.true_rows) else 1.0,
            class_shares=shares.to(weights.device, torch.float32),
            transition=transition.to(weights.device, torch.float32),
        )


def complementary_loss(
    config: TrainConfig, facts: LabelFacts, parts: list[SourceBatch], logits: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """The objective on the complementary labels of a step, and the loss to show: () each.

    Args:
        config: whose complementary_loss is one of `NON_UNIFORM`.
        facts: of the run.
        parts: the batch of complementary labels, and that of true ones where they are used.
        logits: (B, K) of each part.
    """
    part = parts[0]
    if config.losses.complementary_loss == "forward":
        loss = forward_complementary_loss(logits[0], part.complementary, part.weights, facts.transition)
        return loss, loss
    if config.losses.complementary_loss == "scarce":
        shares = (facts.counted_no, 1 - facts.counted_no)
        weights = [
            share * part.weights / part.weights.sum() for share, part in zip(shares, parts, strict=False)
        ]
        of_class, of_others = scarce_risks(
            torch.cat(logits),
            torch.cat([part.complementary for part in parts]),  # -1 in the part of true labels
            torch.cat(weights),
            facts.class_shares,
            facts.proportions * facts.counted_no,
        )
        return corrected_scarce_objective(of_class, of_others), (of_class + of_others).sum()
    shares_of_labels = with_proportions(part.complementary, part.weights, facts.proportions, facts.presence)
    # Their sum is 1 on average only, and the risk is a mean by weights.
    scale = facts.answered_no * shares_of_labels.sum()
    risk = scale * _answer_risk(logits[0], part, part.complementary, shares_of_labels, yes=False)  # (K,)
    return corrected_objective(risk), risk.sum()


def presence_in_batches(labels: Tensor, num_classes: int, batch_size: int) -> Tensor:
    """How often a batch of `Shuffle` has each label at all.

    Within a pass no row comes twice: B rows of L lack all L_k of a class in (L - L_k choose B) of
    (L choose B) cases. A batch that ends one pass and begins the next lacks it in both parts.

    Args:
        labels: (L,) int64 in [0, K), L >= 1.
        num_classes: K.
        batch_size: B; larger than L means L.

    Returns:
        (K,) in [0, 1], float32 on the device of the labels.
    """
    count = len(labels)
    drawn = min(batch_size, count)
    others = count - torch.bincount(labels, minlength=num_classes).double().cpu()  # (K,)

    def absent(rows: Tensor) -> Tensor:
        """(K, R) for (R,) numbers of rows."""
        total = torch.tensor(float(count), dtype=torch.float64)
        left = others[:, None] - rows
        logs = (others + 1).lgamma()[:, None] - (left + 1).clamp(min=1).lgamma()
        logs = logs - (total + 1).lgamma() + (total - rows + 1).lgamma()
        return torch.where(left >= 0, logs.exp(), 0.0)

    # Batches begin at the multiples of this in a pass, all of them equally often.
    stride = math.gcd(count, drawn)
    parts = torch.arange(stride, drawn, stride, dtype=torch.float64)  # rows that a pass has left
    whole = count // stride - len(parts)
    lacking = whole * absent(torch.tensor([float(drawn)], dtype=torch.float64)).squeeze(1)
    lacking += (absent(parts) * absent(drawn - parts)).sum(1)
    return (1 - lacking * stride / count).float().to(labels.device)


def with_proportions(labels: Tensor, weights: Tensor, proportions: Tensor, presence: Tensor) -> Tensor:
    """The share of each label of a batch, such that every class keeps on average its share of the data set.

    By the weights alone chance would name some class more often than uniform labels could: in nearly every
    batch, most of all where 1/q is large. Its risk would be negative, and the correction would do nothing but
    ascend. A class that batches often lack has a larger share in the others.

    Args:
        labels: (N,) int64 in [0, K).
        weights: (N,) >= 0, not all 0.
        proportions: (K,) share of each label, by weight.
        presence: (K,) how often a batch has the label, from `presence_in_batches`.

    Returns:
        (N,) shares, whose sum is 1 over all batches on average.
    """
    mass = torch.zeros_like(proportions).index_add_(0, labels, weights)  # (K,)
    tiny = torch.finfo(mass.dtype).tiny
    return weights * (proportions / presence.clamp(min=tiny) / mass.clamp(min=tiny))[labels]


def true_loss(config: TrainConfig, facts: LabelFacts, part: SourceBatch, logits: Tensor) -> Tensor:
    """The loss on true labels that goes with `complementary_loss`; each alone estimates the same risk.

    Args:
        config: of the run; its losses.
        facts: of the labels as a whole.
        part: B images with true labels.
        logits: (B, K) of these.

    Returns:
        () loss in nats.
    """
    if config.losses.complementary_loss == "inverse":
        risk = _answer_risk(logits, part, part.true, part.weights, yes=True)  # (K,)
        return (1 - facts.answered_no) * risk.sum()
    return true_label_loss(logits, part.true, part.weights)


def _answer_risk(logits: Tensor, part: SourceBatch, classes: Tensor, weights: Tensor, *, yes: bool) -> Tensor:
    """(K,) inverse-probability risk of answers of one kind."""
    assert part.probabilities is not None  # data without them is refused before a run starts
    answers = torch.full_like(classes, yes, dtype=torch.bool)
    return per_class_question_risk(
        logits,
        classes,
        answers,
        weights,
        part.probabilities,
        yes_share=float(yes),
        excluded=part.excluded,
    )
