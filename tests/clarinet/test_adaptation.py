"""Adversaries and discrepancy of the baselines and ablations, and how they rise in a run."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.data.domains import prepare
from clarinet.data.feeding import taken
from clarinet.data.seeding import generator
from clarinet.losses.adaptation.adversary import full_reversal, scattered_adversarial_loss
from clarinet.losses.adaptation.discrepancy import multi_kernel_discrepancy
from clarinet.losses.adaptation.kinds import adaptation_loss
from clarinet.losses.adaptation.protocol import DomainBatch, Shares
from clarinet.losses.adaptation.schedule import adaptation_share
from clarinet.recipes.config import DEFAULTS
from clarinet.recipes.methods import config_for
from clarinet.run.building import build_networks
from clarinet.run.objective import Objective
from tests.clarinet.factories import make_config, make_data

CPU = torch.device("cpu")
SHARE = 0.25


def make_part(n: int, stream: str, *, d: int = 3, k: int = 4) -> DomainBatch:
    """A batch in double precision whose features and logits take gradients."""
    draws = generator(5, stream)
    return DomainBatch(
        torch.randn(n, d, generator=draws, dtype=torch.float64).requires_grad_(),
        torch.randn(n, k, generator=draws, dtype=torch.float64).requires_grad_(),
        torch.rand(n, generator=draws, dtype=torch.float64) + 0.5,
    )


class InDouble(nn.Module):
    """A linear D in double precision."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, inputs, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.weight)[:, None]


def gradients_of(loss: Tensor, parts: list[DomainBatch]) -> list[Tensor]:
    wanted = [value for part in parts for value in (part.features, part.logits)]
    return list(torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True))


class TestShare:
    def test_constant_is_whole_from_the_start(self) -> None:
        assert adaptation_share(config_for("clarinet"), 0, 100) == 1.0

    @pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
    def test_progress_rises_over_the_rest_of_the_run(self, p: float) -> None:
        expected = 2 / (1 + math.exp(-10 * p)) - 1

        assert adaptation_share(config_for("dann"), round(300 * p), 300) == pytest.approx(expected)

    def test_the_published_one_rises_over_ten_thousand_steps_of_any_run(self) -> None:
        config = config_for("clarinet", "published")
        expected = 2 / (1 + math.exp(-10 * 0.25)) - 1

        assert adaptation_share(config, 2500, 10) == adaptation_share(config, 2500, 10**6) == expected

    def test_the_reversal_brings_the_features_the_step_size_that_is_asked_for(self) -> None:
        rates: dict[str, Any] = {
            "learning_rate": 1e-3,
            "discriminator_learning_rate": 4e-3,
            "adaptation_weight": 0.5,
        }

        paper = config_for("clarinet", **rates)
        published = config_for("clarinet", "published", **rates)

        assert full_reversal(paper) * 1e-3 == pytest.approx(0.5 * 4e-3)  # lambda gamma_2
        assert full_reversal(published) * 1e-3 == pytest.approx(0.5 * 1e-3)


class TestAdversaries:
    def test_without_conditioning_it_is_the_plain_loss_on_features(self) -> None:
        source, target, scorer = make_part(5, "source"), make_part(7, "target"), InDouble(3)

        loss = scattered_adversarial_loss(
            scorer, [source], target, sharpening=0.5, reversal=SHARE, conditioning=False, domain_loss="mean"
        )

        terms = [
            (part.weights * F.softplus(sign * scorer(part.features)[:, 0])).sum() / part.weights.sum()
            for part, sign in ((source, -1), (target, 1))
        ]
        plain = (terms[0] + terms[1]) / 2
        torch.testing.assert_close(loss, plain)
        found, expected = (gradients_of(value, [source, target]) for value in (loss, plain))
        for got, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(got, -SHARE * wanted)

    def test_the_published_gradient_holds_t_and_the_sums_of_the_weights_constant(self) -> None:
        source, target, scorer = make_part(5, "source"), make_part(7, "target"), InDouble(12)

        loss = scattered_adversarial_loss(
            scorer, [source], target, sharpening=0.5, reversal=SHARE, gradient="weights"
        )

        plain = torch.zeros((), dtype=torch.float64)
        for part, sign in ((source, -1), (target, 1)):
            t = (part.logits.softmax(1) ** 2) / (part.logits.softmax(1) ** 2).sum(1, keepdim=True)
            w = part.weights * (1 + torch.exp((t * t.log()).sum(1)))
            joint = torch.einsum("nk,nd->nkd", t.detach(), part.features).flatten(1)
            losses = F.softplus(sign * scorer(joint)[:, 0])
            plain = plain + (w * losses).sum() / w.sum().detach()
        torch.testing.assert_close(loss, plain)
        found, expected = (gradients_of(value, [source, target]) for value in (loss, plain))
        for got, wanted in zip(found, expected, strict=True):
            assert bool(wanted.abs().max() > 1e-4)
            torch.testing.assert_close(got, -SHARE * wanted)


