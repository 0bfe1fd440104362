"""The benchmark's reference computes what the library computes, and the command says what it promises."""

import json
from functools import partial

import pytest
import torch
from torch import Tensor

from clarinet.commands.cli import main
from clarinet.data.domains import prepare
from clarinet.data.feeding import taken
from clarinet.data.seeding import Shuffle, generator
from clarinet.losses.adaptation.adversary import scattered_adversarial_loss
from clarinet.losses.adaptation.protocol import DomainBatch
from clarinet.losses.complementary import class_proportions, corrected_objective, per_class_complementary_risk
from clarinet.networks.classifier import discriminator
from clarinet.recipes.methods import config_for
from clarinet.run.bench import Step, _interleaved, bench_step, our_step
from clarinet.run.building import build_networks
from clarinet.run.objective import Objective
from clarinet.run.textbook import (
    Images,
    TextbookClassifier,
    TextbookStep,
    class_risks,
    domain_loss,
    endless,
    label_loss,
    textbook_discriminator,
)
from tests.clarinet.factories import NUM_CLASSES, make_config, make_data

CPU = torch.device("cpu")


def doubles(*shape: int, stream: str) -> Tensor:
    return torch.randn(*shape, generator=generator(0, stream), dtype=torch.float64)


# Some risk is negative where the logits are far out; a label may be absent from the batch.
@pytest.mark.parametrize(
    ("scale", "present", "corrected"), [(0.01, 5, False), (30.0, 5, True), (30.0, 4, True)]
)
def test_the_textbook_risk_and_its_correction_are_ours(scale: float, present: int, corrected: bool) -> None:
    logits = (scale * doubles(40, 5, stream="logits")).requires_grad_()
    labels = torch.arange(40) % present
    weights = torch.ones(40, dtype=torch.float64)
    proportions = torch.tensor([0.18, 0.2, 0.21, 0.22, 0.19], dtype=torch.float64)
    ours = per_class_complementary_risk(logits, labels, weights, proportions)

    risks = class_risks(logits, labels, proportions)

    torch.testing.assert_close(torch.stack(risks), ours)
    assert bool((ours < 0).any()) is corrected
    wanted = torch.autograd.grad(corrected_objective(ours), logits)[0]
    torch.testing.assert_close(torch.autograd.grad(label_loss(risks), logits)[0], wanted)


def test_the_textbook_domain_loss_is_ours() -> None:
    d = discriminator(12).double().eval()
    features = [doubles(n, 4, stream=f"features/{n}").requires_grad_() for n in (6, 9)]
    logits = [doubles(n, 3, stream=f"logits/{n}").requires_grad_() for n in (6, 9)]
    parts = [
        DomainBatch(f, z, torch.ones(len(f), dtype=torch.float64))
        for f, z in zip(features, logits, strict=True)
    ]
    ours = scattered_adversarial_loss(d, parts[:1], parts[1], sharpening=0.5, reversal=-1.0)

    textbook = domain_loss(d, features[0], logits[0], 1.0, sharpening=0.5)
    textbook = textbook + domain_loss(d, features[1], logits[1], 0.0, sharpening=0.5)

    torch.testing.assert_close(textbook, ours)
    leaves = [*features, *logits, *d.parameters()]
    wanted = torch.autograd.grad(ours, leaves)
    torch.testing.assert_close(torch.autograd.grad(textbook, leaves), wanted)


