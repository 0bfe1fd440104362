"""Fine-tuning: a network of kept features learns from the classes that were found with it."""

import copy
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.domains import Domains
from clarinet.data.feeding import Pixels, taken
from clarinet.data.images import normalised
from clarinet.data.own_distortion import OwnDistortion
from clarinet.data.photographs import PhotoDistortion
from clarinet.data.seeding import Shuffle, generator, on_device, seed_global
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.precision import mixed
from clarinet.plus.two_domains import Round
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError, Diverged
from clarinet.run.asked import Asked
from clarinet.run.building import Networks, build_optimizer, set_rates
from clarinet.run.turns import Run

DOMAINS: tuple[Domain, Domain] = (SOURCE, TARGET)
# Drawings, and pictures without colours, then look to the network like what they show.
DISTORTION = PhotoDistortion(turn=20.0, grey=0.25, lines=0.3)


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Distorted images of one domain and the classes found for them, by step."""

    images: Pixels
    classes: Tensor  # (N, K)
    shuffle: Shuffle
    name: str  # of its draws
    size: int  # of the images, in pixels
    distortion: OwnDistortion | PhotoDistortion

    def batch(self, step: int, seed: int) -> tuple[Tensor, Tensor]:
        """(B, C, S, S) in [0, 1] and (B, K)."""
        rows = self.shuffle.batch(step)
        pixels = taken(self.images, rows).float() / 255
        if pixels.shape[-1] != self.size:
            pixels = F.interpolate(pixels, size=(self.size, self.size), mode="bilinear", antialias=True)
        for device in {pixels.device, torch.device("cpu")}:  # an own distortion may draw on either
            seed_global(device, seed, f"{self.name}/{step}")
        draws = generator(seed, f"distortion/{self.name}/{step}")
        pixels = self.distortion(pixels, torch.ones(len(pixels), dtype=torch.bool), draws)
        return pixels, self.classes[on_device(rows, self.classes.device)]


def check_size(config: TrainConfig, network: Classifier, device: torch.device) -> None:
    """Refuse a size of images for the fine-tuning that the network does not take, before anything is done.

    Raises:
        ConfigError: what it said of them.
    """
    size = config.self_training.fine_tuning_size
    if not (size and config.self_training.fine_tuning_turns):
        return
    blank = torch.zeros(2, network.spec.channels, size, size, device=device)
    try:
        with torch.inference_mode():
            network.features_of(blank)
    except Exception as error:  # whatever a network says that is for one size
        why = (str(error) or type(error).__name__).split("\n", maxsplit=1)[0]
        raise ConfigError(
            f"fine_tuning_size is {size}, which {network.spec.architecture} does not take ({why}); set it to "
            "0, which means image_size",
            "fine_tuning_size",
        ) from error


def fine_tune(
    run: Asked, domains: Domains, network: Classifier, found: Round, *, turn: int, after: int
) -> Run[float]:
    """Move the weights of a network towards the classes found; it keeps the statistics of its normalisation.

    A step takes batch_size images of each domain, or all of fewer, in distortions of its own. It brings what
    the network says of them to what the rounds found (mean cross-entropy of both domains, in nats). The
    network in training stands beside the given one, which becomes the average of its weights (Polyak;
    `average_decay`). The label predictor begins as the round's, in the round's space, and is left as it was
    given: the next rounds find their own.

    Args:
        run: as the caller asked; its config says how many steps, how large and how fast.
        domains: the images.
        network: changed in place; in eval mode.
        found: the classes of all images of both domains.
        turn: which one, counted from 1; its draws are its own.
        after: how many rounds are done.

    Returns:
        The mean loss of the turn.

    Raises:
        Diverged: that is not finite.
        Interrupted: should_stop said so; the turn then begins anew when the run goes on.
    """
    config = run.config
    student = copy.deepcopy(network)  # layers of one's own that are frozen stay so
    student.predictor.requires_grad_(True)
    optimizer = build_optimizer(config, Networks(classifier=student, averaged=network, adaptation=None))
    sources = [
        _batches(run, domains, images, classes, f"fine-tuning/{turn}/{name}")
        for name, images, classes in (
            ("source", domains.source, found.source),
            ("target", domains.target, found.target),
        )
    ]
    steps, total = config.self_training.fine_tuning_steps, torch.zeros((), device=run.device)
    for step in range(steps):
        run.doing("fine-tuning", step, steps)
        run.stop_if_asked(after)
        set_rates(config, optimizer, step / steps, adapts=False)
        loss = _loss(config, student, [one.batch(step, config.seed) for one in sources])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
        optimizer.step()
        _average(network, student, min(config.optimisation.average_decay, _early(step)))
        total += loss.detach()
        yield
    run.doing("fine-tuning", steps, steps)
    mean = float(total) / steps
    if not math.isfinite(mean):
        raise Diverged(after, {"fine_tuning": mean})
    return mean


def _batches(run: Asked, domains: Domains, images: Pixels, classes: Tensor, name: str) -> Batches:
    config, own = run.config, domains.own.transform
    size = config.self_training.fine_tuning_size or config.network.image_size
    shuffle = Shuffle(
        len(images), batch_size=config.length.batch_size, seed=config.seed, stream=f"shuffle/{name}"
    )
    distortion = DISTORTION if own is None else OwnDistortion(own)
    return Batches(images, classes, shuffle, name, size, distortion)


def _loss(config: TrainConfig, student: Classifier, batches: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Mean cross-entropy of both domains' images towards the classes found, () in nats."""
    pixels = normalised(torch.cat([batch for batch, _ in batches]), student.spec.input_normalisation)
    pixels = pixels.to(memory_format=torch.channels_last)
    parts = torch.split(pixels, [len(batch) for batch, _ in batches])
    losses = []
    for part, domain, (_, classes) in zip(parts, DOMAINS, batches, strict=True):
        with mixed(config.network.precision, pixels.device):
            features = student.features_of(part, domain)
        losses.append(F.cross_entropy(student.classify(features, domain), classes))
    return torch.stack(losses).mean()


@torch.no_grad()
def _average(averaged: Classifier, student: Classifier, decay: float) -> None:
    """Move the averaged weights of the network below the label predictor towards those in training."""
    for kept, new in zip(averaged.extractor.parameters(), student.extractor.parameters(), strict=True):
        kept.lerp_(new, 1 - decay)


def _early(step: int) -> float:
    """The decay of an average that has seen few steps: where it began would weigh too much."""
    return (step + 1) / (step + 10)
