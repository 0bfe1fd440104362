"""Where the paper and its published code differ: the presets of that name, pinned row by row.

The rows are those of the table of differences: what the paper says, what the code does, what we do.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet import TrainConfig, TrainData, config_for, predict, pseudo_labels, train
from clarinet.data.batches import Batches
from clarinet.data.domains import Domains, prepare
from clarinet.data.inputs import Inputs
from clarinet.data.seeding import Shuffle, generator, seed_global
from clarinet.losses.adaptation.adversary import entropy_weights, full_reversal
from clarinet.losses.adaptation.kinds import adaptation_loss
from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.losses.adaptation.schedule import adaptation_share
from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.networks.layers import DomainBatchNorm
from clarinet.recipes.lengths import steps_in_epoch
from clarinet.reproduction.readers import read_domain
from clarinet.run.building import Networks, build_networks, build_optimizer
from clarinet.run.graphs import updates_of
from clarinet.run.objective import Objective
from clarinet.run.resuming import RunState
from clarinet.run.training import train_step
from tests.clarinet.factories import NUM_CLASSES, make_data

# Labels are uneven here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.NonUniformLabels")

CPU = torch.device("cpu")
PRESETS = ["paper", "published"]
SHORT: dict[str, Any] = {"epochs": 3, "steps_per_epoch": 4, "batch_size": 16, "adaptation_start_epoch": 1}
ACTIVE = EPOCH_STEPS = 4  # the first step with an adversary


def make_config(preset: str, **changes: Any) -> TrainConfig:
    return config_for("clarinet", preset, **SHORT | changes)


def make_uneven_data(**changes: Any) -> TrainData:
    """Nine of ten complementary labels name class 0 or 1: batches of 16 may lack class 2."""
    labels = make_data().complementary
    rare = (labels == 2) & (torch.arange(96) % 4 > 0)
    uneven: dict[str, Any] = {"complementary": torch.where(rare, torch.arange(96) % 2, labels)}
    return make_data(**uneven | changes)


def make_objective(config: TrainConfig, data: TrainData | None = None) -> tuple[Objective, Domains, Networks]:
    """Without dropout, so that the same step twice is the same."""
    domains = prepare(data if data is not None else make_uneven_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    networks.classifier.eval()
    if networks.adaptation is not None:
        networks.adaptation.eval()
    return Objective(config, domains, networks, steps=12, epoch_steps=4), domains, networks


def batch_of(domains: Domains, preset: str, step: int) -> Tensor:
    """Rows of the source that a step takes; row 23 tells how."""
    rows, whole_in = domains.complementary_rows, EPOCH_STEPS if preset == "published" else 0
    shuffle = Shuffle(len(rows), batch_size=16, seed=0, stream="shuffle/complementary", whole_in=whole_in)
    return rows[shuffle.batch(step)]


def logits_of(networks: Networks, domains: Domains, rows: Tensor) -> Tensor:
    pixels = domains.source[rows]
    assert isinstance(pixels, Tensor)
    out: Tensor = networks.classifier(pixels.float() / 255 * 2 - 1, SOURCE)[1]
    return out


def shares_of(labels: Tensor) -> list[float]:
    return [float((labels == k).sum()) / len(labels) for k in range(NUM_CLASSES)]


def slow_risk(logits: Tensor, labels: Tensor, shares: list[float], *, of_the_loss: bool) -> Tensor:
    """(K,) group by group; `of_the_loss` weighs the second term by the share of the loss's class."""
    losses = -logits.log_softmax(1)  # (B, K)
    risks = []
    for k in range(NUM_CLASSES):
        risk = torch.zeros(())
        for j in range(NUM_CLASSES):
            group = losses[labels == j, k]
            if len(group) == 0:
                continue  # a class absent from the batch is dropped
            risk = risk + shares[k if of_the_loss else j] * group.mean()
            if j == k:
                risk = risk - (NUM_CLASSES - 1) * shares[k] * group.mean()
        risks.append(risk)
    return torch.stack(risks)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_1_the_prior_of_the_second_term(preset: str) -> None:
    objective, domains, networks = make_objective(make_config(preset))
    rows = batch_of(domains, preset, 0)
    shares = shares_of(domains.complementary[domains.complementary_rows])
    logits, labels = logits_of(networks, domains, rows), domains.complementary[rows]

    shown = objective.losses(0)[1]["complementary"]

    of_label, of_loss = (
        slow_risk(logits, labels, shares, of_the_loss=which).sum() for which in (False, True)
    )
    assert abs((of_label - of_loss).item()) > 1e-3
    torch.testing.assert_close(shown, of_loss if preset == "published" else of_label)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_2_the_proportions_are_the_data_sets_and_an_absent_class_is_dropped(preset: str) -> None:
    objective, domains, networks = make_objective(make_config(preset))
    shares = shares_of(domains.complementary[domains.complementary_rows])
    step = next(s for s in range(200) if 2 not in domains.complementary[batch_of(domains, preset, s)])
    rows = batch_of(domains, preset, step)

    shown = objective.losses(step)[1]["complementary"]

    expected = slow_risk(
        logits_of(networks, domains, rows),
        domains.complementary[rows],
        shares,
        of_the_loss=preset == "published",
    )
    torch.testing.assert_close(shown, expected.sum())


