"""The composed step: what `Objective.losses` sums up, recomputed apart from it."""

import dataclasses
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.domains import Domains, prepare
from clarinet.data.feeding import taken
from clarinet.data.images import normalised
from clarinet.data.seeding import Shuffle, seed_global
from clarinet.data.training_data import TrainData
from clarinet.networks.classifier import SOURCE, TARGET, Domain
from clarinet.plus import self_training
from clarinet.recipes.config import TrainConfig
from clarinet.run.building import Networks, build_networks
from clarinet.run.objective import Objective
from tests.clarinet.factories import NUM_CLASSES, in_memory, make_config, make_data

CPU = torch.device("cpu")
EPOCH_STEPS = 4
START_EPOCH = 2
ACTIVE = START_EPOCH * EPOCH_STEPS  # the first step with an adversary
GAMMA_1, GAMMA_2, LAMBDA = 1e-3, 4e-3, 0.3


def make_paper_config(method: str = "clarinet") -> TrainConfig:
    """Of CLARINET, or of GAC, which is all of it but the adversary."""
    return make_config(
        method,
        setting="pc",
        adaptation_weight=LAMBDA,
        learning_rate=GAMMA_1,
        discriminator_learning_rate=GAMMA_2,
        adaptation_start_epoch=START_EPOCH,
        held_out_share=0,
    )


def make_weighted_data() -> TrainData:
    """Both kinds of labels, unequal in number and in weight."""
    return make_data(96, true_rows=24, weights=torch.arange(96) % 4 / 2 + 0.5)