# What each method of the paper changes in clarinet's own values: for DAN those of the authors' two-step DAN,
# for DANN and CDAN+E those of CDAN's code for digits.
TRUE_ONLY: dict[str, Any] = {"complementary_loss": "none"}
DAN: dict[str, Any] = {
    "drop_last": True,
    "learning_rate": 0.005,
    "weight_decay": 0.0005,
    "adaptation_kind": "discrepancy",
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 0,
    "adaptation_schedule": "progress",
}
ADVERSARIAL: dict[str, Any] = {
    "drop_last": True,
    "discriminator_weights": "xavier",
    "learning_rate": 0.01,
    "discriminator_learning_rate": 0.01,
    "weight_decay": 0.0005,
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 1,
    "adaptation_schedule": "progress",
    "reversal_scale": "classifier",
    "domain_loss": "mean",
    "sharpening": 1.0,
}
DANN: dict[str, Any] = ADVERSARIAL | {"conditioning": False}
CDAN_E: dict[str, Any] = ADVERSARIAL | {
    "adversarial_gradient": "weights",
    "entropy_epsilon": 1e-5,
    "entropy_schedule_lead": 1,
}
TWO_STEPS: dict[str, Any] = {"epochs": 1000, "first_step_share": 0.5}
SHORT: dict[str, Any] = {"epochs": 20, "steps_per_epoch": 100}
SHORT_TWO_STEPS: dict[str, Any] = {"epochs": 40, "steps_per_epoch": 100}
SHORT_SOURCE: dict[str, Any] = SHORT | {"learning_rate": 0.005, "adaptation_start_epoch": 5}
SHORT_ADVERSARY: dict[str, Any] = SHORT_SOURCE | {"adaptation_weight": 1.0}

# The method, its preset "paper", and what its preset "short" changes in that.
PRESETS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("clarinet", {}, SHORT_ADVERSARY),
    ("clarinet-ce", {"complementary_loss": "cross-entropy"}, SHORT_ADVERSARY),
    ("clarinet-unconditioned", {"conditioning": False}, SHORT_ADVERSARY),
    ("clarinet-unsharpened", {"sharpening": 1.0}, SHORT_ADVERSARY),
    ("gac", {"adaptation_kind": "none"}, SHORT_SOURCE),
    ("dan", DAN | TRUE_ONLY, SHORT),
    ("dann", DANN | TRUE_ONLY, SHORT),
    ("cdan_e", CDAN_E | TRUE_ONLY, SHORT),
    ("gac+dan", DAN | TWO_STEPS, SHORT_TWO_STEPS),
    ("gac+dann", DANN | TWO_STEPS, SHORT_TWO_STEPS),
    ("gac+cdan_e", CDAN_E | TWO_STEPS, SHORT_TWO_STEPS),
]


def changed_values(method: str, preset: str) -> dict[str, Any]:
    values = config_for(method, preset).flat()
    return {name: values[name] for name, default in DEFAULTS.items() if values[name] != default}


@pytest.mark.parametrize(("method", "paper", "short"), PRESETS)
def test_a_preset_changes_these_values_and_no_others(
    method: str, paper: dict[str, Any], short: dict[str, Any]
) -> None:
    assert changed_values(method, "paper") == paper
    assert changed_values(method, "short") == paper | short


class TestMethods:
    def test_dans_weight_rises_and_its_parts_of_a_batch_are_one_set(self) -> None:
        parts, target = [make_part(4, "one"), make_part(2, "two")], make_part(7, "target")
        config = config_for("dan", adaptation_weight=3.0)

        loss = adaptation_loss(config, None)

        expected = multi_kernel_discrepancy(
            torch.cat([part.features for part in parts]),
            target.features,
            torch.cat([part.weights for part in parts]),
        )
        assert loss is not None
        assert loss.name == "discrepancy"
        torch.testing.assert_close(loss(parts, target, Shares(SHARE, 1.0)), 3.0 * SHARE * expected)

    @pytest.mark.parametrize("method", ["dan", "dann", "cdan_e"])
    def test_ordinary_adaptation_reads_no_complementary_label(self, method: str) -> None:
        config = make_config(method)
        data = make_data(true_rows=40)
        other = make_data(true_rows=40, complementary=data.complementary.clamp(max=0))

        one, two = (
            Objective(config, domains, build_networks(config, domains, CPU), steps=12, epoch_steps=4)
            for domains in (prepare(data, config, CPU), prepare(other, config, CPU))
        )

        for objective in (one, two):
            objective.networks.classifier.eval()
            if objective.networks.adaptation is not None:
                objective.networks.adaptation.eval()
        torch.testing.assert_close(one.losses(6), two.losses(6), rtol=0, atol=0)
        assert "complementary" not in one.losses(6)[1]
        assert one.domains.alpha == 1

    @pytest.mark.parametrize(
        ("method", "inputs"),
        [
            ("clarinet", 1500),
            ("clarinet-unsharpened", 1500),
            ("clarinet-unconditioned", 500),
            ("dann", 500),
            ("cdan_e", 1500),
            ("gac", None),
            ("dan", None),
        ],
    )
    def test_the_discriminator_sees_features_joined_with_classes_or_alone(
        self, method: str, inputs: int | None
    ) -> None:
        config = make_config(method)
        networks = build_networks(config, prepare(make_data(true_rows=40), config, CPU), CPU)

        first = None if networks.adaptation is None else next(networks.adaptation.parameters())
        assert (None if first is None else first.shape[1]) == inputs

    def test_cross_entropy_goes_towards_the_complementary_label(self) -> None:
        config = make_config("clarinet-ce", adaptation_start_epoch=2, held_out_share=0, batch_size=96)
        domains = prepare(make_data(), config, CPU)
        networks = build_networks(config, domains, CPU)
        networks.classifier.eval()
        logits = networks.classifier(taken(domains.source, torch.arange(96)).float() / 255 * 2 - 1)[1]

        loss, reported = Objective(config, domains, networks, steps=12, epoch_steps=4).losses(0)

        torch.testing.assert_close(loss, F.cross_entropy(logits, domains.complementary))
        torch.testing.assert_close(reported["complementary"], loss)
