"""How many steps an epoch has."""

from typing import Any

import pytest

from clarinet import config_for, train
from clarinet.stages import steps_in_epoch
from tests.clarinet.factories import make_config, make_data


@pytest.mark.parametrize(
    ("changes", "labels", "target", "steps"),
    [
        ({"steps_per_epoch": 7}, 1000, 9, 7),
        ({"steps_per_epoch": 0}, 1000, 900, 100),  # one pass over the larger
        ({"steps_per_epoch": 0}, 900, 1001, 101),
        ({"steps_per_epoch": 7, "label_passes": 2.0}, 100, 9, 7),  # 70 steps see each label 7 times
        ({"steps_per_epoch": 7, "label_passes": 2.0}, 400, 9, 8),  # 80 steps of 10: twice
        ({"steps_per_epoch": 7, "label_passes": 2.0}, 401, 9, 9),
        ({"steps_per_epoch": 7, "label_passes": 2.0, "pretraining": 0.2}, 400, 9, 10),  # in 8 epochs of 10
    ],
)
def test_an_epoch_is_as_long_as_its_labels_ask(
    changes: dict[str, Any], labels: int, target: int, steps: int
) -> None:
    config = config_for("clarinet-plus", "quick", epochs=10, batch_size=10, **changes)

    assert steps_in_epoch(config, labels, target) == steps


def test_the_default_has_its_4000_steps_for_all_but_large_sources() -> None:
    config = config_for("clarinet-plus")
    svhn, syn_digits = 73_257, 479_400

    assert config.epochs * steps_in_epoch(config, round(0.95 * svhn), 60_000) == 4_000
    assert steps_in_epoch(config, syn_digits, 60_000) == 441  # 34 epochs of 441 batches of 128: 4.002 times


def test_a_run_with_many_labels_takes_more_steps() -> None:
    data = make_data(200)  # of which 190 train
    config = make_config(label_passes=8.0)  # 1 epoch of 3 pretrains, 2 learn from batches of 16

    result = train(config, data)

    assert result.steps == 3 * 48