def make_objective(config: TrainConfig) -> tuple[Objective, Domains, Networks]:
    """Without dropout, so that the same step twice is the same."""
    domains = prepare(make_weighted_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    networks.classifier.eval()
    if networks.adaptation is not None:
        networks.adaptation.eval()
    return Objective(config, domains, networks, steps=12, epoch_steps=EPOCH_STEPS), domains, networks


def batch_of(rows: Tensor, stream: str, step: int) -> Tensor:
    """The rows that a step takes of those."""
    return rows[Shuffle(len(rows), batch_size=16, seed=0, stream=f"shuffle/{stream}").batch(step)]


def classify(networks: Networks, pixels: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    features, logits = networks.classifier(normalised(pixels.float() / 255, "range"), domain)
    return features, logits


def risk_by_hand(logits: Tensor, domains: Domains, rows: Tensor) -> Tensor:
    """(K,) eq. E2 group by group, with proportions of the whole data set."""
    loss = -logits.log_softmax(1)  # (B, K)
    weights, labels = domains.weights, domains.complementary
    whole = domains.complementary_rows
    risk = torch.zeros(NUM_CLASSES)
    for j in range(NUM_CLASSES):
        pi = weights[whole][labels[whole] == j].sum() / weights[whole].sum()
        group = labels[rows] == j
        mean = (weights[rows][group, None] * loss[group]).sum(0) / weights[rows][group].sum()  # (K,)
        risk = risk + pi * mean
        risk = risk - (NUM_CLASSES - 1) * pi * mean * F.one_hot(torch.tensor(j), NUM_CLASSES)
    return risk


# A network as initialised has no class below zero; one with large weights has, which takes the correction.
@pytest.mark.parametrize(("gain", "corrected"), [(1.0, False), (-60.0, True)])
def test_labels_of_both_kinds_are_weighed_by_alpha(gain: float, corrected: bool) -> None:
    objective, domains, networks = make_objective(make_paper_config())
    with torch.no_grad():
        networks.classifier.predictor.weight.mul_(gain)
    step = 1
    rows = batch_of(domains.complementary_rows, "complementary", step)
    risk = risk_by_hand(classify(networks, taken(domains.source, rows), SOURCE)[1], domains, rows)
    complementary = -risk[risk < 0].sum() if corrected else risk.sum()
    known = batch_of(domains.true_rows, "true", step)
    log_p = classify(networks, taken(domains.source, known), SOURCE)[1].log_softmax(1)
    weights = domains.weights[known]
    true = -(weights * log_p[torch.arange(len(known)), domains.true[known]]).sum() / weights.sum()
    alpha = 24 / (24 + 72 / 2)  # n_s / (n_s + n_bar / (K - 1))

    loss, reported = objective.losses(step)

    assert bool((risk < 0).any()) is corrected
    torch.testing.assert_close(loss, alpha * true + (1 - alpha) * complementary)
    torch.testing.assert_close(reported["complementary"], risk.sum())
    torch.testing.assert_close(reported["true"], true)


def gradients(loss: Tensor, networks: Networks) -> dict[str, Tensor]:
    """Of every parameter of the classifier and, below "d.", of the discriminator."""
    names = dict(networks.classifier.named_parameters())
    if networks.adaptation is not None:
        names |= {f"d.{name}": value for name, value in networks.adaptation.named_parameters()}
    found = torch.autograd.grad(loss, list(names.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(names, found, strict=True))


def domain_loss_by_hand(networks: Networks, domains: Domains, step: int) -> Tensor:
    """The loss of D in the paper's words, without a reversal: a function of features and predictions."""
    assert networks.adaptation is not None
    complementary = batch_of(domains.complementary_rows, "complementary", step)
    true = batch_of(domains.true_rows, "true", step)
    target = batch_of(torch.arange(96), "target", step)
    terms: list[Tensor] = []
    parts: list[tuple[Domain, Tensor, Tensor]] = [
        (SOURCE, taken(domains.source, complementary), domains.weights[complementary]),
        (SOURCE, taken(domains.source, true), domains.weights[true]),
        (TARGET, taken(domains.target, target), torch.ones(16)),
    ]
    for domain, images, weights in parts:
        features, logits = classify(networks, images, domain)
        f = logits.softmax(1)
        t = f**2 / (f**2).sum(1, keepdim=True)  # T(f) with l = 0.5
        w = weights * (1 + torch.exp((t * t.log()).sum(1)))
        joint = torch.stack([torch.outer(a, b).flatten() for a, b in zip(t, features, strict=True)])
        p: Tensor = networks.adaptation(joint).squeeze(1).sigmoid()
        log_likelihood = (p if domain == SOURCE else 1 - p).log()
        terms.append(-(w * log_likelihood).sum() / w.sum())
    return terms[0] + terms[1] + terms[2]


def test_the_whole_classifier_feels_the_reversed_domain_loss() -> None:
    objective, domains, networks = make_objective(make_paper_config())
    labels_only, _, _ = make_objective(make_paper_config("gac"))
    labels_only.networks = networks
    plain = gradients(domain_loss_by_hand(networks, domains, ACTIVE), networks)

    loss, reported = objective.losses(ACTIVE)
    found = gradients(loss, networks)
    of_labels = gradients(labels_only.losses(ACTIVE)[0], networks)

    torch.testing.assert_close(
        reported["adversarial"], domain_loss_by_hand(networks, domains, ACTIVE).detach()
    )
    for name, gradient in found.items():
        felt = gradient - of_labels[name]
        assert bool(plain[name].abs().max() > 1e-6), name
        turned = 1 if name.startswith("d.") else -LAMBDA * GAMMA_2 / GAMMA_1
        torch.testing.assert_close(felt, turned * plain[name], rtol=1e-3, atol=1e-6)


def test_the_adversary_begins_after_its_epochs() -> None:
    objective, _, _ = make_objective(make_paper_config())

    before, first = (float(objective.losses(step)[1]["adversarial"]) for step in (ACTIVE - 1, ACTIVE))

    assert before == 0
    assert first == pytest.approx(3 * math.log(2), rel=0.1)  # an untrained discriminator says 1/2


@pytest.mark.parametrize("method", ["gac", "clarinet"])
def test_the_targets_batch_statistics_move_without_a_loss_on_the_target(method: str) -> None:
    config = make_config(method, norm_per_domain=True, adaptation_start_epoch=START_EPOCH)
    domains = prepare(make_data(colour_target=True), config, CPU)
    networks = build_networks(config, domains, CPU)
    objective = Objective(config, domains, networks, steps=12, epoch_steps=EPOCH_STEPS)

    def statistics() -> Tensor:
        return torch.cat([value[TARGET] for _, value in networks.classifier.named_buffers()]).clone()

    states = [statistics()]
    for step in range(ACTIVE + 1):
        objective.losses(step)
        states.append(statistics())

    moved = [not torch.equal(a, b) for a, b in itertools.pairwise(states)]
    assert moved == [True] + [False] * (ACTIVE - 1) + [method == "clarinet"]


def test_gac_has_no_adversary() -> None:
    objective, _, networks = make_objective(make_paper_config("gac"))

    assert networks.adaptation is None
    assert "adversarial" not in objective.losses(ACTIVE)[1]


def test_a_label_finds_its_image_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_training, "CONFIDENCE", 0.3)  # an untrained teacher is sure of nothing
    config = make_config(
        setting="pc",
        held_out_share=0,
        source_self_training_start=0,
        pretraining_share=0.0,
        moment_match=False,  # a mean over images, which rounds by their order
    )
    plain = make_weighted_data()
    moved = dataclasses.replace(
        plain, source_images=in_memory(plain.source_images).flip(0), example=torch.arange(95, -1, -1)
    )

    def losses(data: TrainData) -> dict[str, Tensor]:
        domains = prepare(data, config, CPU)
        networks = build_networks(config, domains, CPU)
        objective = Objective(config, domains, networks, steps=12, epoch_steps=EPOCH_STEPS)
        seed_global(CPU, 0, "dropout")
        return objective.losses(1)[1]

    first, second = losses(plain), losses(moved)

    assert first == second
    assert float(first["source_self_training"]) > 0
