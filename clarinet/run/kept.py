"""A run on kept features: those of a trained backbone, from which classes are found in rounds."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from clarinet.data.seeding import generator
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, Domain
from clarinet.networks.heads import CommonSpaceHead
from clarinet.plus.two_domains import Round, rounds
from clarinet.plus.votes import label_votes
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import CheckpointError, Interrupted
from clarinet.run.asked import Asked
from clarinet.run.building import build_network
from clarinet.run.features import computed_features
from clarinet.run.fine_tuning import check_size, fine_tune
from clarinet.run.reporting import report, result
from clarinet.run.results import TrainResult
from clarinet.run.resuming import Kept, restored_kept, save_kept
from clarinet.run.stages import Stage
from clarinet.run.turns import Run


@dataclass(frozen=True, slots=True, eq=False)
class ByFeatures:
    """Predictions of a head on kept features (N, D); test images that are the target's have no own ones."""

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
        own = self.features.get("test")
        return self._predicted(self.features["target"] if own is None else own, rows, TARGET)

    def _predicted(self, features: Tensor, rows: Tensor | None, domain: Domain) -> Tensor:
        chosen = features if rows is None else features[rows.to(features.device)]
        with torch.inference_mode():
            return self.network.classify(chosen, domain).softmax(1).cpu()


def train_on_kept(run: Asked, stage: Stage) -> Run[TrainResult]:
    """Compute the features of all images, find the classes of both domains in rounds, and fine-tune by them.

    An epoch is a round. The rounds are shared out among the turns of fine-tuning: some come before each turn,
    and the last ones after all of them give the model. The features take nearly all of the time, and so do
    the steps of a turn. The checkpoint holds the latest features and the network that they are of. A run that
    goes on from it repeats the rounds since, and ends with the same bits.
    """
    config, domains = run.config, stage.domains
    network, pretrained = build_network(
        domains.spec, config, run.device, run.weights_folder, domains.own.backbone
    )
    network.eval().predictor.requires_grad_(False)
    check_size(config, network, run.device)
    digest = pretrained.digest if pretrained else ""
    kept = _restored(run, network, digest)
    clock = time.perf_counter() - kept.seconds
    while True:
        if not kept.features:
            kept.features = yield from computed_features(run, stage.domains, network, after=len(kept.reports))
            kept.seconds = time.perf_counter() - clock
            if run.checkpoint:
                save_kept(run.checkpoint, kept, config, data_digest=run.digest, weights_digest=digest)
        found = yield from _rounds(run, stage, network, kept, clock=clock)
        if kept.turn == config.self_training.fine_tuning_turns:
            break
        turn, done = kept.turn + 1, len(kept.reports)
        loss = yield from fine_tune(run, domains, network, found, turn=turn, after=done)
        weights = network.extractor.state_dict()
        kept = Kept(turn, weights=weights, losses={"fine_tuning": loss}, reports=kept.reports)
    network.requires_grad_(False)
    return result(
        config,
        stage,
        network,
        ByFeatures(network, kept.features),
        reports=kept.reports,
        label_noise=found.label_noise,
        step=stage.steps,
        seconds=time.perf_counter() - clock,
        pretrained=pretrained,
    )


def _rounds(run: Asked, stage: Stage, network: Classifier, kept: Kept, *, clock: float) -> Run[Round]:
    """The rounds on the features of a turn, whose reports join those kept; gives the last, the head's."""
    config, head = run.config, network.predictor
    assert isinstance(head, CommonSpaceHead)
    places = head.fit_space(kept.features["source"], kept.features["target"])
    votes = label_votes(stage.domains)
    draws = generator(config.seed, f"clusters/{kept.turn}" if kept.turn else "clusters")
    predicting, losses, reports = ByFeatures(network, kept.features), kept.losses, list(kept.reports)
    for found in rounds(*places, votes, draws, rounds_of_turn(config, kept.turn)):
        head.weight.copy_(found.weight)
        head.bias.copy_(found.bias)
        reports.append(
            report(
                config,
                stage,
                predicting,
                step=len(reports) + 1,
                seconds=time.perf_counter() - clock,
                losses={"contradiction": found.contradiction} | losses,
            )
        )
        losses = {}
        run.on_epoch(reports[-1])
        yield
        if run.should_stop() and len(reports) < config.length.epochs:
            raise Interrupted(len(reports), run.checkpoint)
    kept.reports = reports
    return found


def rounds_of_turn(config: TrainConfig, turn: int) -> int:
    """How many rounds come after a turn of fine-tuning, 0 for before the first; the last has the rest."""
    turns = config.self_training.fine_tuning_turns
    share = config.length.epochs // (turns + 1)
    return share if turn < turns else config.length.epochs - turns * share


def _restored(run: Asked, network: Classifier, digest: str) -> Kept:
    """What a checkpoint holds, its weights in the network; nothing where there is no checkpoint."""
    if run.checkpoint is None or not run.checkpoint.exists():
        return Kept()
    kept = restored_kept(run.checkpoint, run.config, data_digest=run.digest, weights_digest=digest)
    kept.features = {name: values.to(run.device) for name, values in kept.features.items()}
    if kept.weights:
        try:
            network.extractor.load_state_dict(kept.weights)
        except RuntimeError as error:
            raise CheckpointError(f"{run.checkpoint} does not fit its own description: {error}") from error
    return kept
