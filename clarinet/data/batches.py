"""What the networks see in a step: batches of both domains, distorted as the config says."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from clarinet.data.digits import (
    blended,
    distortion_of,
    drawn_factors,
    drawn_grounds,
    moment_match,
    recoloured,
)
from clarinet.data.domains import Domains
from clarinet.data.feeding import Feed
from clarinet.data.images import in_unit_range
from clarinet.data.inputs import Drawn, Inputs
from clarinet.data.seeding import generator
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.lengths import batch_size


@dataclass(frozen=True, slots=True, eq=False)
class SourceBatch:
    """One part of a source batch: pixels (B, C, S, S); labels of both kinds (-1: none) and weights, (B,).

    Where the run keeps features, `pixels` are those, (B, F).
    `images` (B,) are their source images. `no_classes` (B, M) are all classes that each image is known not to
    be, -1 beyond those it has. `probabilities` (B,) are those with which the questions were drawn; None where
    they are unknown. `excluded` (B, M) are the classes that could not be asked about any more.
    """

    pixels: Tensor
    complementary: Tensor
    true: Tensor
    weights: Tensor
    images: Tensor
    no_classes: Tensor
    probabilities: Tensor | None
    excluded: Tensor | None = None


class Batches:
    """Batches of a run as a function of the step.

    Args:
        config: of the run; the attribute has the distortions that its images take.
        domains: its data.
        steps, epoch_steps: of the run, and of an epoch.
    """

    def __init__(self, config: TrainConfig, domains: Domains, *, steps: int, epoch_steps: int) -> None:
        self._domains = domains
        self._steps = steps
        labelled = {"complementary": domains.complementary_rows, "true": domains.true_rows}
        self.size = batch_size(config, max(len(rows) for rows in labelled.values()))
        every = torch.arange(len(domains.target))
        options = {
            "batch_size": self.size,
            "seed": config.seed,
            "whole_in": epoch_steps if config.length.drop_last else 0,
        }
        self._feeds = {
            kind: Feed(domains.source, rows, domains.example, **options, stream=kind)
            for kind, rows in labelled.items()
            if len(rows)
        }
        self._target = Feed(domains.target, every, every, **options, stream="target")
        grey = domains.source_is_grey and domains.target_is_grey
        own = domains.own.transform
        digits = config.distortion.distortion_kind == "digits" and own is None
        matched = config.distortion.moment_match and config.distortion.distorted_share > 0 and grey and digits
        self.centre = moment_match(domains.source, domains.target) if matched else (1.0, 1.0)
        # Pictures in colour have strokes of their own beside the digit; with more of them digits were lost.
        self.config = config.changed(extra_stroke=0.0) if domains.spec.sees_ink else config
        self._distort_source = distortion_of(self.config, self.centre, own=own)
        self._distort_target = distortion_of(self.config, own=own)
        self._blend = config.distortion.background_blending and digits and domains.grey_to_colour
        # Grounds of the target show its colours; others on top of them only make the digits harder to see.
        self._recolour = (
            config.distortion.recolouring and digits and domains.grey_to_colour and not self._blend
        )

    @property
    def kinds(self) -> list[str]:
        """Those of complementary and true labels that train, in this order."""
        return list(self._feeds)

    def source(self, inputs: Inputs, kind: str, *, distorted: bool) -> SourceBatch:
        """The batch of one kind of label."""
        domains = self._domains
        index, levels = self._feeds[kind].batch(inputs)  # (B,), (B, C, S, S)
        pixels = in_unit_range(levels)
        if distorted:
            _, rows, others = inputs.drawn(
                f"distortion/{kind}", partial(self._source_draws, kind, len(index))
            )
            pixels = self._distort_source.applied(pixels, rows)
            if self._blend:
                pixels = blended(pixels, others)
            if self._recolour:
                pixels = recoloured(pixels, *others)
        return SourceBatch(
            pixels=pixels,
            complementary=domains.complementary[index],
            true=domains.true[index],
            weights=domains.weights[index],
            images=domains.example[index],
            no_classes=domains.no_classes[domains.example[index]],
            probabilities=None if domains.probabilities is None else domains.probabilities[index],
            excluded=None if domains.excluded is None else domains.excluded[index],
        )

    def target(self, inputs: Inputs) -> Tensor:
        """(B, C, S, S) pixels of the target as they are, or its kept features (B, F)."""
        return in_unit_range(self._target.batch(inputs)[1])

    def distorted_target(self, inputs: Inputs, pixels: Tensor) -> Tensor:
        """The target's pixels (B, C, S, S) with the largest share of them distorted."""
        if self.config.distortion.distorted_share == 0:
            return pixels
        _, rows, others = inputs.drawn("distortion/target", partial(self._target_draws, len(pixels)))
        pixels = self._distort_target.applied(pixels, rows)
        return recoloured(pixels, *others) if self._recolour else pixels

    def distorted_share(self, step: int) -> float:
        """Share of source images to distort: a curriculum, as distorting from the start stalls it."""
        config = self.config
        length = max(config.distortion.distortion_full - config.distortion.distortion_start, 1e-9)
        risen = (step / self._steps - config.distortion.distortion_start) / length
        return config.distortion.distorted_share * min(max(risen, 0.0), 1.0)

    def _source_draws(self, kind: str, count: int, step: int) -> Drawn:
        """How a batch of so many is distorted, and put on grounds or recoloured where that is done."""
        spec, draws = self._domains.spec, generator(self.config.seed, f"augment/{kind}/{step}")
        chosen = torch.rand(count, generator=draws) < self.distorted_share(step)
        rows = self._distort_source.drawn(chosen, spec.image_size, draws)
        if self._blend:
            return Drawn(count, rows, drawn_grounds(chosen, self._domains.target, spec.image_size, draws))
        return Drawn(count, rows, [drawn_factors(chosen, spec.channels, draws)] if self._recolour else [])

    def _target_draws(self, count: int, step: int) -> Drawn:
        """Likewise of a batch of the target."""
        spec, draws = self._domains.spec, generator(self.config.seed, f"augment/target/{step}")
        chosen = torch.rand(count, generator=draws) < self.config.distortion.distorted_share
        rows = self._distort_target.drawn(chosen, spec.image_size, draws)
        return Drawn(count, rows, [drawn_factors(chosen, spec.channels, draws)] if self._recolour else [])
