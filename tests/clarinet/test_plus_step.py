"""The parts of a step that `clarinet-plus` has and the paper has not, each recomputed apart from the code."""

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.data.digits import distortion_of, drawn_factors, recoloured
from clarinet.data.domains import Domains, prepare
from clarinet.data.feeding import taken
from clarinet.data.images import normalised
from clarinet.data.seeding import Shuffle, generator
from clarinet.data.training_data import TrainData
from clarinet.losses.complementary import class_proportions, per_class_complementary_risk
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.layers import DomainBatchNorm
from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.choices import Architecture, Precision
from clarinet.recipes.config import TrainConfig
from clarinet.run.graphs import updates_of
from clarinet.run.objective import Networks, Objective
from clarinet.run.resuming import RunState, restore, save
from clarinet.run.training import build_networks, build_optimizer, train_step
from tests.clarinet.factories import NUM_CLASSES, make_config, make_data

CPU = torch.device("cpu")
STEP = 3
STEPS = 20


def make_objective(
    data: TrainData | None = None, *, gain: float = 1.0, **changes: Any
) -> tuple[Objective, Domains, Networks]:
    """A student, and a teacher initialised apart; no dropout, and no distortion unless `changes` say so.

    The larger the gain, the surer both are of their classes.
    """
    plain: dict[str, Any] = {"pretraining": 0.0, "augmentation": 0.0, "held_out_share": 0.0}
    config = make_config(**{"precision": "float32"} | plain | changes)
    domains = prepare(data or make_data(), config, CPU)
    student, teacher = (
        build_networks(dataclasses.replace(config, seed=seed), domains, CPU).classifier.eval()
        for seed in (0, 1)
    )
    draws = generator(0, "statistics")
    for network in (student, teacher):
        network.predictor.weight.data *= gain
        for statistics in network.buffers():
            statistics.add_(torch.rand(statistics.shape, generator=draws))  # unlike in each domain
    networks = Networks(student, teacher, None)
    return Objective(config, domains, networks, steps=STEPS, epoch_steps=4), domains, networks


def rows_of(count: int, stream: str, *, batch_size: int = 16, step: int = STEP) -> Tensor:
    """The rows that a step takes of all of them."""
    return Shuffle(count, batch_size=batch_size, seed=0, stream=f"shuffle/{stream}").batch(step)


def logits_of(network: Classifier, pixels: Tensor, domain: Domain) -> Tensor:
    with torch.no_grad():
        logits: Tensor = network(normalised(pixels, "instance"), domain)[1]
    return logits


def pseudo_label_loss(logits: Tensor, probabilities: Tensor, weights: Tensor | None = None) -> Tensor:
    """Image by image: what is not above 0.9 costs nothing, and counts in the weighted mean."""
    costs = [0.0] * len(logits)
    shares = [1.0] * len(logits) if weights is None else weights.tolist()
    for row, (own, said) in enumerate(zip(logits.tolist(), probabilities.tolist(), strict=True)):
        label = said.index(max(said))
        if said[label] > 0.9:
            costs[row] = shares[row] * float(F.cross_entropy(torch.tensor(own), torch.tensor(label)))
    assert 0 < sum(cost > 0 for cost in costs) < len(costs)
    return torch.tensor(sum(costs) / sum(shares))


