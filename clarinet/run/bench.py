"""How long a training step takes, beside a textbook step and the least that any step of these networks needs.

The contenders take turns in one process, so that whatever else the machine does slows all of them alike.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from clarinet.data.domains import prepare
from clarinet.data.drawn_labels import simulate_labels
from clarinet.data.feeding import taken
from clarinet.data.images import normalised
from clarinet.data.seeding import generator
from clarinet.data.training_data import TrainData
from clarinet.losses.adaptation.adversary import conditioned
from clarinet.losses.complementary import class_proportions, one_hot
from clarinet.networks.classifier import TARGET
from clarinet.networks.precision import in_bfloat16, mixed
from clarinet.plus.votes import NeighbourLabels
from clarinet.recipes.choices import Precision
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.methods import config_for
from clarinet.run.graphs import updates_of
from clarinet.run.objective import Networks, Objective
from clarinet.run.resuming import RunState
from clarinet.run.textbook import Images, TextbookClassifier, TextbookStep, endless, textbook_discriminator
from clarinet.run.training import build_networks, build_optimizer, train_step
from clarinet.run.turns import Lane

NUM_CLASSES = 10
SOURCE_COUNT, TARGET_COUNT, SIDE = 7438, 60_000, 28  # USPS to MNIST
TOGETHER = 5  # runs, as many as the paper's experiments
WARM_UP = 5  # most steps of each contender before the clock runs
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Clock = Literal["wall", "cpu"]
Step = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Milliseconds a step: medians, and minima, which other work on the machine disturbs less.

    Args:
        method: whose step `ours` is.
        device: cpu or cuda.
        precision: of `ours` and `ideal`.
        textbook_ms: Algorithm 1's losses written plainly, always in float32 (`textbook`).
        ours_ms: what `train` does in a step, from the rows of the batch to the new weights.
        ideal_ms: the same networks forwards and backwards on a batch at hand; no data, losses or optimiser.
        together_ms: a step of each of `TOGETHER` runs that take turns; None on the CPU, which one run keeps
            busy.
    """

    method: str
    device: str
    precision: Precision
    textbook_ms: float
    textbook_min_ms: float
    ours_ms: float
    ours_min_ms: float
    ideal_ms: float
    ideal_min_ms: float
    together_ms: float | None
    together_min_ms: float | None

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self)


def bench_step(method: str, device: torch.device, *, steps: int, clock: Clock = "wall") -> list[Row]:
    """Time steps at the shapes of U->M (128 + 128 images, LeNet), late enough for every loss of the method.

    Images are noise, which takes as long as digits. Torch's global generators are left as they were.

    Args:
        method: clarinet or clarinet-plus, in its first preset.
        device: where to measure.
        steps: timed steps of each contender.
        clock: "wall", or "cpu" for the processor time of this process, which says nothing of a GPU.

    Returns:
        A row for each precision that the device has.
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        precisions = _precisions(device)
        configs = {precision: config_for(method, precision=precision) for precision in precisions}
        data = _noise()
        contenders: dict[str, Step] = {"textbook": textbook_step(data, device)}
        for precision, config in configs.items():
            contenders[f"ours {precision}"] = our_step(config, data, device)
            contenders[f"ideal {precision}"] = forward_and_backward(config, data, device)
            if device.type == "cuda":
                contenders[f"together {precision}"] = our_steps(config, data, device)
        times = _interleaved(contenders, device, steps, CLOCKS[clock])
    return [_row(method, device, precision, times) for precision in precisions]


def our_step(config: TrainConfig, data: TrainData, device: torch.device) -> Step:
    """One call is one step of `train`, with every loss of the method switched on.

    The neighbours are not looked for: each image has one class, as if they agreed on it.
    """
    domains = prepare(data, config, device)
    networks = build_networks(config, domains, device)
    epoch_steps = config.steps_per_epoch or -(-len(domains.target) // config.batch_size)
    steps = config.epochs * epoch_steps
    state = RunState(networks=networks, optimizer=build_optimizer(config, networks), step=steps * 3 // 4)
    objective = Objective(config, domains, networks, steps=steps, epoch_steps=epoch_steps)
    if config.neighbour_weight > 0:
        num_classes = data.num_classes
        agreed = one_hot((domains.complementary + 1) % num_classes, num_classes).float()
        objective.neighbours = state.neighbours = NeighbourLabels(agreed, label_noise=0.05)
    return partial(train_step, config, state, objective, steps, updates_of(objective, state.optimizer))


def our_steps(config: TrainConfig, data: TrainData, device: torch.device) -> Step:
    """One call is a step of each of `TOGETHER` runs with seeds of their own, as `take_turns` takes them."""
    lanes = [Lane(device) for _ in range(TOGETHER)]
    steps = []
    for seed, lane in enumerate(lanes):
        with lane.taken():
            steps.append(our_step(replace(config, seed=seed), data, device))

    def step() -> None:
        for one, lane in zip(steps, lanes, strict=True):
            with lane.taken():
                one()

    return step


def textbook_step(data: TrainData, device: torch.device) -> Step:
    """One call is one textbook step of the paper's method, loaders included."""
    config = config_for("clarinet", "paper")
    domains = prepare(data, config, torch.device("cpu"))
    classifier = TextbookClassifier(NUM_CLASSES).to(device)
    discriminator = textbook_discriminator(NUM_CLASSES).to(device)
    groups = [
        {"params": list(classifier.parameters()), "lr": config.learning_rate},
        {"params": list(discriminator.parameters()), "lr": config.discriminator_learning_rate},
    ]
    labels = domains.complementary
    trainer = TextbookStep(
        classifier,
        discriminator,
        torch.optim.SGD(groups, momentum=config.momentum, weight_decay=config.weight_decay),
        proportions=class_proportions(labels, domains.weights, NUM_CLASSES).to(device),
        sharpening=config.sharpening,
        reversal=config.trade_off * config.discriminator_learning_rate / config.learning_rate,
    )
    source_images, target_images = (
        taken(images, torch.arange(len(images))) for images in (domains.source, domains.target)
    )
    source = _batches(Images(source_images, labels), config, "source")
    target = _batches(Images(target_images, torch.zeros(len(target_images))), config, "target")

    def step() -> None:
        images, classes = next(source)
        others, _ = next(target)
        trainer.step(images.to(device), classes.to(device), others.to(device))

    return step