def test_row_2_the_batchs_own_proportions_divide_by_no_group() -> None:
    objective, domains, networks = make_objective(make_config("paper", class_proportions="batch"))
    rows = batch_of(domains, "paper", 0)
    losses = -logits_of(networks, domains, rows).log_softmax(1)

    shown = objective.losses(0)[1]["complementary"]

    given = F.one_hot(domains.complementary[rows], NUM_CLASSES)
    torch.testing.assert_close(shown, (losses - (NUM_CLASSES - 1) * given * losses).sum() / len(rows))


@pytest.mark.parametrize("preset", PRESETS)
def test_rows_3_and_4_one_scalar_ascends_on_the_negative_parts(preset: str) -> None:
    # A class named in most labels has a negative risk as soon as losses are large; with the published prior
    # it takes images that differ.
    skewed = {"complementary": make_data().complementary * (torch.arange(96) % 3 == 0)}
    data = make_uneven_data(**({} if preset == "published" else skewed))
    objective, domains, networks = make_objective(make_config(preset), data)
    with torch.no_grad():
        networks.classifier.predictor.weight.mul_(-60)
    rows = batch_of(domains, preset, 0)
    shares = shares_of(domains.complementary[domains.complementary_rows])
    labels = domains.complementary[rows]
    risk = slow_risk(logits_of(networks, domains, rows), labels, shares, of_the_loss=preset == "published")
    counts = torch.bincount(labels, minlength=NUM_CLASSES) if preset == "published" else torch.ones(3)
    descent = (counts * risk.clamp(max=0)).sum()
    parameters = list(networks.classifier.parameters())
    down = torch.autograd.grad(descent, parameters)

    loss, _ = objective.losses(0)
    found = torch.autograd.grad(loss, parameters)

    assert bool((risk < 0).any())
    torch.testing.assert_close(loss, -descent, rtol=1e-4, atol=1e-4)
    for got, gradient in zip(found, down, strict=True):
        torch.testing.assert_close(got, -gradient, rtol=1e-3, atol=1e-4)


class Says(nn.Module):
    """A discriminator that always gives the same score."""

    def __init__(self, score: float) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.tensor(score))

    def forward(self, x: Tensor) -> Tensor:
        return self.score + 0 * x.sum(1, keepdim=True)


def make_part(n: int, stream: str) -> DomainBatch:
    draws = generator(5, stream)
    features, logits = (torch.randn(n, width, generator=draws, dtype=torch.float64) for width in (4, 3))
    return DomainBatch(features.requires_grad_(), logits.requires_grad_(), torch.ones(n, dtype=torch.float64))


def loss_of(
    config: TrainConfig, network: nn.Module, source: list[DomainBatch], target: DomainBatch, share: float
) -> Tensor:
    """The adaptation loss of a run with that network in the place of its own."""
    loss = adaptation_loss(config, network)
    assert loss is not None
    return loss(source, target, Shares(share, share))


