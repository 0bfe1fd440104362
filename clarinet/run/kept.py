"""A run on kept features: those of a backbone that stays as it is, from which classes are found in rounds."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.feeding import Pixels, parts
from clarinet.data.images import normalised
from clarinet.data.seeding import generator
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.heads import CommonSpaceHead
from clarinet.plus.two_domains import rounds
from clarinet.plus.votes import label_votes
from clarinet.recipes.errors import Interrupted
from clarinet.run.asked import Asked
from clarinet.run.building import build_network
from clarinet.run.reporting import report, result
from clarinet.run.results import EpochReport, TrainResult
from clarinet.run.resuming import save_features, stored_features
from clarinet.run.stages import Stage
from clarinet.run.turns import Run

CHUNK = 64  # images whose features are computed at once


@dataclass(frozen=True, slots=True, eq=False)
class ByFeatures:
    """Predictions of a head on features (N, D) that are kept."""

    network: Classifier
    features: dict[str, Tensor]

    def source(self, rows: Tensor) -> Tensor:
        """Of the source's images."""
        return self._predicted(self.features["source"], rows, SOURCE)

    def target(self, rows: Tensor) -> Tensor:
        """Of the target's images."""
        return self._predicted(self.features["target"], rows, TARGET)

    def test(self, rows: Tensor | None) -> Tensor:
        """Of its test images."""
        return self._predicted(self.features["test"], rows, TARGET)

    def _predicted(self, features: Tensor, rows: Tensor | None, domain: Domain) -> Tensor:
        chosen = features if rows is None else features[rows.to(features.device)]
        with torch.inference_mode():
            return self.network.classify(chosen, domain).softmax(1).cpu()


def train_on_kept(run: Asked, stage: Stage) -> Run[TrainResult]:
    """Compute the features of all images once, and find the classes of both domains in rounds.

    An epoch is a round; the model is that of the last one. The checkpoint holds the features, which take
    nearly all of the time. A run that goes on from it repeats the rounds, and ends with the same bits.
    """
    config, domains = run.config, stage.domains
    network, pretrained = build_network(domains.spec, config, run.device, run.weights_folder)
    network.eval().requires_grad_(False)
    head = network.predictor
    assert isinstance(head, CommonSpaceHead)
    digest = pretrained.digest if pretrained else ""
    features, before = _restored(run, digest)
    started = time.perf_counter() - before
    if not features:
        features = yield from _features(run, stage, network)
        if run.checkpoint:
            save_features(
                run.checkpoint,
                features,
                config,
                data_digest=run.digest,
                weights_digest=digest,
                seconds=time.perf_counter() - started,
            )
    source, target = head.fit_space(features["source"], features["target"])
    votes = label_votes(domains)
    predicting, reports, noise = ByFeatures(network, features), list[EpochReport](), 0.0
    draws = generator(config.seed, "clusters")
    for number, found in enumerate(rounds(source, target, votes, draws, config.length.epochs), 1):
        head.weight.copy_(found.weight)
        head.bias.copy_(found.bias)
        reports.append(
            report(
                config,
                stage,
                predicting,
                step=number,
                seconds=time.perf_counter() - started,
                losses={"contradiction": found.contradiction},
            )
        )
        run.on_epoch(reports[-1])
        yield
        noise = found.label_noise
        if run.should_stop() and number < config.length.epochs:
            raise Interrupted(number, run.checkpoint)
    return result(
        config,
        stage,
        network,
        predicting,
        reports=reports,
        label_noise=noise,
        step=stage.steps,
        seconds=time.perf_counter() - started,
        pretrained=pretrained,
    )


def _restored(run: Asked, digest: str) -> tuple[dict[str, Tensor], float]:
    """The features of a checkpoint and the seconds that they took; none where there is no checkpoint."""
    if run.checkpoint is None or not run.checkpoint.exists():
        return {}, 0.0
    features, seconds = stored_features(run.checkpoint, run.config, run.digest, digest)
    return {name: values.to(run.device) for name, values in features.items()}, seconds


def _features(run: Asked, stage: Stage, network: Classifier) -> Run[dict[str, Tensor]]:
    """The features of all images, by domain; stops after each chunk."""
    domains, found = stage.domains, dict[str, Tensor]()
    wanted: list[tuple[str, Pixels | None, Domain]] = [
        ("source", domains.source, SOURCE),
        ("target", domains.target, TARGET),
        ("test", domains.test, TARGET),
    ]
    seen, total = 0, sum(len(images) for _, images, _ in wanted if images is not None)
    run.doing("features", seen, total)
    for name, images, domain in wanted:
        if images is not None:
            found[name] = torch.empty(len(images), network.extractor.features, device=run.device)
            done = 0
            for chunk in _by_chunks(run, network, images, domain):
                if run.should_stop():
                    raise Interrupted(0, None)  # they are kept when all are there
                found[name][done : done + len(chunk)] = chunk
                done += len(chunk)
                seen += len(chunk)
                run.doing("features", seen, total)
                yield
    return found


def _by_chunks(run: Asked, network: Classifier, images: Pixels, domain: Domain) -> Iterator[Tensor]:
    for chunk in parts(images, CHUNK):
        pixels = normalised(chunk.to(run.device).float() / 255, network.spec.input_normalisation)
        with torch.inference_mode():  # in float32, as the model will predict
            yield network.features_of(pixels, domain)
