"""The scattered conditional adversarial loss and its parts."""

import math

import pytest
import torch
from torch import Tensor, nn

from clarinet.data.seeding import generator
from clarinet.losses.adaptation.adversary import (
    conditioned,
    entropy_weights,
    log_sharpened,
    reversed_gradient,
    scattered_adversarial_loss,
)
from clarinet.losses.adaptation.protocol import DomainBatch
from clarinet.recipes.choices import SourceTerms


def make_part(n: int, stream: str, *, d: int = 3, k: int = 2) -> DomainBatch:
    """A batch in double precision with unequal weights."""
    draws = generator(5, stream)
    return DomainBatch(
        torch.randn(n, d, generator=draws, dtype=torch.float64),
        torch.randn(n, k, generator=draws, dtype=torch.float64),
        torch.rand(n, generator=draws, dtype=torch.float64) + 0.5,
    )


def make_discriminator(inputs: int = 6) -> nn.Linear:
    layer = nn.Linear(inputs, 1, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.linspace(-1, 1, inputs, dtype=torch.float64)[None])
        layer.bias.fill_(0.1)
    return layer


def test_reversal_is_the_identity_forwards_and_negates_backwards() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)

    y = reversed_gradient(x, 0.5)
    torch.autograd.backward(y.sum())

    assert torch.equal(y, x)
    assert x.grad is not None
    assert x.grad.tolist() == [-0.5, -0.5]


@pytest.mark.parametrize("sharpening", [0.5, 1.0])
def test_sharpening_agrees_with_powers_of_probabilities(sharpening: float) -> None:
    logits = make_part(6, "sharpening", k=4).logits
    powers = logits.softmax(1) ** (1 / sharpening)

    torch.testing.assert_close(log_sharpened(logits, sharpening).exp(), powers / powers.sum(1, keepdim=True))


def test_entropy_weight_is_two_when_certain_and_least_when_uniform() -> None:
    logits = torch.tensor([[1e4, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])

    weights = entropy_weights(log_sharpened(logits, 0.5))

    torch.testing.assert_close(weights, torch.tensor([2.0, 1.25]))


def test_conditioning_is_the_outer_product() -> None:
    joint = conditioned(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.25, 0.75]]))

    assert joint.tolist() == [[0.25, 0.5, 0.75, 0.75, 1.5, 2.25]]


def loops(discriminator: nn.Linear, part: DomainBatch, sharpening: float, *, source: bool) -> float:
    """One part's weighted mean, number by number."""
    weight, bias = discriminator.weight[0].tolist(), discriminator.bias.item()
    total, mass = 0.0, 0.0
    rows = zip(part.features.tolist(), part.logits.tolist(), part.weights.tolist(), strict=True)
    for features, logits, trust in rows:
        f = [math.exp(z) / sum(math.exp(other) for other in logits) for z in logits]
        t = [p ** (1 / sharpening) / sum(q ** (1 / sharpening) for q in f) for p in f]
        w = trust * (1 + math.exp(sum(p * math.log(p) for p in t)))
        joint = [p * x for p in t for x in features]
        d = 1 / (1 + math.exp(-bias - sum(a * b for a, b in zip(weight, joint, strict=True))))
        total += w * -math.log(d if source else 1 - d)
        mass += w
    return total / mass


def looped(discriminator: nn.Linear, parts: list[DomainBatch], *, source_terms: SourceTerms = "sum") -> float:
    """The whole loss number by number; the last part is the target."""
    terms = [loops(discriminator, part, 0.5, source=True) for part in parts[:-1]]
    of_source = sum(terms) if source_terms == "sum" else sum(terms) / len(terms)
    return of_source + loops(discriminator, parts[-1], 0.5, source=False)


@pytest.mark.parametrize("source_terms", ["sum", "mean"])
@pytest.mark.parametrize("sources", [1, 2])
def test_agrees_with_loops_for_unequal_batches(sources: int, source_terms: SourceTerms) -> None:
    parts = [make_part(5, "complementary"), make_part(3, "true")][:sources]
    target, discriminator = make_part(7, "target"), make_discriminator()

    loss = scattered_adversarial_loss(
        discriminator, parts, target, sharpening=0.5, reversal=1.0, source_terms=source_terms
    )

    expected = looped(discriminator, [*parts, target], source_terms=source_terms)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def gradients(reversal: float) -> tuple[Tensor, Tensor]:
    """Gradients of the loss for the source's features and the discriminator's weights."""
    source, target, discriminator = make_part(4, "source"), make_part(4, "target"), make_discriminator()
    source.features.requires_grad_()
    torch.autograd.backward(
        scattered_adversarial_loss(discriminator, [source], target, sharpening=0.5, reversal=reversal)
    )
    assert source.features.grad is not None
    assert discriminator.weight.grad is not None
    return source.features.grad, discriminator.weight.grad