def adversarial_loss(
    config: TrainConfig, score: float, *, parts: int = 1, share: float = 1.0
) -> tuple[Tensor, Says]:
    says = Says(score)
    source = [make_part(3 + 2 * i, f"source {i}") for i in range(parts)]
    loss = loss_of(config, says, source, make_part(9, "target"), share)
    return loss, says


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


@pytest.mark.parametrize("preset", PRESETS)
def test_row_5_a_surely_wrong_discriminator_still_has_a_gradient(preset: str) -> None:
    loss, says = adversarial_loss(make_config(preset), 20.0)  # its sigmoid is 1 in float32

    (gradient,) = torch.autograd.grad(loss, says.score)

    assert float(gradient) == pytest.approx(0.5 if preset == "published" else 1.0, abs=1e-3)


def test_row_6_the_sum_of_two_means_or_half_of_it() -> None:
    both = softplus(-0.3) + softplus(0.3)

    assert adversarial_loss(make_config("paper"), 0.3)[0].item() == pytest.approx(both)
    assert adversarial_loss(make_config("published"), 0.3)[0].item() == pytest.approx(both / 2)


def test_row_7_the_step_size_of_the_features_on_the_adversarial_loss() -> None:
    paper, published = config_for("clarinet"), config_for("clarinet", "published")
    rates = published.optimisation

    assert full_reversal(paper) * paper.optimisation.learning_rate == pytest.approx(
        5e-3 * 0.01
    )  # gamma_2 lambda
    assert full_reversal(published) * rates.learning_rate == pytest.approx(5e-5)
    assert (rates.learning_rate, rates.discriminator_learning_rate) == (5e-5, 5e-3)


def test_row_8_lambda_is_constant_or_rises_with_one_counter() -> None:
    paper, published = config_for("clarinet"), config_for("clarinet", "published")

    for i in (0, 1, 468, 10_000, 250_000):
        assert adaptation_share(paper, i, 257_400) == 1
        expected = 2 / (1 + math.exp(-10 * i / 10_000)) - 1
        assert adaptation_share(published, i, 257_400) == pytest.approx(expected)


SCORES = torch.randn(12, generator=generator(0, "discriminator"), dtype=torch.float64)  # of a linear D


def gradients_of_a_step(config: TrainConfig) -> tuple[Tensor, Tensor]:
    """Of the adversarial loss, for the features and for the logits of a source part."""
    scorer = nn.Linear(12, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        scorer.weight.copy_(SCORES)
    part = make_part(5, "source")
    loss = loss_of(config, scorer, [part], make_part(9, "target"), 1.0)
    found = torch.autograd.grad(loss, [part.features, part.logits], allow_unused=True, materialize_grads=True)
    return found[0], found[1]


def slow_gradient(preset: str, *, of_g: bool) -> Tensor:
    """That for the logits of the same source part, with T(f) a constant in g, or in the weights w."""
    part = make_part(5, "source")
    t = part.logits.softmax(1) ** 2
    t = t / t.sum(1, keepdim=True)
    joint = torch.einsum("nk,nd->nkd", t if of_g else t.detach(), part.features).flatten(1)
    losses = F.softplus(-(joint @ SCORES))
    plain = t.detach() if of_g else t
    w = 1 + torch.exp((plain * (plain + (0 if preset == "paper" else 1e-5)).log()).sum(1))  # row 24
    total = (w * losses).sum() / (w.sum() if preset == "paper" else w.sum().detach())
    return torch.autograd.grad(total, part.logits)[0]


def test_row_9_t_of_f_inside_g_moves_the_classifier_in_the_text_alone() -> None:
    config = make_config("paper")
    reversal = full_reversal(config)
    of_g, of_w = (slow_gradient("paper", of_g=which) for which in (True, False))

    found = gradients_of_a_step(config)[1]

    assert bool(of_g.abs().max() > 1e-3)
    torch.testing.assert_close(found, -reversal * (of_g + of_w))


def test_row_10_the_published_weight_alone_passes_a_gradient_there_its_sum_constant() -> None:
    config = make_config("published")

    found = gradients_of_a_step(config)[1]

    expected = -full_reversal(config) * slow_gradient("published", of_g=False) / 2  # row 6
    assert bool(expected.abs().max() > 1e-4)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_rows_9_and_10_may_be_without_any_gradient_to_the_predictions(preset: str) -> None:
    features, logits = gradients_of_a_step(make_config(preset, adversarial_gradient="features"))

    assert bool(features.abs().max() > 0)
    assert bool((logits == 0).all())


def make_state(config: TrainConfig) -> tuple[RunState, Objective, list[int]]:
    """A run before its first step, and the sizes of the classifier's batches as they come."""
    domains = prepare(make_uneven_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    passes: list[int] = []
    networks.classifier.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0])))
    objective = Objective(config, domains, networks, steps=12, epoch_steps=4)
    return RunState(networks=networks, optimizer=build_optimizer(config, networks)), objective, passes


