"""The class confusion that MCC minimises: a case by hand, its bounds, and a run that adapts by it."""

import math

import pytest
import torch

from clarinet import config_for, train
from clarinet.data.seeding import generator
from clarinet.losses.adaptation.confusion import class_confusion
from tests.clarinet.factories import make_config, make_data


def test_a_case_by_hand() -> None:
    """Two images, K = 2, T = 1: probabilities (3/4, 1/4) and (1/4, 3/4), both of one certainty.

    C_11 = 9/16 + 1/16 = 10/16 and C_12 = 3/16 + 3/16 = 6/16, so that 6/16 of each row is confused.
    """
    logits = torch.tensor([[math.log(3.0), 0.0], [0.0, math.log(3.0)]], dtype=torch.float64)

    assert class_confusion(logits, temperature=1.0).item() == pytest.approx(6 / 16)


def test_a_surer_image_weighs_more_by_its_entropy() -> None:
    logits = torch.tensor([[4.0, 0.0, 0.0], [0.5, 0.2, 0.0]], dtype=torch.float64)
    p = (logits / 2.5).softmax(1)
    w = 1 + torch.exp((p * p.log()).sum(1))
    w = 2 * w / w.sum()
    c = w[0] * torch.outer(p[0], p[0]) + w[1] * torch.outer(p[1], p[1])
    mixed = [c[k, m] / c[k].sum() for k in range(3) for m in range(3) if k != m]
    by_hand = torch.stack(mixed).sum() / 3

    torch.testing.assert_close(class_confusion(logits), by_hand)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_it_lies_between_certainty_and_ignorance(k: int) -> None:
    sure = 1e4 * torch.eye(k, dtype=torch.float64)

    assert class_confusion(sure).item() == pytest.approx(0, abs=1e-9)
    assert class_confusion(torch.zeros(7, k, dtype=torch.float64)).item() == pytest.approx(1 - 1 / k)


def test_order_of_images_and_a_constant_on_logits_change_nothing() -> None:
    logits = torch.randn(6, 4, generator=generator(0, "logits"), dtype=torch.float64)

    torch.testing.assert_close(class_confusion(logits.flip(0) + 3), class_confusion(logits))


def test_the_gradient_is_that_of_the_formula_with_constant_weights() -> None:
    logits = torch.randn(5, 3, generator=generator(1, "logits"), dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(class_confusion(logits), logits)

    assert bool(gradient.isfinite().all())
    lower = class_confusion((logits - 0.1 * gradient / gradient.norm()).detach())
    assert lower < class_confusion(logits.detach())


@pytest.mark.parametrize("method", ["mcc", "gac+mcc"])
def test_a_run_adapts_by_it(method: str) -> None:
    epochs = 4 if method == "gac+mcc" else 3
    config = make_config(method, epochs=epochs, adaptation_start_epoch=1, learning_rate=1e-3)
    result = train(config, make_data(true_rows=40))

    assert [report.losses.get("confusion", 0.0) > 0 for report in result.reports][-1]
    assert config_for(method).adaptation.adaptation_kind == "confusion"
    assert all(math.isfinite(report.losses["true"]) for report in result.reports[-1:])