def test_a_whole_textbook_step_has_the_gradients_of_ours() -> None:
    config = make_config("clarinet", learning_rate=1e-3, adaptation_weight=0.3, held_out_share=0)
    domains = prepare(make_data(), config, CPU)
    networks = build_networks(config, domains, CPU)
    assert networks.adaptation is not None
    ours = [networks.classifier, networks.adaptation]
    plain: list[torch.nn.Module] = [TextbookClassifier(NUM_CLASSES), textbook_discriminator(NUM_CLASSES)]
    for one, other in zip(ours, plain, strict=True):
        for own, given in zip(other.parameters(), one.parameters(), strict=True):
            own.data.copy_(given.data)
        one.eval()  # no dropout
        other.eval()
    step = 7  # after T_s, one epoch of four steps
    objective = Objective(config, domains, networks, steps=12, epoch_steps=4)
    loss, reported = objective.losses(step)
    wanted = torch.autograd.grad(loss, [p for module in ours for p in module.parameters()])
    parameters = [p for module in plain for p in module.parameters()]
    trainer = TextbookStep(
        plain[0],
        plain[1],
        torch.optim.SGD(parameters),
        proportions=class_proportions(domains.complementary, domains.weights, NUM_CLASSES),
        sharpening=config.adaptation.sharpening,
        reversal=0.3 * config.optimisation.discriminator_learning_rate / config.optimisation.learning_rate,
    )
    rows, others = (
        Shuffle(96, batch_size=16, seed=0, stream=f"shuffle/{stream}").batch(step)
        for stream in ("complementary", "target")
    )
    source_images, target_images = (
        taken(images, torch.arange(96)) for images in (domains.source, domains.target)
    )
    source, target = Images(source_images, domains.complementary), Images(target_images, torch.zeros(96))
    images, labels = (torch.stack(values) for values in zip(*(source[int(i)] for i in rows), strict=True))

    risk, domain = trainer.gradients(images, labels, torch.stack([target[int(i)][0] for i in others]))

    assert risk == pytest.approx(float(reported["complementary"]), rel=1e-5)
    assert domain == pytest.approx(float(reported["adversarial"]), rel=1e-5)
    for parameter, gradient in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-3, atol=1e-6)


def test_the_smaller_domain_cycles() -> None:
    loader = torch.utils.data.DataLoader(Images(torch.zeros(3, 1, 2, 2), torch.arange(3)))
    batches = endless(loader)

    assert [int(next(batches)[1]) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize(("steps", "warm_up"), [(2, 2), (7, 5)])
def test_contenders_take_turns_and_warm_up_off_the_clock(steps: int, warm_up: int) -> None:
    turns: list[str] = []
    contenders: dict[str, Step] = {name: partial(turns.append, name) for name in ("a", "b", "c")}

    # After n steps it is n * n, so that step n, counted from 0, takes 2n + 1 and none takes as long.
    times = _interleaved(contenders, CPU, steps, lambda: len(turns) ** 2)

    assert turns == ["a", "b", "c"] * (warm_up + steps)
    rounds = range(warm_up, warm_up + steps)
    assert times == {name: [2 * (3 * n + i) + 1 for n in rounds] for i, name in enumerate(contenders)}


@pytest.mark.parametrize("method", ["clarinet", "clarinet-plus"])
def test_our_step_pays_all_that_one_of_its_method_pays(method: str) -> None:
    data = make_data()
    step = our_step(config_for(method, precision="float32", batch_size=16), data, CPU)
    assert isinstance(step, partial)
    _, state, objective, *_ = step.args

    step()

    expected = {"complementary", "adversarial"}
    if method == "clarinet-plus":
        expected = {"complementary", "neighbours", "target_self_training"}
        told = objective.neighbours.probabilities[torch.arange(96), data.complementary]
        assert float(told.max()) == 0  # no image is of the class that its label rules out
    assert set(state.totals) == expected
    # The teacher, as untrained, is sure of nothing; what it says is worked out all the same.
    assert all(float(state.totals[name]) > 0 for name in expected - {"target_self_training"})


@pytest.mark.long
def test_there_is_a_row_for_each_precision() -> None:
    rows = bench_step("clarinet-plus", CPU, steps=1, clock="cpu")

    assert rows[0].precision == "float32"
    for row in rows:
        assert (row.method, row.device) == ("clarinet-plus", "cpu")
        assert 0 < row.ideal_min_ms <= row.ideal_ms
        assert 0 < row.ours_min_ms <= row.ours_ms
        assert 0 < row.textbook_min_ms <= row.textbook_ms


@pytest.mark.long
def test_the_last_line_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", "--device", "cpu", "--steps", "1", "--threads", "1", "--json"]) == 0

    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["threads"] == 1
    assert {"device", "precision", "textbook_ms", "ours_ms", "ideal_ms"} <= set(report["rows"][0])


def test_the_processors_clock_is_refused_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", "--clock", "cpu", "--device", "auto"]) == 1
    assert "add --device cpu" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--steps", "0"], ["--threads", "0"]])
def test_no_steps_and_no_threads_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "step", *wrong]) == 1
    assert "at least 1" in capsys.readouterr().err