@pytest.mark.parametrize("preset", PRESETS)
def test_row_11_one_forward_one_backward_one_step_move_all_networks(
    preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(preset)
    state, objective, passes = make_state(config)
    assert state.networks.adaptation is not None
    parameters = [*state.networks.classifier.parameters(), *state.networks.adaptation.parameters()]
    before = [value.clone() for value in parameters]
    done: list[str] = []
    backward, step = torch.autograd.backward, state.optimizer.step

    def counted_backward(loss: Tensor) -> None:
        done.append("backward")
        backward(loss)

    def counted_step() -> None:
        done.append("step")
        step()

    monkeypatch.setattr(torch.autograd, "backward", counted_backward)
    monkeypatch.setattr(state.optimizer, "step", counted_step)
    state.step = ACTIVE + 1  # of the rising reversal, the first adversarial step is 0

    train_step(config, state, objective, 12, updates_of(objective, state.optimizer))

    assert done == ["backward", "step"]
    assert passes == [32]  # 16 images of either domain
    assert all(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True))


@pytest.mark.parametrize("preset", PRESETS)
def test_row_12_fifty_epochs_of_warm_up_without_a_target_pass(preset: str) -> None:
    whole = config_for("clarinet", preset)
    state, objective, passes = make_state(make_config(preset))

    for _ in range(ACTIVE):
        train_step(make_config(preset), state, objective, 12, updates_of(objective, state.optimizer))

    assert whole.adaptation.adaptation_start_epoch == 50
    assert whole.length.epochs == (550 if preset == "published" else 500)
    assert passes == [16] * ACTIVE


def test_row_12_the_published_epochs_drop_the_last_batch_of_mnist() -> None:
    assert config_for("clarinet", "published").length.steps_per_epoch == 60_000 // 128
    assert config_for("clarinet").length.steps_per_epoch == 0  # one whole pass


@pytest.mark.parametrize(("preset", "decay"), [("paper", 5e-5), ("published", 5e-4)])
def test_row_13_the_weight_decay_of_all_networks(preset: str, decay: float) -> None:
    state, _, _ = make_state(make_config(preset))

    assert [group["weight_decay"] for group in state.optimizer.param_groups] == [decay] * 2


@pytest.mark.parametrize("preset", PRESETS)
def test_row_14_the_domains_are_split_by_their_true_sizes(preset: str) -> None:
    """3 source rows and 9 of the target: half of 12 would take target rows for source ones."""

    class CountsRows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.arange(len(x), dtype=x.dtype)[:, None] + 0 * x.sum(1, keepdim=True)

    # Without conditioning; else entropy weights say how rows count.
    config = config_for("clarinet-unconditioned", domain_loss=make_config(preset).adaptation.domain_loss)
    loss = loss_of(config, CountsRows(), [make_part(3, "source")], make_part(9, "target"), 1.0)

    def expected(split: int) -> float:
        source, target = [softplus(-row) for row in range(split)], [softplus(row) for row in range(split, 12)]
        both = sum(source) / len(source) + sum(target) / len(target)
        return both / 2 if preset == "published" else both

    assert loss.item() == pytest.approx(expected(3))
    assert abs(expected(3) - expected(6)) > 0.3


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("apart", [False, True])
def test_row_15_batch_normalisation_mixes_the_domains_unless_it_keeps_them_apart(
    preset: str, apart: bool
) -> None:
    """Where it mixes them, the loss on the source depends on which images of the target stand beside."""
    assert not config_for("clarinet", preset).network.norm_per_domain
    config = make_config(preset, architecture="dtn", norm_per_domain=apart)
    shown = []
    for target in (make_data().target_images, make_data(seed=1).target_images):
        objective, _, networks = make_objective(config, make_data(target_images=target))
        networks.classifier.train()
        seed_global(CPU, 0, "dropout")
        shown.append(objective.losses(ACTIVE)[1]["complementary"].item())

    assert (shown[0] == shown[1]) == apart