def _batches(images: Images, config: TrainConfig, stream: str) -> Iterator[tuple[Tensor, Tensor]]:
    draws = generator(config.seed, f"bench/{stream}")
    return endless(
        DataLoader(images, config.batch_size, shuffle=True, drop_last=True, generator=draws, num_workers=0)
    )


def forward_and_backward(config: TrainConfig, data: TrainData, device: torch.device) -> Step:
    """One call runs the method's networks forwards and backwards, both domains' images in one batch.

    Parameters get their gradients, and the features theirs through the discriminator, where there is one.
    """
    domains = prepare(data, config, device)
    networks = build_networks(config, domains, device)
    rows = torch.arange(config.batch_size, device=device)
    images = torch.cat([taken(domains.source, rows), taken(domains.target, rows)])  # (2B, C, S, S)
    pixels = normalised(images.float() / 255, config.input_normalisation)
    given = torch.full((len(pixels), NUM_CLASSES), 1 / NUM_CLASSES, device=device)
    return lambda: _forward_and_backward(networks, pixels, given, config.precision)


def _forward_and_backward(networks: Networks, pixels: Tensor, given: Tensor, precision: Precision) -> None:
    for module in (networks.classifier, networks.discriminator):
        if module is not None:
            module.zero_grad(set_to_none=True)
    with mixed(precision, pixels.device):
        features, logits = networks.classifier(pixels, TARGET)
        total = logits.sum()
        if networks.discriminator is not None:
            total = total + networks.discriminator(conditioned(features, given)).sum()
    torch.autograd.backward(total)


def _noise() -> TrainData:
    draws = generator(0, "bench/images")
    shape = (SIDE, SIDE)
    truth = torch.randint(NUM_CLASSES, (SOURCE_COUNT,), generator=draws)
    labels = simulate_labels(truth, NUM_CLASSES, seed=0, setting="cc")
    source, target = (
        torch.randint(256, (count, *shape), generator=draws, dtype=torch.uint8)
        for count in (SOURCE_COUNT, TARGET_COUNT)
    )
    return TrainData.of(labels, source, target_images=target)


def _precisions(device: torch.device) -> list[Precision]:
    """float32, and bfloat16 where the device multiplies in it."""
    return ["float32", "bfloat16"] if in_bfloat16("bfloat16", device) else ["float32"]


def _interleaved(
    contenders: dict[str, Step], device: torch.device, steps: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds of each step by contender, A, B, C, A, B, C, ..."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    warm_up = min(WARM_UP, steps)
    for turn in range(warm_up + steps):
        for name, step in contenders.items():
            _wait(device)
            started = clock()
            step()
            _wait(device)
            if turn >= warm_up:
                times[name].append(clock() - started)
    return times


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _row(method: str, device: torch.device, precision: Precision, times: dict[str, list[float]]) -> Row:
    figures: dict[str, float | None] = {}
    for name in ("textbook", "ours", "ideal", "together"):
        seconds = times.get("textbook" if name == "textbook" else f"{name} {precision}")
        figures[f"{name}_ms"] = round(1000 * statistics.median(seconds), 3) if seconds else None
        figures[f"{name}_min_ms"] = round(1000 * min(seconds), 3) if seconds else None
    return Row(method=method, device=device.type, precision=precision, **figures)  # type: ignore[arg-type]  # None for the last two alone
