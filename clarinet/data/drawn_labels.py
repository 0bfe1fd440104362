"""Complementary labels: simulated from true ones, and checked."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.data.training_data import check_tensor
from clarinet.files.label_table import Labels
from clarinet.recipes.choices import Setting
from clarinet.recipes.counting import many
from clarinet.recipes.errors import DataError


def simulate_labels(
    true_labels: Tensor,
    num_classes: int,
    *,
    seed: int,
    setting: Setting,
    true_count: int = 1000,
    questions: bool = False,
    asked: Sequence[float] | None = None,
    label_noise: float = 0.0,
) -> Labels:
    """Draw the labels that people, or the paper's protocol, would give.

    The paper's protocol gives every image one complementary label, uniform over its K - 1 wrong classes. This
    is its unbiased assumption, P(complementary = k | x) = sum over c != k of P(true = c | x) / (K - 1). In
    the pc setting `true_count` random images have their true label instead. With `questions` each image is
    asked one question. Its class is drawn uniformly over all K, or with the shares `asked`. A yes is a true
    label, a no a complementary one.

    Args:
        true_labels: (N,) int64.
        num_classes: K >= 2.
        seed: every draw is a function of it.
        setting: cc or pc.
        true_count: true labels of the pc setting; ignored for cc and with `questions`.
        questions: draw as yes/no questions instead of by the paper's protocol.
        asked: K numbers above 0, how often the questions ask about each class relative to the others; None
            asks about all alike. Only with `questions`.
        label_noise: probability that a complementary label names the true class.

    Raises:
        DataError: labels of another type or shape, or a label or count out of range.
    """
    check_tensor("true_labels", true_labels)
    if true_labels.ndim != 1 or true_labels.dtype != torch.int64:
        # A column (N, 1) would broadcast against the rows of draws to N x N labels.
        raise DataError(
            f"true labels have type {true_labels.dtype} and shape {tuple(true_labels.shape)}; "
            "expected torch.int64 and (N,)"
        )
    if num_classes < 2 or not 0 <= label_noise <= 1:  # noqa: PLR2004 - with one class nothing is wrong
        raise DataError(f"num_classes {num_classes} must be at least 2 and label_noise {label_noise} in 0..1")
    if bool(((true_labels < 0) | (true_labels >= num_classes)).any()):
        raise DataError(f"true labels must lie in 0..{num_classes - 1}")
    if setting not in get_args(Setting):
        raise DataError(f"setting is {setting!r}; it must be one of {', '.join(get_args(Setting))}")
    shares = _shares(asked, num_classes) if questions else None
    count = len(true_labels)
    draws = generator(seed, "labels")
    offsets = torch.randint(1, num_classes, (count,), generator=draws)
    complementary = (true_labels + offsets) % num_classes
    known = torch.zeros(count, dtype=torch.bool)
    if shares is not None and asked is not None:
        complementary = torch.multinomial(shares, count, replacement=True, generator=draws)
        known = complementary == true_labels
    wrong = torch.rand(count, generator=draws) < label_noise
    complementary = torch.where(wrong, true_labels, complementary)
    if questions and asked is None:
        # Uniform over K is: the true class with 1/K, else uniform over the others.
        known = torch.randint(0, num_classes, (count,), generator=draws) == 0
    elif setting == "pc" and not questions:
        if not 0 < true_count < count:
            raise DataError(
                f"{many(count, 'image')} and {many(true_count, 'true label')} asked for; images must have "
                f"labels of both kinds, so true_count (--true-labels) must lie between 1 and {count - 1:,}"
            )
        known[torch.randperm(count, generator=draws)[:true_count]] = True
    classes = torch.where(known, true_labels, complementary)
    return Labels(
        kinds=known.to(torch.uint8).numpy(),  # TRUE is 1
        classes=classes.numpy(),
        weights=np.ones(count, np.float32),
        num_classes=num_classes,
        probabilities=None if shares is None else shares.float()[classes].numpy(),
    )


def _shares(asked: Sequence[float] | None, num_classes: int) -> Tensor:
    """(K,) float64 probabilities with which a question asks about each class."""
    given = torch.ones(num_classes) if asked is None else torch.tensor(asked)
    shares = given.double()
    if len(shares) != num_classes or not bool(((shares > 0) & torch.isfinite(shares)).all()):
        raise DataError(f"asked is {asked}; it must be {num_classes} numbers above 0, one for each class")
    return shares / shares.sum()