@pytest.mark.parametrize("kind", ["source", "target"])
@pytest.mark.parametrize(
    ("step", "length", "share"),
    [
        (7, 0.25, 0.0),
        (8, 0.25, 0.2),  # the first of the five steps in which it rises
        (10, 0.25, 0.6),
        (12, 0.25, 1.0),
        (19, 0.25, 1.0),
        (7, 0.0, 0.0),
        (8, 0.0, 1.0),
    ],
)
def test_self_training_rises_from_its_start_to_its_weight(
    kind: Literal["source", "target"], step: int, length: float, share: float
) -> None:
    changes: dict[str, Any] = {
        f"{kind}_self_training_start": 0.4,
        f"{kind}_self_training_weight": 0.7,
        "self_training_ramp": length,
        "confidence": 0.0,
    }
    never = {"source_self_training_start": 1.0, "target_self_training_start": 1.0}
    with_it, without = (make_objective(**more)[0] for more in (never | changes, changes | never))

    loss, reported = with_it.losses(step)

    own = reported[f"{kind}_self_training"]
    assert bool(own > 0) is (share > 0)
    torch.testing.assert_close(loss - without.losses(step)[0], share * 0.7 * own, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("step", "start", "full", "share"),
    [
        (0, 0.2, 0.6, 0.0),
        (4, 0.2, 0.6, 0.0),
        (6, 0.2, 0.6, 0.2),
        (8, 0.2, 0.6, 0.4),
        (12, 0.2, 0.6, 0.8),
        (19, 0.2, 0.6, 0.8),
        (1, 0.0, 0.0, 0.8),
    ],
)
def test_a_rising_share_of_the_source_is_distorted(
    step: int, start: float, full: float, share: float
) -> None:
    objective, domains, networks = make_objective(
        augmentation=0.8, augmentation_start=start, augmentation_full=full, batch_size=96, moment_match=False
    )
    seen: list[Tensor] = []
    networks.classifier.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    clean = taken(domains.source, rows_of(96, "complementary", batch_size=96, step=step)).float() / 255
    chosen = torch.rand(96, generator=generator(0, f"augment/complementary/{step}")) < share

    objective.losses(step)

    distorted = (seen[0] != normalised(clean, "instance")).flatten(1).any(1)
    assert torch.equal(distorted, chosen)


@pytest.mark.parametrize("colour", [False, True])
def test_the_student_learns_on_distorted_targets_what_the_teacher_says_of_clean_ones(colour: bool) -> None:
    objective, domains, networks = make_objective(
        make_data(colour_target=colour),
        gain=400.0,
        target_self_training_start=0.0,
        augmentation=0.85,
        background_blending=False,  # which would take the place of the recolouring
    )
    clean = taken(domains.target, rows_of(96, "target")).float() / 255
    draws = generator(0, f"augment/target/{STEP}")
    chosen = torch.rand(16, generator=draws) < 0.85
    distorted = distortion_of(objective.config)(clean, chosen, draws)
    if colour:
        distorted = recoloured(distorted, drawn_factors(chosen, 3, draws))
    probabilities = logits_of(networks.averaged, clean, TARGET).softmax(1)
    logits = logits_of(networks.classifier, distorted, TARGET)

    _, reported = objective.losses(STEP)

    expected = pseudo_label_loss(logits, probabilities)
    torch.testing.assert_close(reported["target_self_training"], expected)


def test_the_neighbours_classes_are_learned_sharpened_where_they_are_sure() -> None:
    image_of = torch.arange(95, -1, -1)
    weights = 0.5 + torch.arange(96) % 3 / 2  # mean 1
    data = dataclasses.replace(make_data(), example=image_of, weights=weights)
    objective, domains, networks = make_objective(data, neighbour_weight=0.7)
    # Sharpened, 0.49 of 0.54 and 0.36 of 0.46: of these only the first is above 0.9.
    agreed = torch.tensor([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.02, 0.02, 0.96]])
    objective.neighbours = NeighbourLabels(agreed.repeat(32, 1), label_noise=0.05)
    rows = rows_of(96, "complementary")
    logits = logits_of(networks.classifier, taken(domains.source, image_of[rows]).float() / 255, SOURCE)
    sharpened = torch.tensor([[0.01, 0.49, 0.04], [0.36, 0.09, 0.01], [0.0004, 0.0004, 0.9216]])
    said = (sharpened / sharpened.sum(1, keepdim=True))[image_of[rows] % 3]
    p = logits.softmax(1)[torch.arange(16), data.complementary[rows]]
    costs = -(0.95 * (1 - p) + 0.05 * (NUM_CLASSES - 1) * p).log()
    complementary = (weights[rows] * costs).sum() / weights[rows].sum()

    loss, reported = objective.losses(STEP)

    neighbours = pseudo_label_loss(logits, said, weights[rows])
    torch.testing.assert_close(reported["neighbours"], neighbours)
    torch.testing.assert_close(reported["complementary"], complementary)
    torch.testing.assert_close(loss, complementary + 0.7 * neighbours)


