"""How many steps an epoch has, and how many labels a step."""

from typing import Any

import pytest
import torch

from clarinet import config_for
from clarinet.data.domains import prepare
from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.recipes.lengths import batch_size, steps_in_epoch
from clarinet.run import objective
from clarinet.run.building import build_networks
from tests.clarinet.factories import make_config, make_data


@pytest.mark.parametrize(
    ("changes", "labels", "target", "steps"),
    [
        ({"steps_per_epoch": 7}, 1000, 9, 7),
        ({"steps_per_epoch": 0}, 1000, 900, 100),  # one pass over the larger
        ({"steps_per_epoch": 0}, 900, 1001, 101),
        ({"steps_per_epoch": 0, "step_share": 0.02}, 1000, 900, 50),  # one pass in batches of 20
    ],
)
def test_an_epoch_is_as_long_as_its_labels_ask(
    changes: dict[str, Any], labels: int, target: int, steps: int
) -> None:
    config = config_for("clarinet-plus", "digits-quick", epochs=10, batch_size=10, **changes)

    assert steps_in_epoch(config, labels, target) == steps


@pytest.mark.parametrize(
    ("labels", "changes", "size"),
    [
        (57_000, {}, 128),  # MNIST, less what is held out
        (64_000, {}, 128),
        (64_001, {}, 129),
        (455_430, {}, 911),  # SYN-DIGITS
        (10_000_000, {}, 4096),
        (455_430, {"batch_size": 1024}, 1024),
        (455_430, {"step_share": 0.0}, 128),
        (455_430, {"architecture": "resnet18"}, 128),
    ],
)
def test_a_step_takes_its_share_of_a_large_source(labels: int, changes: dict[str, Any], size: int) -> None:
    assert batch_size(config_for("clarinet-plus", **changes), labels) == size


@pytest.mark.parametrize(
    ("changes", "size"), [({}, 16), ({"step_share": 0.1}, 19), ({"step_share": 0.5}, 95)]
)
def test_labels_and_target_come_in_such_batches(changes: dict[str, Any], size: int) -> None:
    data, config = make_data(200), make_config(**changes)  # 190 labels train
    domains = prepare(data, config, torch.device("cpu"))
    networks = build_networks(config, domains, torch.device("cpu"))
    taken: list[tuple[int, int]] = []
    for part in networks.classifier, networks.averaged, networks.encoder:
        assert part is not None
        part.register_forward_pre_hook(lambda _, given: taken.append((len(given[0]), int(given[1]))))
    step = objective.Objective(config, domains, networks, steps=12, epoch_steps=4)

    step.losses(0)  # two views of two batches
    step.find_neighbours()
    taken_before = taken[0]
    taken.clear()
    step.losses(11)

    assert taken_before == (64, SOURCE)
    assert sorted(taken) == [(size, SOURCE), (size, TARGET), (size, TARGET)]
