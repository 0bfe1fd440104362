"""Whether the labels are what the setting and the losses of a config need."""

import warnings

import torch
from torch import Tensor

from clarinet.data.training_data import TrainData
from clarinet.data.uniformity import Uniformity, check_uniformity
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import DataError, NonUniformLabels
from clarinet.recipes.rules import check_label_count, check_named_classes

TAKE_UNIFORM = ("unbiased", "bounded")  # the complementary losses that are right for uniform labels only


def check_labels_fit(
    data: TrainData, config: TrainConfig, complementary_rows: Tensor, true_rows: Tensor
) -> None:
    """Refuse labels from which nothing can be learnt, by the rows that train.

    Raises:
        DataError: the setting or the complementary loss needs what is not there, or all labels say the same.
    """
    if len(complementary_rows) == 0 and config.losses.complementary_loss != "none":
        raise DataError("no complementary label is left to train on; collect 'no' answers first")
    if config.setting == "pc" and len(true_rows) == 0:
        raise DataError(
            "the pc setting needs true labels, and there are none; use cc with a method that learns from "
            "complementary labels, or collect 'yes' answers"
        )
    check_label_count(len(complementary_rows) + len(true_rows), data.num_classes)
    named = torch.unique(data.complementary[complementary_rows])
    learns_from_noes = config.losses.complementary_loss != "none"
    # Pseudo-labels of one class are what the first step learned; its run ends and shows it.
    if learns_from_noes or not data.pseudo_labelled:
        check_named_classes(config.losses, named.tolist(), torch.unique(data.true[true_rows]).tolist())
    if learns_from_noes:
        _check_needs_of_loss(data, config.losses.complementary_loss, named)


def _check_needs_of_loss(data: TrainData, loss: str, named: Tensor) -> None:
    if loss == "inverse" and data.probabilities is None:
        raise DataError(
            "complementary_loss inverse needs the probabilities with which the questions were drawn; "
            "give them, or choose another loss"
        )
    if loss == "forward" and data.transition is not None:
        impossible = data.transition.float().cpu()[:, named].amax(0) == 0  # as the loss will have it
        if bool(impossible.any()):
            raise DataError(
                f"transition says that class {int(named[impossible][0])} is never a complementary label, "
                "but some label names it"
            )


def uniformity_of(data: TrainData, config: TrainConfig) -> Uniformity | None:
    """The test of the complementary labels, with a warning where it matters to the training.

    Where no complementary label trains it tells whether the held-out ones estimate anything, which needs no
    test where the probabilities of the questions are known.
    """
    if config.losses.complementary_loss == "none" and data.probabilities is not None:
        return None
    found = check_uniformity(data.complementary, data.true, data.num_classes, weights=data.weights)
    unequal = data.probabilities is not None and bool(data.probabilities.min() < data.probabilities.max())
    # By equal probabilities the inverse is the unbiased risk of uniform labels.
    taken: tuple[str, ...] = (*TAKE_UNIFORM, "inverse") if not unequal else TAKE_UNIFORM
    if unequal and config.setting == "pc":
        taken = ("unbiased",)  # the likelihood of yes and no answers does not depend on how they were drawn
    if found is not None and found.is_rejected and config.losses.complementary_loss in taken:
        # SCARCE needs the images of a yes as well, which the cc setting leaves out.
        losses = "forward or scarce" if config.setting == "pc" else "forward"
        # Weights beside known probabilities would correct for the same thing twice.
        if unequal:
            losses += ", or inverse, as their probabilities are known"
        elif data.probabilities is None:
            losses += ", or give weights"
        sentence = (
            f"the complementary labels are not uniform over the wrong classes (p = {found.p_value:.1g}; "
            f"class {found.most_named} is named most); choose complementary_loss {losses}"
        )
        warnings.warn(sentence, NonUniformLabels, stacklevel=3)
    return found