# Half of all labels are class 0, a quarter each of the others; asked twice as often, that says nothing of it.
@pytest.mark.parametrize(("asked", "named"), [(None, 0.5), ((0.5, 0.25, 0.25), 1 / 3)])
def test_classes_below_their_floor_cost_what_their_labels_allow(
    asked: tuple[float, ...] | None, named: float
) -> None:
    labels = torch.arange(96) % 4 % 3  # 0, 1, 2, 0, ...
    asked_with = None if asked is None else torch.tensor(asked)[labels]
    data = dataclasses.replace(make_data(), complementary=labels, probabilities=asked_with)
    objective, domains, networks = make_objective(data, gain=60.0, class_floor=0.5, class_floor_weight=0.7)
    rows = rows_of(96, "complementary")
    p = logits_of(networks.classifier, taken(domains.source, rows).float() / 255, SOURCE).softmax(1)
    complementary = -(1 - p[torch.arange(16), labels[rows]]).log().mean()
    # Each of the 48 labels of class 0 is named/48 of all, and deviates by 1 - named.
    error = (named**2 / 48 * (1 - named) ** 2 + (1 - named) ** 2 / 48 * named**2) ** 0.5
    rare = min((1 - 2 * (named - 2 * error)) / 2, 0.5 / 3)
    floors = (rare, 0.5 / 3, 0.5 / 3)

    loss, reported = objective.losses(STEP)

    shares = p.mean(0).tolist()
    below = [f * (math.log(f) - math.log(q)) for f, q in zip(floors, shares, strict=True) if q < f]
    assert shares[0] < rare
    torch.testing.assert_close(reported["class_floor"], torch.tensor(sum(below)))
    torch.testing.assert_close(loss, complementary + 0.7 * sum(below))


@pytest.mark.parametrize("told", [0.0, 0.05])
def test_neighbours_that_agree_on_no_class_have_no_say(told: float) -> None:
    """Nor do they tell the share of wrong labels: then the config's counts."""
    objective, domains, networks = make_objective(neighbour_weight=0.7, label_noise=told)
    sure = torch.tensor([[0.0, 0.02, 0.98]])  # the few that seem to agree are not to be believed either
    objective.neighbours = NeighbourLabels(sure.repeat(96, 1), label_noise=None)
    rows = rows_of(96, "complementary")
    logits = logits_of(networks.classifier, taken(domains.source, rows).float() / 255, SOURCE)
    p = logits.softmax(1)[torch.arange(16), domains.complementary[rows]]

    loss, reported = objective.losses(STEP)

    assert float(reported["neighbours"]) == 0
    likelihood = (1 - told) * (1 - p) + told * (NUM_CLASSES - 1) * p
    torch.testing.assert_close(loss, -likelihood.log().mean())


def test_the_source_learns_from_the_teacher_what_the_answers_leave_open() -> None:
    image_of = torch.arange(96) % 64  # half of the images have two answers, alike or not
    weights = 0.5 + torch.arange(96) % 3 / 2  # mean 1
    data = dataclasses.replace(make_data(colour_target=True), example=image_of, weights=weights)
    objective, domains, networks = make_objective(data, gain=400.0, source_self_training_start=0.0)
    rows = rows_of(96, "complementary")
    images = image_of[rows]
    pixels = taken(domains.source, images).float() / 255
    left = logits_of(networks.averaged, pixels, SOURCE).softmax(1)
    for row, image in enumerate(images.tolist()):
        left[row, data.complementary[image_of == image]] = 0
    logits = logits_of(networks.classifier, pixels, SOURCE)

    _, reported = objective.losses(STEP)

    expected = pseudo_label_loss(logits, left / left.sum(1, keepdim=True), weights[rows])
    torch.testing.assert_close(reported["source_self_training"], expected)


def make_run(config: TrainConfig, **data: Any) -> tuple[RunState, Objective]:
    """As `train` begins."""
    domains = prepare(make_data(**data), config, CPU)
    networks = build_networks(config, domains, CPU)
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks))
    return state, Objective(config, domains, networks, steps=12, epoch_steps=4)