def test_row_15_clarinet_plus_normalises_each_domain_apart() -> None:
    config = config_for("clarinet-plus", epochs=3, steps_per_epoch=4, batch_size=16)
    domains = prepare(make_data(colour_target=True), config, CPU)
    classifier = build_networks(config, domains, CPU).classifier
    norms = [module for module in classifier.modules() if isinstance(module, DomainBatchNorm)]

    classifier(torch.rand(8, 3, 28, 28, generator=generator(0, "images")), SOURCE)

    assert norms
    for norm in norms:
        means = next(value for name, value in norm.named_buffers() if "mean" in name)
        assert bool((means[SOURCE] != 0).any())
        assert bool((means[TARGET] == 0).all())


@pytest.mark.parametrize("preset", PRESETS)
def test_row_16_alpha_and_the_source_terms_of_pc(preset: str) -> None:
    config = make_config(preset, setting="pc", held_out_share=0.0)
    objective, _, _ = make_objective(config, make_data(true_rows=24))

    assert objective.domains.alpha == pytest.approx(24 / (24 + 72 / 2))  # n_s / (n_s + n_bar / (K - 1))
    source, target = softplus(-0.8), softplus(0.8)
    loss, _ = adversarial_loss(config, 0.8, parts=2)
    averaged, _ = adversarial_loss(make_config(preset, source_terms="mean"), 0.8, parts=2)
    half = 2 if preset == "published" else 1  # row 6
    assert loss.item() == pytest.approx((2 * source + target) / half)
    assert averaged.item() == pytest.approx((source + target) / half)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_17_predictions_and_pseudo_labels_never_drop_out(preset: str) -> None:
    config = config_for("gac", preset, epochs=1, steps_per_epoch=2, batch_size=16)
    result, images = train(config, make_data()), make_data().source_images
    result.model.train()

    assert torch.equal(predict(result, images), predict(result, images))
    assert torch.equal(pseudo_labels(result, images), pseudo_labels(result, images))


@pytest.mark.parametrize("preset", PRESETS)
def test_row_18_the_classes_are_those_of_the_list(preset: str) -> None:
    _, domains, networks = make_objective(make_config(preset), make_data(num_classes=5))

    assert domains.spec.num_classes == 5  # though the largest label is 2
    assert networks.classifier.predictor.out_features == 5


@pytest.mark.parametrize(("preset", "held_out"), [("paper", 5), ("published", 0)])
def test_row_19_no_split_is_made_but_that_of_the_held_out_labels(preset: str, held_out: int) -> None:
    _, domains, _ = make_objective(make_config(preset))

    assert len(domains.held_out_rows) == held_out
    assert len(domains.complementary_rows) == 96 - held_out
    assert domains.test_labels is not None
    assert len(domains.test_labels) == 96


def test_row_19_usps_is_the_file_at_hand_and_says_its_counts(tmp_path: Path) -> None:
    for side, count in ((16, 5), (28, 7)):
        images, labels = np.zeros((count, side, side), np.uint8), np.arange(count, dtype=np.uint8)
        np.savez(
            tmp_path / f"usps_{side}x{side}.npz",
            x_train=images,
            y_train=labels,
            x_test=images[:2],
            y_test=labels[:2],
        )

    assert read_domain("usps", tmp_path).name == "USPS (usps_28x28.npz, 7 + 2 images)"

    (tmp_path / "usps_28x28.npz").unlink()
    assert read_domain("usps", tmp_path).name == "USPS (usps_16x16.npz, 5 + 2 images)"