def test_reversal_turns_the_features_and_leaves_the_discriminator() -> None:
    plain_features, plain_weight = gradients(-1.0)  # reversed twice is not reversed

    features, weight = gradients(0.25)

    torch.testing.assert_close(features, -0.25 * plain_features)
    torch.testing.assert_close(weight, plain_weight)


def leaves_of(parts: list[DomainBatch]) -> list[Tensor]:
    return [value for part in parts for value in (part.features, part.logits)]


def differences(discriminator: nn.Linear, parts: list[DomainBatch]) -> list[Tensor]:
    """The slopes of the looped loss, by moving one number after the other."""
    found = []
    with torch.no_grad():
        for value in leaves_of(parts):
            slopes, numbers = torch.zeros_like(value), value.view(-1)
            for i, middle in enumerate(numbers.tolist()):
                above, below = (
                    looped_at(discriminator, parts, numbers, i, middle + d) for d in (1e-5, -1e-5)
                )
                slopes.view(-1)[i] = (above - below) / 2e-5
                numbers[i] = middle
            found.append(slopes)
    return found


def looped_at(
    discriminator: nn.Linear, parts: list[DomainBatch], numbers: Tensor, index: int, value: float
) -> float:
    numbers[index] = value
    return looped(discriminator, parts)


def test_the_whole_loss_is_reversed_for_features_and_predictions() -> None:
    """Line 17 of Algorithm 1 ascends on all of eq. (advP): also through T(f) inside g, w and its sums."""
    parts = [make_part(4, "complementary"), make_part(3, "true"), make_part(5, "target")]
    discriminator = make_discriminator()
    slopes = differences(discriminator, parts)
    for value in leaves_of(parts):
        value.requires_grad_()

    loss = scattered_adversarial_loss(discriminator, parts[:2], parts[2], sharpening=0.5, reversal=0.25)

    for got, slope in zip(torch.autograd.grad(loss, leaves_of(parts)), slopes, strict=True):
        assert bool((slope.abs() > 1e-5).any())
        torch.testing.assert_close(got, -0.25 * slope, rtol=1e-6, atol=1e-9)


def test_predictions_may_be_constants_throughout() -> None:
    source, target, discriminator = make_part(4, "source"), make_part(4, "target"), make_discriminator()
    for value in leaves_of([source, target]):
        value.requires_grad_()

    torch.autograd.backward(
        scattered_adversarial_loss(
            discriminator, [source], target, sharpening=0.5, reversal=1.0, gradient="features"
        )
    )

    for part in (source, target):
        assert part.features.grad is not None
        assert part.logits.grad is None


def test_a_surely_wrong_discriminator_still_learns() -> None:
    scores = nn.Linear(6, 1)
    with torch.no_grad():
        scores.weight.zero_()
        scores.bias.fill_(20.0)  # the sigmoid is 1 in float32: log of 1 minus it would have no gradient
    part = DomainBatch(torch.ones(2, 3), torch.zeros(2, 2), torch.ones(2))

    torch.autograd.backward(scattered_adversarial_loss(scores, [part], part, sharpening=0.5, reversal=1.0))

    assert scores.bias.grad is not None
    assert float(scores.bias.grad) == pytest.approx(1.0, abs=1e-3)


def test_saturated_logits_give_no_nan() -> None:
    logits = torch.tensor([[1e30, -1e30], [1e4, 0.0]], requires_grad=True)
    part = DomainBatch(torch.ones(2, 3, requires_grad=True), logits, torch.ones(2))

    loss = scattered_adversarial_loss(nn.Linear(6, 1), [part], part, sharpening=0.5, reversal=1.0)
    torch.autograd.backward(loss)

    assert bool(torch.isfinite(loss))
    for value in leaves_of([part]):
        assert value.grad is not None
        assert bool(torch.isfinite(value.grad).all())
