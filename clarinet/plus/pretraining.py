"""The first part of a run of `clarinet-plus`: which source images are similar, and what their labels say."""

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.data.digits import Distortion, distortion_of
from clarinet.data.domains import Domains
from clarinet.data.feeding import Feed, parts
from clarinet.data.images import normalised
from clarinet.data.inputs import Inputs
from clarinet.data.joining import joined
from clarinet.data.own_distortion import OwnDistortion
from clarinet.data.photographs import PhotoDistortion
from clarinet.data.seeding import generator
from clarinet.networks.classifier import SOURCE, Classifier, ModelSpec, spec_for
from clarinet.networks.own import Transform
from clarinet.networks.precision import mixed
from clarinet.plus.clusters import cluster_labels
from clarinet.plus.contrast import contrastive_loss
from clarinet.plus.neighbours import every_class_is_sure, neighbour_labels
from clarinet.plus.votes import NeighbourLabels, label_votes
from clarinet.recipes.config import TrainConfig

CHUNK = 512  # images whose features are computed at once
PROJECTED = 128  # features in which views are compared
CONTRAST_TEMPERATURE = 0.5  # smaller looks closer at the most similar images
VIEW_DISTORTION = 1.5  # times further than digits that labels are learned from; see docs/results/recipe.md


def encoder_spec(config: TrainConfig, domains: Domains) -> ModelSpec:
    """The encoder: the network that the config means for the source alone.

    In the place of the label predictor it has the map to the features in which views are compared. These are
    used for nothing else: what makes views of an image equal forgets what tells a view.
    """
    is_own = domains.own.backbone is not None
    return spec_for(config, colour=not domains.source_is_grey, num_classes=PROJECTED, is_own=is_own)


class Pretraining:
    """Contrastive pairs of the source's images, and the neighbours that their features give.

    The target has no part in it. What tells its images apart may be their grounds, and beside images of
    another domain any two of a domain look alike. The encoder is used for nothing but its neighbours.

    Args:
        config: its distortion, enlarged, makes the views.
        domains: the labels of the source are looked at for `neighbours` only.
        encoder: what learns, built by `encoder_spec`.
        steps: how many steps the pretraining has.
        centre: the scale (y, x) at which the source's digits are looked at. As large as they come they may
            fill the image, and shifted views would lose their ends.
    """

    def __init__(
        self,
        config: TrainConfig,
        domains: Domains,
        encoder: Classifier,
        *,
        steps: int,
        centre: tuple[float, float],
    ) -> None:
        self.steps = steps
        self._config = config
        self._domains = domains
        self._encoder = encoder
        every = torch.arange(len(domains.source))
        self._feed = Feed(
            domains.source,
            every,
            every,
            batch_size=config.length.batch_size,
            seed=config.seed,
            stream="views",
        )
        self._distort = _view_distortion(config, centre, domains.own.transform)
        self._scale = Distortion(0.0, 0.0, 0.0, 0.0, centre=centre) if centre != (1.0, 1.0) else None

    def loss(self, inputs: Inputs) -> Tensor:
        """The contrastive loss of a step: () in nats."""
        views = self._two_views(inputs)  # (2B, C, S, S)

        def projected(own: Tensor) -> tuple[Tensor, ...]:
            with mixed(self._config.network.precision, own.device):
                return (self._encoder(own, SOURCE)[1],)

        first, second = self._domains.group.spread(views, projected)[0].chunk(2)
        return contrastive_loss(first, second, CONTRAST_TEMPERATURE)

    def _two_views(self, inputs: Inputs) -> Tensor:
        """(2B, C, S, S): the step's images distorted in one way, and then in another; B is two batches."""
        batches = [self._feed.batch(inputs, of=2, place=place)[1] for place in (0, 1)]
        pixels = torch.cat(batches).float() / 255  # (B, C, S, S)
        both = torch.cat([pixels, pixels])
        every, side = torch.ones(len(both), dtype=torch.bool), pixels.shape[-1]
        drawn = inputs.tensors(
            "distortion/views",
            lambda at: self._distort.drawn(every, side, generator(self._config.seed, f"views/{at}")),
        )
        return self._seen(self._distort.applied(both, drawn))

    def _seen(self, pixels: Tensor) -> Tensor:
        """Pixels (B, C, S, S) in 0..1 as the encoder takes them: grey images in one channel."""
        own = pixels[:, : self._encoder.spec.channels]
        return normalised(own, self._config.network.input_normalisation)

    def neighbours(self) -> NeighbourLabels:
        """The classes on which similar source images agree."""
        domains, seed = self._domains, self._config.seed
        features, votes = self._features(), label_votes(domains)
        found = neighbour_labels(features, votes, generator(seed, "neighbours"))
        believed = found.label_noise is not None
        if not believed or not every_class_is_sure(found):
            near = found.probabilities if believed else None
            whole = cluster_labels(features, votes, generator(seed, "clusters"), near=near)
            if whole.label_noise is not None:
                found = whole
        group = domains.group
        return NeighbourLabels(group.same(found.probabilities), group.same_number(found.label_noise))

    def _features(self) -> Tensor:
        """(N, D) features of the source images, in their scale but not distorted."""
        with torch.inference_mode():
            features = joined(self._feature_parts(), len(self._domains.source))
        return F.normalize(features, dim=1).clone()

    def _feature_parts(self) -> Iterator[Tensor]:
        encoder = self._encoder.eval()
        device = next(encoder.parameters()).device
        for images in parts(self._domains.source, CHUNK):
            pixels = images.to(device).float() / 255
            if self._scale is not None:
                every = torch.ones(len(pixels), dtype=torch.bool)
                pixels = self._scale(pixels, every, generator(0, "no draw matters"))
            yield encoder(self._seen(pixels), SOURCE)[0]
            self._domains.on_part()


def _view_distortion(
    config: TrainConfig, centre: tuple[float, float], own: Transform | None
) -> Distortion | PhotoDistortion | OwnDistortion:
    """The config's, with views further apart than the images that labels are learned from; or one's own."""
    factor, usual = VIEW_DISTORTION, distortion_of(config, centre, own=own)
    if not isinstance(usual, Distortion):
        return usual  # that of photographs is as far apart as such views usually are
    return replace(
        usual,
        rotation=usual.rotation * factor,
        scale=min(usual.scale * factor, 0.9),
        shift=usual.shift * factor,
    )
