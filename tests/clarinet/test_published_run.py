"""Where the paper and its published code differ, pinned row by row: the course of a run.

The rows are those of the table of differences: what the paper says, what the code does, what we do.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from clarinet import config_for, predict, pseudo_labels, train
from clarinet.data.batches import Batches
from clarinet.data.domains import prepare
from clarinet.data.inputs import Inputs
from clarinet.data.seeding import Shuffle, generator, seed_global
from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.networks.layers import DomainBatchNorm
from clarinet.recipes.lengths import steps_in_epoch
from clarinet.reproduction.readers import read_domain
from clarinet.run.building import build_networks
from clarinet.run.graphs import updates_of
from clarinet.run.training import train_step
from tests.clarinet.factories import make_data
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
    softplus,
)

# Labels are uneven here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::clarinet.recipes.errors.NonUniformLabels")


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
