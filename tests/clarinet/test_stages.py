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
        ({"steps_per_epoch": 7, "epoch_share": 0.2}, 350, 9, 7),  # 70 labels are a fifth
        ({"steps_per_epoch": 7, "epoch_share": 0.2}, 351, 9, 8),
        ({"steps_per_epoch": 7, "epoch_share": 0.2}, 1000, 9, 20),
        ({"steps_per_epoch": 0, "epoch_share": 0.2}, 1000, 900, 100),
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
    assert steps_in_epoch(config, syn_digits, 60_000) == 375  # batches of 128: 48,000 of 479,400 labels


def test_a_run_with_many_labels_takes_more_steps() -> None:
    data = make_data(200)  # of which 190 train
    config = make_config(epoch_share=0.5)  # 95 labels in batches of 16

    assert train(config, data).steps == 3 * 6