def test_row_19_our_usps_has_the_papers_counts() -> None:
    folder = Path(os.environ.get("CLARINET_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (folder / "usps_28x28.npz").exists():
        pytest.skip(f"no usps_28x28.npz in CLARINET_DATA ({folder})")

    usps = read_domain("usps", folder)

    assert usps.x_test is not None
    assert (len(usps.x_train), len(usps.x_test)) == (7_438, 1_860)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_20_the_first_weights_of_the_discriminator(preset: str) -> None:
    state, _, _ = make_state(make_config(preset))
    assert state.networks.adaptation is not None
    layers = [layer for layer in state.networks.adaptation.modules() if isinstance(layer, nn.Linear)]

    assert len(layers) == 3
    for layer in layers:
        weight, inputs, outputs = layer.weight.detach(), layer.in_features, layer.out_features
        bound, deviation = 1 / math.sqrt(inputs), math.sqrt(2 / (inputs + outputs))
        spread = 0.1 if outputs == 1 else 0.02
        if preset == "published":
            assert float(weight.std()) == pytest.approx(deviation, rel=spread)
            assert float(weight.abs().max()) > 2 * deviation  # normal, not uniform
            assert bool((layer.bias == 0).all())
        else:
            assert float(weight.std()) == pytest.approx(bound / math.sqrt(3), rel=spread)
            assert float(weight.abs().max()) <= bound
            assert bool((layer.bias != 0).all())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("at", [ACTIVE - 1, ACTIVE])
def test_row_21_weight_decay_acts_twice_on_the_classifier_once_the_adversary_has_begun(
    preset: str, at: int
) -> None:
    rates = {"learning_rate": 0.1, "discriminator_learning_rate": 0.1, "weight_decay": 0.2}
    config = make_config(preset, **rates)
    state, objective, _ = make_state(config)
    state.step = at  # without momentum, as after the first step
    before = [[p.detach().clone() for p in group["params"]] for group in state.optimizer.param_groups]

    train_step(config, state, objective, 12, updates_of(objective, state.optimizer))

    twice = 2 if preset == "published" and at == ACTIVE else 1
    for group, olds, decay in zip(state.optimizer.param_groups, before, (0.2 * twice, 0.2), strict=True):
        for parameter, old in zip(group["params"], olds, strict=True):
            if parameter.grad is None:  # of a discriminator that has not begun
                assert torch.equal(parameter, old)
            else:
                torch.testing.assert_close(parameter.detach(), old - 0.1 * (parameter.grad + decay * old))


class Noted(Inputs):
    """Inputs that remember the numbers of their step."""

    def __init__(self, step: int) -> None:
        super().__init__(step, CPU)
        self.numbers: dict[str, float] = {}

    def number(self, name: str, of: Callable[[int], float]) -> float | Tensor:
        self.numbers[name] = of(self.step)
        return super().number(name, of)


@pytest.mark.parametrize("since", [0, 1, 7])
def test_row_22_the_entropy_gradient_rises_an_epoch_ahead(since: int) -> None:
    def risen(steps: int) -> float:
        return 2 / (1 + math.exp(-10 * steps / 10_000)) - 1

    found = {}
    for preset in PRESETS:
        inputs = Noted(ACTIVE + since)
        make_objective(make_config(preset))[0].losses(inputs.step, inputs)
        found[preset] = {name: value for name, value in inputs.numbers.items() if "adaptation" in name}

    assert found["paper"] == {"adaptation": 1.0}
    expected = {"adaptation": risen(since), "adaptation by entropy": risen(since + EPOCH_STEPS)}
    assert found["published"] == pytest.approx(expected)


def test_row_22_that_share_is_of_the_weights_alone() -> None:
    config, scorer, part = (
        make_config("published"),
        nn.Linear(12, 1, dtype=torch.float64),
        make_part(5, "one"),
    )
    loss = adaptation_loss(config, scorer)
    assert loss is not None

    def gradients(shares: Shares) -> tuple[Tensor, ...]:
        found = loss([part], make_part(9, "target"), shares)
        return torch.autograd.grad(found, [part.features, part.logits])

    whole, apart = gradients(Shares(1.0, 1.0)), gradients(Shares(0.25, 0.5))

    torch.testing.assert_close(apart[0], 0.25 * whole[0])
    torch.testing.assert_close(apart[1], 0.5 * whole[1])


@pytest.mark.parametrize("preset", PRESETS)
def test_row_23_the_last_batch_is_dropped_and_an_epoch_begins_anew(preset: str) -> None:
    """40 rows make two batches of 16; the first half of the third is dropped, or begins the next pass."""
    config = make_config(preset, held_out_share=0.0)
    domains = prepare(make_data(40), config, CPU)
    batches = Batches(config, domains, steps=12, epoch_steps=EPOCH_STEPS)

    taken = [batches.source(Inputs(step, CPU), "complementary", distorted=False).images for step in range(8)]

    passes = [torch.cat(taken[start : start + 2]) for start in (0, 2, 4, 6)]
    distinct = [len(torch.unique(rows)) for rows in passes]
    if preset == "published":
        assert distinct == [32] * 4
        assert len({tuple(rows.tolist()) for rows in passes}) == 4
    else:
        assert distinct[0] == 32
        assert sorted(torch.cat(taken[:5]).tolist()) == sorted([*range(40)] * 2)
    assert config_for("clarinet", preset, steps_per_epoch=0).length.drop_last == (preset == "published")


def test_row_23_passes_end_with_the_epoch() -> None:
    shuffle = Shuffle(10, batch_size=3, seed=0, stream="test", whole_in=4)  # a pass and its first batch

    epochs = [[shuffle.batch(step).tolist() for step in range(4 * n, 4 * n + 4)] for n in range(3)]

    for *whole, _ in epochs:
        assert len({row for batch in whole for row in batch}) == 9
    firsts = [batch for epoch in epochs for batch in (epoch[0], epoch[3])]
    assert len({tuple(batch) for batch in firsts}) == 6  # each of a pass of its own
    again = Shuffle(10, batch_size=3, seed=0, stream="test", whole_in=4)
    assert again.batch(7).tolist() == epochs[1][3]  # whatever was asked for before


@pytest.mark.parametrize(("preset", "steps"), [("paper", 469), ("published", 468)])
def test_row_23_an_epoch_has_the_whole_batches_alone(preset: str, steps: int) -> None:
    config = config_for("clarinet", preset, steps_per_epoch=0)

    assert steps_in_epoch(config, 7_438, 60_000) == steps
    assert steps_in_epoch(config, 60, 50) == 1


def test_row_24_the_published_entropy_has_an_epsilon_inside_its_logarithm() -> None:
    sure, even = torch.tensor([[200.0, 0.0, 0.0, 0.0]]), torch.zeros(1, 4)
    both = torch.cat([sure, even]).double().log_softmax(1)

    for preset, epsilon in (("paper", 0.0), ("published", 1e-5)):
        assert config_for("clarinet", preset).adaptation.entropy_epsilon == epsilon
        # exp(-H) is exp(log(1 + epsilon)) of a sure prediction, and exp(log(1/4 + epsilon)) of an even one.
        expected = torch.tensor([2 + epsilon, 1.25 + epsilon], dtype=torch.float64)
        torch.testing.assert_close(entropy_weights(both, epsilon), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("preset", PRESETS)
def test_row_24_it_is_that_of_the_loss(preset: str) -> None:
    score, parts = 0.3, [make_part(3, "source 0"), make_part(9, "target")]
    scores = [torch.linspace(-1, 1, 3, dtype=torch.float64), torch.linspace(-1, 1, 9, dtype=torch.float64)]

    class Scores(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat(scores)[:, None] + score + 0 * x.sum(1, keepdim=True)

    loss = loss_of(make_config(preset), Scores(), parts[:1], parts[1], 1.0)

    terms = []
    for part, own, sign in zip(parts, scores, (-1, 1), strict=True):
        t = part.logits.detach().softmax(1) ** 2
        t = t / t.sum(1, keepdim=True)
        w = 1 + torch.exp((t * (t + (0 if preset == "paper" else 1e-5)).log()).sum(1))
        terms.append((w * F.softplus(sign * (own + score))).sum() / w.sum())
    expected = terms[0] + terms[1] if preset == "paper" else (terms[0] + terms[1]) / 2
    torch.testing.assert_close(loss.detach(), expected, rtol=1e-12, atol=0)