def test_the_teacher_follows_weights_and_statistics_faster_at_first() -> None:
    config = make_config(pretraining=0.0, averaging=0.15, warmup=0.0)
    state, objective = make_run(config, colour_target=True)
    student, teacher = state.networks.classifier, state.networks.averaged
    expected = {name: value.clone() for name, value in student.state_dict().items()}
    initial = dict(expected)

    for kept in (1 / 10, 0.15):  # (1 + step) / (10 + step) until that is 2/11, above the config's
        train_step(config, state, objective, 12, updates_of(objective, state.optimizer))
        for name, value in student.state_dict().items():
            expected[name] = kept * expected[name] + (1 - kept) * value
        for name, value in teacher.state_dict().items():
            torch.testing.assert_close(value, expected[name])

    moved = {name for name, value in student.state_dict().items() if not torch.equal(value, initial[name])}
    assert {"extractor.first.weight", "extractor.norms.0.mean", "extractor.norms.0.variance"} <= moved


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_networks_multiply_in_the_configs_precision_and_losses_stay_in_float32(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    config = make_config("clarinet", precision=precision)
    state, objective = make_run(config)
    state.step = 4  # the first with an adversary
    networks, domains = state.networks, objective.domains
    assert networks.discriminator is not None
    multiplied: list[torch.dtype] = []
    for module in [*networks.classifier.modules(), *networks.discriminator.modules()]:
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(lambda _, __, out: multiplied.append(out.dtype))
    outputs: list[tuple[Tensor, Tensor]] = []
    networks.classifier.register_forward_hook(lambda _, __, out: outputs.append(out))

    train_step(config, state, objective, 12, updates_of(objective, state.optimizer))

    assert multiplied == [torch.bfloat16 if precision == "bfloat16" else torch.float32] * (4 + 3)
    ((features, logits),) = outputs
    assert features.dtype == logits.dtype == torch.float32
    rows = domains.complementary_rows
    proportions = class_proportions(domains.complementary[rows], torch.ones(len(rows)), NUM_CLASSES)
    labels = domains.complementary[rows[rows_of(len(rows), "complementary", step=4)]]
    risk = per_class_complementary_risk(logits[:16].detach(), labels, torch.ones(16), proportions).sum()
    torch.testing.assert_close(state.totals["complementary"], risk)  # rounded to bfloat16 it is not
    assert {total.dtype for total in state.totals.values()} == {torch.float32}


@pytest.mark.parametrize(
    ("architecture", "batch_norm", "passes", "statistics"),
    [
        ("dtn", True, [(16, SOURCE), (16, TARGET)], {2}),
        ("dtn", False, [(32, SOURCE)], {1}),
        ("lenet", True, [(32, SOURCE)], set()),
    ],
)
def test_domains_share_a_pass_unless_normalisation_keeps_them_apart(
    architecture: Architecture, batch_norm: bool, passes: list[tuple[int, Domain]], statistics: set[int]
) -> None:
    config = make_config("clarinet", architecture=architecture, batch_norm=batch_norm)
    state, objective = make_run(config)
    classifier = state.networks.classifier
    seen: list[tuple[int, Domain]] = []
    classifier.register_forward_pre_hook(lambda _, inputs: seen.append((len(inputs[0]), inputs[1])))

    objective.losses(4)  # the first with an adversary

    assert seen == passes
    norms = [module for module in classifier.modules() if isinstance(module, DomainBatchNorm)]
    assert {len(norm.mean) for norm in norms} == statistics


def test_neighbours_without_a_say_stay_so_through_a_checkpoint(tmp_path: Path) -> None:
    config = make_config()
    state, _ = make_run(config)
    state.neighbours = NeighbourLabels(torch.full((96, NUM_CLASSES), 1 / NUM_CLASSES), label_noise=None)
    resumed, _ = make_run(config)

    save(tmp_path / "checkpoint", state, config, "digest")
    restore(tmp_path / "checkpoint", resumed, config, "digest")

    assert resumed.neighbours is not None
    assert resumed.neighbours.label_noise is None
