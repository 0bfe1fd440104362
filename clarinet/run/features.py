"""The features of a backbone that stays as it is, of all images of a run: computed once."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from clarinet.data.domains import Domains
from clarinet.data.feeding import Pixels, parts
from clarinet.data.images import normalised
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.recipes.errors import ConfigError, Diverged
from clarinet.run.asked import Asked
from clarinet.run.turns import Run

CHUNK = 64  # images whose features are computed at once


def computed_features(
    run: Asked, domains: Domains, network: Classifier, *, after: int
) -> Run[dict[str, Tensor]]:
    """The features (N, D) of all images, by domain; stops after each chunk.

    Test images that are the target's have no own ones.

    Args:
        run: told of it.
        domains: the images.
        network: its backbone in eval mode.
        after: how many epochs are done.

    Raises:
        ConfigError, Diverged: they are no numbers.
        Interrupted: should_stop said so.
    """
    found: dict[str, Tensor] = {}
    wanted: list[tuple[str, Pixels | None, Domain]] = [
        ("source", domains.source, SOURCE),
        ("target", domains.target, TARGET),
        ("test", None if domains.test is domains.target else domains.test, TARGET),
    ]
    seen, total = 0, sum(len(images) for _, images, _ in wanted if images is not None)
    run.doing("features", seen, total)
    for name, images, domain in wanted:
        if images is not None:
            found[name] = torch.empty(len(images), network.backbone.features, device=run.device)
            done = 0
            for chunk in features_by_chunks(network, images, domain, run.device):
                run.stop_if_asked(after)  # they are kept when all are there
                found[name][done : done + len(chunk)] = chunk
                done += len(chunk)
                seen += len(chunk)
                run.doing("features", seen, total)
                yield
            _require_finite(found[name], after)
    return found


def _require_finite(features: Tensor, after: int) -> None:
    """Refuse features that are none: of damaged weights, or of a fine-tuning that ran away."""
    if bool(features.isfinite().all()):
        return
    if after:
        raise Diverged(after, {"features": math.nan})
    raise ConfigError(
        "the network gives features that are no numbers; its trained weights are damaged", "pretrained"
    )


def features_by_chunks(
    network: Classifier, images: Pixels, domain: Domain, device: torch.device
) -> Iterator[Tensor]:
    """Features (CHUNK, D) of uint8 images in their order, in float32, as the model will predict.

    Args:
        network: its backbone in eval mode, on the device.
        images: of the network's size and channels.
        domain: that they are of.
        device: where features are wanted.
    """
    for chunk in parts(images, CHUNK):
        pixels = normalised(chunk.to(device).float() / 255, network.spec.input_normalisation)
        with torch.inference_mode():
            yield network.kept_of(pixels, domain)
