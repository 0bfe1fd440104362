"""Where the paper and its published code differ, pinned row by row: the losses.

The rows are those of the table of differences: what the paper says, what the code does, what we do.
"""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet import TrainConfig, config_for
from clarinet.data.domains import Domains
from clarinet.data.inputs import Inputs
from clarinet.data.seeding import Shuffle, generator
from clarinet.losses.adaptation.adversary import entropy_weights, full_reversal
from clarinet.losses.adaptation.kinds import adaptation_loss
from clarinet.losses.adaptation.protocol import Shares
from clarinet.losses.adaptation.schedule import adaptation_share
from clarinet.networks.classifier import SOURCE
from clarinet.run.building import Networks
from tests.clarinet.factories import NUM_CLASSES, make_data
from tests.clarinet.published import (
    ACTIVE,
    CPU,
    EPOCH_STEPS,
    PRESETS,
    adversarial_loss,
    loss_of,
    make_config,
    make_objective,
    make_part,
    make_state,
    make_uneven_data,
    softplus,
)

# Labels are uneven here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.NonUniformLabels")


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
