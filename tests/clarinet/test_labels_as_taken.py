"""`clarinet train --labels` with the noes before a yes: what weighs by 1/q takes them, nothing else does."""

from argparse import Namespace

import numpy as np
import pytest
import torch

from clarinet import config_for
from clarinet.commands.inputs import Inputs
from clarinet.commands.labels import train_data
from clarinet.files.label_table import LabelRow, Labels


@pytest.mark.parametrize(("loss", "noes"), [("inverse", 2), ("bounded", 1)])
def test_only_the_loss_by_inverse_probabilities_takes_noes_beside_a_yes(loss: str, noes: int) -> None:
    rows = [
        LabelRow(0, "complementary", 0, 1.0, probability=1 / 3),
        LabelRow(0, "true", 2, 1.0, probability=0.7, excluded=(0,)),
        LabelRow(1, "complementary", 1, 1.0, probability=1 / 3),
    ]
    images = torch.zeros((2, 4, 4), dtype=torch.uint8)
    inputs = Inputs(
        source={"x_train": images},
        target={"x_train": images + 1},
        labels=Labels.of(rows, num_classes=3),
        num_classes=3,
        class_names=None,
    )
    arguments = Namespace(
        labels="labels.csv", label_seed=None, questions=False, label_noise=0, asked=None, true_labels=0
    )
    config = config_for("clarinet-plus", setting="pc", complementary_loss=loss)

    data = train_data(arguments, config, inputs)

    assert int((data.complementary >= 0).sum()) == noes
    assert int(np.sum(data.true.numpy() >= 0)) == 1
